"""Test which files a build compiles again, and that stale modules are told."""

import os
import runpy
import subprocess
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import dcsvm

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Return a function that compiles a file with flags, and whether it ran the compiler."""
    pytest.importorskip("Cython")
    monkeypatch.syspath_prepend(ROOT)
    compile_if_changed = runpy.run_path(str(ROOT / "setup.py"))["compile_if_changed"]
    monkeypatch.chdir(tmp_path)
    Path("with space.h").write_text("constexpr int one = 1;\n")
    Path("a.cc").write_text('#include "with space.h"\nint a() { return one; }\n')

    def run(*flags, fails=False):
        ran = []

        def spawn(command):
            ran.append(command)
            subprocess.run(command, check=True)
            if fails:
                raise KeyboardInterrupt

        compile_if_changed(spawn, ["g++", *flags, "-c", "a.cc", "-o", "a.o"])
        return len(ran) == 1

    for path in Path().iterdir():
        os.utime(path, (1, 1))  # not while it is compiled
    try:
        assert run()
    except FileNotFoundError:
        pytest.skip("no g++")
    return run


def test_a_file_is_compiled_again_only_after_a_change_of_its_contents_or_flags(compiled):
    assert not compiled()
    Path("a.cc").touch()
    assert not compiled()
    assert compiled("-O1") and not compiled("-O1")
    Path("with space.h").write_text("constexpr int one = 2;\n")
    os.utime("with space.h", (1, 1))
    assert compiled("-O1") and not compiled("-O1")
    os.unlink("a.o")
    assert compiled("-O1")


def test_the_object_of_an_interrupted_compilation_is_made_again(compiled):
    with pytest.raises(KeyboardInterrupt):
        compiled("-O1", fails=True)
    assert Path("a.o").exists() and compiled("-O1")


def test_a_file_that_changes_while_it_is_compiled_is_compiled_again(compiled):
    os.utime("a.cc", (2e9, 2e9))
    assert compiled("-O1") and compiled("-O1")


def test_modules_older_than_their_sources_are_told(tmp_path):
    module = tmp_path / "dcsvm" / f"_core{EXTENSION_SUFFIXES[0]}"
    source = tmp_path / "csrc" / "solver" / "solve.cc"
    for path in (module, source):
        path.parent.mkdir(parents=True)
        path.touch()
    os.utime(module, (1, 1))
    with pytest.warns(RuntimeWarning, match="solve.cc is newer .* run `make build`"):
        dcsvm._warn_of_old_modules(str(module.parent))
    os.utime(source, (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dcsvm._warn_of_old_modules(str(module.parent))
