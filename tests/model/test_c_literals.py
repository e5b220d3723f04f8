"""Test constants of C: numbers round-trip, texts are ASCII without trigraphs."""

import re

import numpy as np

from dcsvm.model.c_literals import WIDTH, array, doubles, floats, integers, number, texts


def test_numbers_round_trip():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=500) * 10.0 ** rng.integers(-30, 30, 500),
                             [0, 1, -2, 0.25, -0.5, 10.05, 16777217, 123456792, 1e16]])  # fmt: skip
    assert np.array_equal([float(text) for text in doubles(values)], values)
    singles = values.astype(np.float32)
    found = np.array([float(text.removesuffix("f")) for text in floats(singles)], np.float32)
    assert np.array_equal(found, singles)


def test_numbers_are_short():
    assert floats(np.array([0.0, 0.1, -0.25, 3.0, 1e-5])) == ["0", ".1f", "-.25f", "3", "1e-05f"]
    large = floats(
        np.array([2.0**24, 2.0**30])
    )  # as digits or with an exponent: as NumPy's version
    assert [np.float32(one.rstrip("f")) for one in large] == [2.0**24, 2.0**30]
    assert all(re.fullmatch(r"\d+\.\d+(e\+\d+)?f", one) and len(one) < 15 for one in large)
    assert doubles(np.array([0.1, -3.0, np.nan, np.inf])) == [".1", "-3", "NAN", "HUGE_VAL"]
    assert floats(np.zeros(0)) == []
    assert (number(2), number(-0.5), number(np.inf)) == ("2.0", "-0.5", "HUGE_VAL")


def test_arrays_have_the_shortest_type_and_lines_of_a_width():
    assert integers("a", np.array([0, 255])).startswith(
        "static const unsigned char a[] = {\n0,255,"
    )
    assert integers("a", np.array([256])).startswith("static const unsigned short a[]")
    assert integers("a", np.array([65536])).startswith("static const int a[]")
    assert integers("a", np.array([-1])).startswith("static const int a[]")
    assert array("double", "b", []) == "static const double b[] = {\n0\n};\n"
    assert max(map(len, integers("a", np.arange(1000)).splitlines())) <= WIDTH + 1


def test_texts_are_escaped():
    text = texts("t", ['a"\\', "??=", "é1\n"], is_public=True)
    assert text == 'const char *const t[] = {\n"a\\"\\\\","\\?\\?=","\\303\\2511\\012",\n};\n'
    assert "t_0[] = {\n'x'" in texts("t", ["x" * 5000])
