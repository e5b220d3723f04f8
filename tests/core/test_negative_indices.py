"""The Cython sources have no negative index; the check finds every form of one."""

from pathlib import Path

import pytest
from negative_indices import main, negative_indices

SOURCES = Path(__file__).parents[2] / "dcsvm"


@pytest.mark.parametrize(
    "line",
    [
        "indptr[-1]",
        "indptr[ - 1]",
        "block_start(nodes)[-n]",
        "rows[0][-1]",
        "values[i, -1]",
        "values[:, -1]",
        "values[i,  # comment\n       -1]",
        "values[starts[-1]]",
        "values[-(n + 1)]",
    ],
)
def test_a_negative_index_is_found(line):
    assert len(list(negative_indices(f"cdef f(x):\n    return {line}\n"))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "[-1, 1]",
        "f([-1])",
        "a[:-1]",
        "a[-n:]",
        "a[-f(x)[0] : 2]",
        "a[n - 1]",
        "{0: -1}",
        "a['-1']",
        "<const double[::1]> a",
    ],
)
def test_slices_lists_and_differences_are_left_alone(line):
    assert not list(negative_indices(f"cdef f(x):\n    return {line}\n"))


def test_no_source_has_a_negative_index(capsys):
    sources = [
        str(path) for ending in ("pyx", "pxi", "pxd") for path in SOURCES.glob(f"*.{ending}")
    ]
    assert len(sources) > 5
    assert main(sources) == 0, capsys.readouterr().out
