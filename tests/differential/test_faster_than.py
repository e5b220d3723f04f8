"""Test the comparison of speed: its statistics, its tables of cases, its processes."""

from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import commands
import pytest
import values
from ratios import Measured, Ratio, geometric_mean, in_turn, is_slower_on_average, to_repeat

import dcsvm
from dcsvm.kernel.kernels import KERNEL_TYPES

SITE = Path(dcsvm.__file__).resolve().parents[1]

NAMED = (
    "levels", "early", "bias", "free vectors", "300 binary columns", "linear", "nu-SVC", "SVR",
    "several classes", "80 classes", "probabilities", "folds", "grid", "early grid", "easy",
    "compression", "many rows", "one row", "text", "CSV", "start",
)  # fmt: skip


def measured(name, *ratios):
    return Measured(name, Ratio.of([(2.0, 2.0 * ratio) for ratio in ratios]), "")


def test_the_ratio_is_the_median_of_pairs_with_their_quartiles():
    ratio = Ratio.of([(1.0, 1.2), (2.0, 2.0), (10.0, 9.0), (4.0, 6.0), (5.0, 5.5)])
    assert (ratio.low, ratio.middle, ratio.high) == pytest.approx((1.0, 1.1, 1.2))
    assert Ratio.of([(2.0, 3.0)]) == Ratio(1.5, 1.5, 1.5)


def test_states_are_measured_in_the_order_base_now_now_base():
    order = []
    pairs = list(islice(in_turn(lambda side: order.append(side) or side), 3))
    assert pairs == [("base", "now")] * 3
    assert order == ["base", "now", "now", "base", "base", "now"]


def test_a_case_is_slower_only_if_most_of_its_pairs_are():
    slow, noisy = measured("slow", 1.12, 1.13, 1.2, 1.5), measured("noisy", 0.8, 1.0, 1.5, 2.0)
    assert slow.ratio.is_slower and not noisy.ratio.is_slower
    many = [measured(f"{number}", 0.99) for number in range(10)]
    assert to_repeat([slow, *many]) == ["slow"]
    assert to_repeat(many) == []


def test_a_part_is_slower_if_its_geometric_mean_is():
    assert geometric_mean([measured("one", 2.0), measured("other", 0.5)]) == pytest.approx(1.0)
    assert geometric_mean([]) == 1.0
    some = [measured("one", 1.05), measured("other", 1.04)]
    assert is_slower_on_average(some) and to_repeat(some) == ["one", "other"]
    assert not is_slower_on_average([measured("one", 1.05), measured("other", 1.0)])


@pytest.fixture(scope="module")
def value_cases(tmp_path_factory):
    return values.value_cases(tmp_path_factory.mktemp("rows"), ["baseline", "avx2"])


def test_every_kernel_encoding_and_number_of_columns_has_a_case(value_cases):
    assert {case.kernel for case in value_cases} == {one.name for one in KERNEL_TYPES}
    for one in KERNEL_TYPES:
        own = [case for case in value_cases if case.kernel == one.name]
        expected = {"float32", "float64"}
        if not one.is_precomputed:
            expected |= {"bytes", "codes", "sparse"} | ({"far"} if one.is_of_distance else set())
        assert {case.encoding for case in own} == expected
        sizes = {str(case).rpartition("-")[2] for case in own}
        wanted = ["matrix"] if one.is_precomputed else map(str, values.COLUMNS)
        assert sizes == {*wanted}
    assert len({(case.isa, str(case)) for case in value_cases}) == len(value_cases)


def test_an_inner_interface_is_measured_or_named(value_cases, monkeypatch):
    monkeypatch.setattr(values, "N_PAIRS", 1)
    monkeypatch.setattr(values, "CALLS_MS", 0.01)
    one_each = {(case.encoding, case.is_matrix): case for case in value_cases[::-1]}
    sites = {"base": SITE, "now": SITE}
    found = list(values.measure(list(one_each.values()), sites))
    assert len(found) == len(values.ENCODINGS) + 2
    assert all(one.ratio.middle > 0 and not one.remark for one in found)
    wrong = values.replace(value_cases[0], kernel="of another commit")
    with pytest.raises(values.OtherInterfaceError, match="of another commit") as raised:
        list(values.measure([wrong], sites))
    assert raised.value.site == SITE


def test_instruction_sets_that_a_processor_lacks_are_named():
    text = 'target("avx2,fma") target("avx2,avxvnni") target("amx-tile") defined(__aarch64__)'
    assert values.absent_targets(text, {"avx2", "fma", "aarch64"}) == ["amx-tile", "avxvnni"]
    assert values.absent_targets(text, {"avx2", "fma", "avx_vnni", "amx_tile"}) == ["aarch64"]
    assert values.absent_targets("", values.processor_flags()) == []


def test_every_kind_of_command_has_a_case():
    names = [case.name for case in commands.COMMANDS]
    assert {*NAMED} <= {*names} and len(names) == len({*names})
    programs = {case.line.split()[0] for case in commands.COMMANDS}
    assert programs == {f"dcsvm-{one}" for one in ("train", "predict", "grid", "easy", "compress")}
    lines = (f"{case.before} {case.line}" for case in commands.COMMANDS)
    assert {*commands.files()} <= {word for line in lines for word in line.split()}


class Fake:
    """A state with these counts; a string in place of a count is the reason of a failure."""

    def __init__(self, **counts):
        self.counts = counts

    def prepare(self, case):
        found = self.counts[case]
        if isinstance(found, str):
            raise commands.FailedError(found)
        return {"iterations": found}

    def measure(self, case):
        counted = self.counts[case]
        return SimpleNamespace(wall=counted / 1e2, processor=counted / 1e2, peak_mb=counted / 10)


def test_commands_that_base_lacks_are_no_failures_and_counts_that_differ_are_listed():
    base, now = Fake(a=1000, b=5, c="no option", d=7), Fake(a=900, b=5, c=3, d="crash")
    known, remarks, failures = commands.prepare("abcd", {"base": base, "now": now})
    assert known == ["a", "b"]
    assert remarks == ["a: iterations 1,000 is now 900", "c: not measured, base fails: no option"]
    assert failures == ["d: crash"]


def test_a_command_has_its_time_ratio_and_the_memory_of_both():
    (one,) = commands.measure(["a"], {"base": Fake(a=100), "now": Fake(a=90)})
    assert one.ratio.middle == pytest.approx(0.9)
    assert one.words.split() == ["1.00", "s", "10", "MB,", "now", "9", "processor", "0.90"]


def test_a_command_runs_in_its_folder_and_its_failure_has_the_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    commands.write_text(tmp_path / "data" / "rows", *commands.made(40, "two", 0))
    runner = commands.Runner(SITE, tmp_path / "base", tmp_path / "data")
    case = commands.train("exact", "few rows", "", "-l 0 -g 1 rows")
    assert runner.prepare(case)["kernel_evaluations"] > 0
    assert runner.measure(case).peak_mb > 1
    with pytest.raises(commands.FailedError, match="dcsvm-train: status 1: .*nothing"):
        runner.prepare(commands.train("exact", "no rows", "", "nothing"))
