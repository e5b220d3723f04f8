"""Test what the operating system offers, and what is returned where it lacks something."""

import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dcsvm import _core, system
from dcsvm.machine import available_memory, default_threads, usable_memory

ROOT = Path(__file__).resolve().parent.parent


def features():
    return dict(system.features())


def test_features_have_one_line_each():
    found = list(system.features())
    assert len(features()) == len(found)
    assert not [one for pair in found for one in pair if not one or "\n" in one]


def test_features_are_those_of_the_core():
    assert features()["instruction set"] == _core.instruction_set()
    assert features()["OpenMP"].startswith("yes" if _core.usable_threads(2) == 2 else "no")
    assert f"numpy {np.__version__}" in features()["libraries"]


def test_every_extra_for_users_is_told():
    """And the libraries are the package's own: what pip installs with it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for_developers = re.compile(r"test|lint|docs|bench")
    section = text.split("[project.optional-dependencies]")[1].split("\n[")[0]
    packages = dict(re.findall(r'^([\w-]+) = \[\s*"([\w-]+)', section, re.M))
    extras = {name: one for name, one in packages.items() if not for_developers.match(name)}
    assert {name: one for name, one in system.EXTRAS.items() if name != "dask"} == {
        name: one for name, one in extras.items() if name != "dask"
    }
    assert "dask" in extras and system.EXTRAS["dask"] == "distributed"
    own = re.search(r"^dependencies = \[(.*)\]", text, re.M)[1]
    assert tuple(re.findall(r'"(\w+)', own)) == system.LIBRARIES


def test_a_missing_package_is_a_missing_extra(monkeypatch):
    monkeypatch.setitem(system.EXTRAS, "tables", "no-such-package")
    assert "tables" in features()["missing extras"].split(", ")
    assert "tables" not in features()["extras"]


def test_without_affinity_all_cores_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert system.usable_cores() == os.cpu_count()


def test_memory_that_the_system_does_not_tell_is_four_gigabytes(monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    monkeypatch.setattr(system, "cgroup_value", lambda name: [])
    monkeypatch.setattr(system, "cgroup1_value", lambda *names: [])
    assert system.physical_memory() is None and usable_memory() == 4 << 30
    monkeypatch.setattr(system, "free_memory", lambda: None)
    assert available_memory() == 4 << 30


def test_without_the_files_of_linux_nothing_is_known_and_all_cores_are_used(monkeypatch):
    opened = open

    def without(path, *args, **how):
        if str(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(path)
        return opened(path, *args, **how)

    monkeypatch.setattr("builtins.open", without)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert system.free_memory() is None and not system.is_in_memory(tempfile.gettempdir())
    assert system.cgroup_value("cpu.max") == system.cgroup1_value("memory", "x") == []
    assert default_threads() == system.usable_cores()
    peak = system.peak_memory()  # of getrusage
    assert peak is None or 10**7 < peak < 10**11


def test_the_peak_memory_is_that_of_this_process():
    code = "from dcsvm import system; print(system.peak_memory())"
    ours = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 5e6 < int(ours.stdout) < 2e8


def test_a_file_is_read_anywhere_without_moving_its_position(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with open(path, "rb") as file:
        file.read(2)
        assert system.read_at(file.fileno(), 3, 6) == b"678"
        assert system.read_at(file.fileno(), 9, 8) == b"89"
        assert system.read_at(file.fileno(), 9, 10) == b""
        assert file.read(1) == b"2"


@pytest.mark.parametrize("has_call", [True, False])
def test_reserved_space_is_zeros(tmp_path, monkeypatch, has_call):
    if not has_call:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with open(tmp_path / "file", "w+b") as file:
        system.reserve(file.fileno(), 5000)
        assert file.read() == bytes(5000)


@pytest.mark.skipif(not system.HAS_LOCKS, reason="no locks on this system")
def test_a_locked_file_cannot_be_locked_again(tmp_path):
    with open(tmp_path / "file", "w") as file, open(tmp_path / "file") as other:
        system.lock(file)
        with pytest.raises(BlockingIOError):
            system.lock(other)


def test_read_ahead_changes_no_byte():
    memory = mmap.mmap(-1, 5000)
    memory[:3] = b"abc"
    for is_on in (False, True):
        system.read_ahead(memory, is_on=is_on)
    assert memory[:4] == b"abc\0"


def test_signals_that_stop_are_known_by_name():
    assert {one.name for one in system.STOP_SIGNALS} <= {"SIGINT", "SIGTERM", "SIGHUP"}
    assert signal.SIGTERM in system.STOP_SIGNALS
    assert set(system.TERMINAL_SIGNALS) == set(system.STOP_SIGNALS) - {signal.SIGTERM}


def test_this_machine_has_a_name():
    assert system.host_name()
