"""Test plan(): levels to run, the level of the early model, threads and memory."""

import os
from dataclasses import replace

import pytest

from dcsvm import machine, system
from dcsvm.machine import default_cache_mb, default_threads
from dcsvm.problem.options import TrainOptions
from dcsvm.training.memory import Plan, early_plan, make_plan, plan_levels


@pytest.mark.parametrize(
    ("n_samples", "levels"),
    [(1, ()), (3999, ()), (4000, (1,)), (15999, (1,)), (16000, (2,)), (64000, (3, 2)),
     (464810, (3, 2)), (1024000, (5, 3, 2))],
)  # fmt: skip
def test_the_default_levels_are_the_early_one_every_second_finer_one_and_level_2(n_samples, levels):
    chosen = make_plan(n_samples, None, 4, None)
    assert chosen.levels == levels
    assert chosen.skipped == ()


@pytest.mark.parametrize(
    ("n_samples", "wanted", "levels", "skipped"),
    [
        (399, 1, (), (1,)),
        (400, 1, (1,), ()),
        (400, 3, (1,), (3, 2)),
        (1600, 2, (2, 1), ()),
        (25600, 4, (4, 3, 2, 1), ()),
        (25599, 4, (3, 2, 1), (4,)),
        (1, 5, (), (5, 4, 3, 2, 1)),
        (10**6, 0, (), ()),
    ],
)
def test_levels_of_fewer_than_a_hundred_rows_a_cluster_are_skipped(
    n_samples, wanted, levels, skipped
):
    chosen = make_plan(n_samples, wanted, 4, None)
    assert chosen.levels == levels
    assert chosen.skipped == skipped


@pytest.mark.parametrize(("wanted", "early"), [(1, 1), (2, 2), (3, 3), (4, 3), (6, 3), (0, None)])
def test_the_early_level_has_branching_cubed_clusters_or_is_the_finest(wanted, early):
    assert make_plan(10**7, wanted, 4, None).early_level == early


def test_the_early_level_can_be_chosen():
    assert make_plan(10**7, 4, 4, 2).early_level == 2
    assert make_plan(10**7, 4, 4, 4).early_level == 4


@pytest.mark.parametrize(
    ("n_samples", "levels", "early"), [(10**6, 2, 3), (10**6, 0, 1), (100, 3, 1), (10**6, 2, 0)]
)
def test_an_early_level_that_does_not_run_is_refused(n_samples, levels, early):
    with pytest.raises(ValueError, match=f"early level {early} does not exist"):
        make_plan(n_samples, levels, 4, early)


def test_branching_other_than_four_counts_its_own_clusters():
    assert make_plan(800, 3, 2, None) == Plan((3, 2, 1), (), 3, 2)
    assert make_plan(800, 4, 2, None).skipped == (4,)
    assert make_plan(3000, 2, 30, None) == Plan((1,), (2,), 1, 30)


def test_a_plan_describes_itself():
    assert make_plan(10**6, 2, 4, None).describe() == "16, 4 clusters (levels 2, 1; early level 2)"
    assert make_plan(10, None, 4, None).describe() == "no clusters"
    skipped = make_plan(1000, 3, 4, None).describe()
    assert skipped.endswith("levels 2 to 3 skipped: fewer than 100 rows per cluster")


def test_an_early_run_is_planned_to_end_at_its_level():
    options = TrainOptions(early=True, levels=4, early_level=3)
    plan = plan_levels(options, 10**6, 10**6)
    assert plan.describe() == "256, 64 clusters (levels 4, 3; early level 3)"
    assert plan_levels(replace(options, early=False), 10**6, 10**6).levels == (4, 3, 2, 1)


@pytest.mark.parametrize(
    ("text", "threads"), [("1", 1), ("3", 3), ("5,2", 5), (" 4 ", 4), ("64", 8)]
)
def test_openmps_variable_sets_the_threads(monkeypatch, text, threads):
    monkeypatch.setattr(system, "usable_cores", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert default_threads() == threads


@pytest.mark.parametrize("text", ["", "0", "-2", "many", "1.5", "\u00b2"])
def test_a_variable_that_is_no_number_counts_for_nothing(monkeypatch, text):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    expected = default_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert default_threads() == expected


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_threads_follow_the_affinity_and_the_quota(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)))
    for words, threads in (
        (["max", "100000"], 6), (["250000", "100000"], 2), (["50000", "100000"], 1),
        (["900000", "100000"], 6), ([], 6),
    ):  # fmt: skip
        monkeypatch.setattr(system, "cgroup_value", lambda name, words=words: words)
        assert default_threads() == threads


def test_memory_is_half_of_what_may_be_used_and_at_most_eight_gigabytes(monkeypatch):
    pages = {"SC_PHYS_PAGES": 10**9, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(system, "cgroup1_value", lambda *names: [])
    for words, megabytes in (
        ([], 8000), (["max"], 8000), (["3000000000"], 1500), (["1000000"], 1), (["0"], 1),
    ):  # fmt: skip
        monkeypatch.setattr(system, "cgroup_value", lambda name, words=words: words)
        assert default_cache_mb() == megabytes


def test_the_defaults_of_this_machine_are_usable(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= default_threads() <= (os.cpu_count() or 1)
    assert 1 <= default_cache_mb() <= 8000


def test_early_models_of_few_rows_have_a_level_without_a_search():
    options = TrainOptions(early=True, branching=4)
    assert early_plan(options, 20_000).levels == (1,)
    assert early_plan(options, 50_000).levels == (2,)
    assert early_plan(options, 50_001).choices == (4, 3, 2, 1)
    assert early_plan(replace(options, early_level="auto"), 20_000).choices == (3, 2, 1)
    assert early_plan(replace(options, levels=2), 20_000).choices == (2, 1)


def test_a_cgroup_of_version_1_limits_the_memory(monkeypatch, tmp_path):
    groups = tmp_path / "cgroup"
    groups.write_text("9:name=systemd:/\n4:memory:/mine\n2:cpu,cpuacct:/c\n0::/two\n")
    opened = open

    def of_groups(path, *args, **how):
        return opened(groups if path == "/proc/self/cgroup" else path, *args, **how)

    monkeypatch.setattr("builtins.open", of_groups)
    paths = [system._own_cgroup(name) for name in ("memory", "cpuacct", "", "freezer")]
    assert paths == ["/mine", "/c", "/two", ""]
    (tmp_path / "limit").write_text("123456789\n")
    words = system._words_of(str(tmp_path), "/elsewhere", "limit")
    assert words == ["123456789"]
    monkeypatch.setattr(system, "cgroup1_value", lambda *_: words)
    assert machine.usable_memory() == 123456789
