"""Test the reader: malformed lines, exact numbers, chunks and threads, storage formats."""

import contextlib
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest
from reference import csr_rows, dense_rows
from reference import dense as as_dense
from scipy import sparse

from dcsvm import _svmlight
from dcsvm.data.arrays import MAX_N_FEATURES
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import DataError
from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import without_empty_columns
from dcsvm.problem.formulation import class_order

TINY = np.float32(1e-45)
HUGE = np.finfo(np.float32).max


def parse(text, n_prefix=1, first_line=1, threads=1):
    return _svmlight.Text(text, n_prefix, first_line, threads).csr()


def parse_value(text):
    """Parse the text of one value; return its float32."""
    values = parse(b"1 1:" + text.encode())[3]
    return values[0] if len(values) else np.float32(0)


def same_arrays(left, right):
    return len(left) == len(right) and all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(left, right, strict=True)
    )


def random_floats(count, seed):
    """Return finite nonzero float32 from random bits, denormal and huge ones included."""
    bits = np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)
    floats = bits.view(np.float32)
    return floats[np.isfinite(floats) & (floats != 0)]


def many_lines(n_lines, seed=0):
    """Return enough text for several chunks, as bytes."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n_lines):
        columns = sorted(rng.sample(range(1, 200), rng.randrange(0, 12)))
        pairs = "".join(f" {j}:{rng.uniform(-1, 1):.6g}" for j in columns)
        lines.append(f"{rng.choice((1, -1))}{pairs}\n")
    return "".join(lines).encode()


# ------------------------------------------------------------------------------ well formed text


def test_a_file_becomes_labels_and_rows():
    prefix, indptr, indices, values, n_features = parse(b"+1 1:0.5 3:-2\n-1 2:1e-3\n2.5\n")
    assert prefix.tolist() == [[1.0], [-1.0], [2.5]]
    assert indptr.tolist() == [0, 2, 3, 3]
    assert indices.tolist() == [0, 2, 1]
    assert values.tolist() == [0.5, -2.0, np.float32(1e-3)]
    assert n_features == 3
    dtypes = [array.dtype for array in (prefix, indptr, indices, values)]
    assert dtypes == [np.float64, np.int64, np.int32, np.float32]


@pytest.mark.parametrize(
    "text",
    [
        b"1 1:1 2:2\n-1 1:3\n",
        b"1 1:1 2:2\n-1 1:3",
        b"1 1:1 2:2\r\n-1 1:3\r\n",
        b"1 1:1 2:2\r\n-1 1:3\r",
        b"  1\t1:1  2:2 \n-1 1:3\t\n",
        b"+1 +1:+1 2:2. \r\n-1.0e0 01:.3E+1",
        b"1 1:1 2:2 5:0 \n-1 1:3 4:-0.0 5:1e-60\n",
    ],
)
def test_spaces_signs_line_ends_and_zeros_do_not_matter(text):
    assert same_arrays(parse(text)[:4], parse(b"1 1:1 2:2\n-1 1:3\n")[:4])


def test_a_zero_is_not_stored_but_counts_as_a_feature():
    prefix, indptr, indices, values, n_features = parse(b"1 1:0 7:0\n")
    assert (indptr.tolist(), indices.tolist(), values.tolist()) == ([0, 0], [], [])
    assert n_features == 7


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_a_label_alone_is_a_row_of_zeros(ending):
    assert parse(b"-1" + ending)[1].tolist() == [0, 0]


def test_several_numbers_may_stand_before_the_features():
    prefix, _, indices, _, _ = parse(b"0.1 -2 3e300 4:1 \n0 0 0\n", n_prefix=3)
    assert prefix.tolist() == [[0.1, -2.0, 3e300], [0.0, 0.0, 0.0]]
    assert indices.tolist() == [3]


def test_the_largest_index_is_accepted():
    assert parse(b"1 2147483646:1\n")[4] == 2147483646


def test_any_buffer_of_bytes_is_accepted():
    for data in (bytearray(b"1 1:2"), memoryview(b"1 1:2"), np.frombuffer(b"1 1:2", np.uint8)):
        assert parse(data)[3].tolist() == [2.0]


def test_arrays_outlive_the_parse_and_can_be_written_to():
    values = parse(many_lines(2000))[3]
    copy = values.copy()
    parse(many_lines(2000, seed=1))
    assert values.tobytes() == copy.tobytes()
    values[0] = 7


# -------------------------------------------------------------------------------- malformed text

MALFORMED = {
    "second index 0": (b"1 0:1 00:1", "1:7: indices must ascend: 0 follows 0"),
    "large index from 0": (
        b"1 0:1\n1 2147483646:1",
        '2:3: the index in "2147483646:1" is above 2147483645',
    ),
    "index 0 after 1": (b"1 1:1 0:1", "1:7: indices must ascend: 0 follows 1"),
    "negative index": (b"1 1:1 -3:1", '1:7: feature indices start at 0 or 1, found "-3:1"'),
    "descending": (b"1 1:1\n1 5:1 3:1", "2:7: indices must ascend: 3 follows 5"),
    "repeated": (b"1 5:1 05:1", "1:7: indices must ascend: 5 follows 5"),
    "descending after zero": (b"1 5:0 3:1", "1:7: indices must ascend: 3 follows 5"),
    "index too large": (b"1 2147483647:1", '1:3: the index in "2147483647:1" is above 2147483646'),
    "index far too large": (
        b"1 00099999999999999999999999:1",
        '1:3: the index in "00099999999999999999999999:1" is above 2147483646',
    ),
    "index not whole": (b"1 1.5:1", '1:3: the index in "1.5:1" is not a whole number'),
    "index a sign": (b"1 -:1", '1:3: the index in "-:1" is not a whole number'),
    "index a word": (
        b"1 qid:3 1:1",
        '1:3: "qid:3" is the query of a ranking file; --lenient skips it',
    ),
    "no index": (b"1 :1", '1:3: no index before the colon in ":1"'),
    "no colon": (b"1 1:1 25", '1:7: no colon in "25", expected index:value'),
    "no value": (b"1 3:", '1:3: no value after the colon in "3:"'),
    "no value, CRLF": (b"1 3:\r\n", '1:3: no value after the colon in "3:"'),
    "space after colon": (b"1 3: 1", '1:3: no value after the colon in "3:"'),
    "value nan": (b"1 3:NaN", '1:5: value "NaN" is not finite'),
    "value inf": (b"1 3:-inf", '1:5: value "-inf" is not finite'),
    "value infinity": (b"1 3:Infinity", '1:5: value "Infinity" is not finite'),
    "value past float32": (b"1 3:1e39", '1:5: value "1e39" is too large for float32'),
    "value past float64": (b"1 3:-1e999", '1:5: value "-1e999" is too large for float32'),
    "text after value": (b"1 1:2abc", '1:5: value "2abc" is not a decimal number'),
    "two colons": (b"1 1:2:3", '1:5: value "2:3" is not a decimal number'),
    "half an exponent": (b"1 1:2e+", '1:5: value "2e+" is not a decimal number'),
    "a lone point": (b"1 1:.", '1:5: value "." is not a decimal number'),
    "two signs": (b"1 1:+-2", '1:5: value "+-2" is not a decimal number'),
    "hexadecimal": (b"1 1:0x1p3", '1:5: value "0x1p3" is not a decimal number'),
    "label missing": (b"1:2 2:1", '1:1: missing label before "1:2"'),
    "label a word": (b"cat 1:2", '1:1: label "cat" is not a decimal number'),
    "two labels": (b"1,2 1:2", '1:1: label "1,2" is not a decimal number'),
    "label nan": (b"nan 1:2", '1:1: label "nan" is not finite'),
    "label inf": (b" +INF 1:2", '1:2: label "+INF" is not finite'),
    "label too large": (b"1e999 1:2", '1:1: label "1e999" is too large'),
    "label hexadecimal": (b"0x10 1:2", '1:1: label "0x10" is not a decimal number'),
    "byte order mark": (
        b"\xef\xbb\xbf1 1:2",
        '1:1: label "\\xef\\xbb\\xbf1" is not a decimal number',
    ),
    "blank line": (b"1 1:1\n\n1 1:1\n", "2:1: blank line"),
    "only spaces": (b"1 1:1\n \t \n", "2:1: blank line"),
    "blank CRLF line": (b"1 1:1\r\n\r\n", "2:1: blank line"),
    "blank last line": (b"1 1:1\n  ", "2:1: blank line"),
    "comment line": (b"# a file", '1:1: comments are not accepted: "# a file"'),
    "comment after features": (b"1 1:2 # x", '1:7: comments are not accepted: "# x"'),
    "comment after label": (b"1 #x y\r\n", '1:3: comments are not accepted: "#x y"'),
    "comment against value": (b"1 1:2#x", '1:5: value "2#x" is not a decimal number'),
    "NUL in value": (b"1 1:2\x003", "1:6: the line contains a NUL byte"),
    "NUL in label": (b"\x001 1:2", "1:1: the line contains a NUL byte"),
    "NUL between": (b"1 1:2 \x00 2:1", "1:7: the line contains a NUL byte"),
    "NUL in index": (b"1 1\x00:2", "1:4: the line contains a NUL byte"),
    "NUL after colon": (b"1 1:\x00", "1:5: the line contains a NUL byte"),
    "old Mac line ends": (b"1 1:2\r1 1:3\r", '1:5: value "2\\x0d1" is not a decimal number'),
    "form feed": (b"1 1:2 \f", '1:7: no colon in "\\x0c", expected index:value'),
    "long token": (
        b"1 1:" + b"x" * 1000,
        '1:5: value "' + "x" * 30 + '..." is not a decimal number',
    ),
    "no final newline": (b"1 1:1\n1 2:x", '2:5: value "x" is not a decimal number'),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_text_is_refused_with_its_place(kind):
    text, message = MALFORMED[kind]
    with pytest.raises(DataError) as error:
        Dataset.of_text(text, "some.txt")
    assert str(error.value) == f"some.txt:{message}"


def test_empty_text_has_no_rows():
    with pytest.raises(_svmlight.ParseError, match="^1:1: no rows$"):
        parse(b"")


def test_a_parse_error_carries_its_parts():
    with pytest.raises(_svmlight.ParseError) as error:
        parse(b"1 1:1\n1 0:1\n", first_line=41)
    assert (error.value.line, error.value.column) == (42, 3)
    assert error.value.reason == 'feature indices start at 1, found "0:1"'
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    "text, message",
    [
        (b"1 2 3 1:1\n1 2", "2:4: missing coefficient 3 of 3"),
        (b"1 2 1:1", '1:5: missing coefficient 3 of 3 before "1:1"'),
        (b"1 2 x 1:1", '1:5: coefficient "x" is not a decimal number'),
        (b"1 2 3 4 1:1", '1:7: no colon in "4", expected index:value'),
    ],
)
def test_missing_prefix_numbers_are_named(text, message):
    with pytest.raises(_svmlight.ParseError) as error:
        _svmlight.Text(text, 3, 1, 1, b"coefficient").csr()
    assert str(error.value) == message


def test_a_prefix_of_no_numbers_is_refused():
    with pytest.raises(ValueError, match="n_prefix"):
        parse(b"1:1", n_prefix=0)


# --------------------------------------------------------------------------------------- lenient


@pytest.mark.parametrize(
    "text, plain",
    [
        (b"1 1:1 2:2 # a comment\n", b"1 1:1 2:2\n"),
        (b"1 # none\n-1 2:1 x 7 -3\r\n1 nan inf", b"1\n-1 2:1\n1"),
        (b"1 1: 0.5 3:\t  2\n", b"1 1:0.5 3:2\n"),
        (b"0x10 1:0x1.8p3 2:-0XFF 3:0x0\n", b"16 1:12 2:-255 3:0\n"),
        (b"+1 +1:+1. 02:2e0 \r\n-1", b"1 1:1 2:2\n-1\n"),
    ],
)
def test_lenient_text_is_read_as_libsvm_reads_it(text, plain):
    with pytest.raises(DataError) if b"+1 " not in text else contextlib.nullcontext():
        Dataset.of_text(text, "strict")
    lenient = Dataset.of_text(text, "lenient", lenient=True)
    expected = Dataset.of_text(plain, "plain")
    assert lenient.labels.tolist() == expected.labels.tolist()
    assert lenient.rows.dense.tolist() == expected.rows.dense.tolist()


RANKING = b"""2 qid:1 1:0.5 3:2 #docid = GX00 inc = 1
-1 qid:1  2:1
0.5\tqid:20
1 2:4
"""


@pytest.mark.parametrize("threads", [1, 4])
def test_lenient_reading_skips_the_query_of_a_ranking_file(threads):
    plain = re.sub(rb"[ \t]qid:\d+| #.*", b"", RANKING)
    data = Dataset.of_text(RANKING * 500, "t.txt", lenient=True, threads=threads)
    same = Dataset.of_text(plain * 500, "t.txt", threads=threads)
    assert data.labels.tolist() == same.labels.tolist()
    assert data.rows.dense.tolist() == same.rows.dense.tolist()
    kernel = b"1 qid:3 0:1 1:1 2:.5\n-1 qid:4 0:2 1:.5 2:1\n"
    rows = Dataset.of_text(kernel, "k", lenient=True, kernel_values=True).rows
    assert rows.dense.tolist() == [[1, 0.5], [0.5, 1]]


@pytest.mark.parametrize(
    "text, message",
    [
        (b"1 1:2 qid:3", '1:7: the index in "qid:3" is not a whole number'),
        (b"qid:3 1:2", '1:1: missing label before "qid:3"'),
        (b"1 qi:3", '1:3: the index in "qi:3" is not a whole number'),
    ],
)
def test_a_query_elsewhere_is_an_error(text, message):
    for lenient in (False, True):
        with pytest.raises(DataError) as error:
            Dataset.of_text(text, "t", lenient=lenient)
        assert str(error.value) == f"t:{message}"


def test_a_query_of_a_precomputed_kernel_is_named():
    with pytest.raises(DataError, match='k:1:3: "qid:3" is the query of a ranking file; --lenient'):
        Dataset.of_text(b"1 qid:3 0:1 1:1\n", "k", kernel_values=True)


STILL_MALFORMED = [kind for kind in MALFORMED if kind not in (
    "no colon", "comment line", "comment after features", "comment after label", "index a word",
    "space after colon", "hexadecimal", "label hexadecimal", "form feed",
)]  # fmt: skip


@pytest.mark.parametrize("kind", STILL_MALFORMED)
def test_lenient_reading_refuses_the_rest_with_the_same_words(kind):
    text, message = MALFORMED[kind]
    with pytest.raises(DataError) as error:
        Dataset.of_text(text, "some.txt", lenient=True)
    assert str(error.value) == f"some.txt:{message}"


@pytest.mark.parametrize(
    "text, message",
    [
        (b"1 1:1 x 2:1", '1:7: no colon in "x", expected index:value'),
        (b"1 1:1 # see a:b", '1:7: comments are not accepted: "# see a:b"'),
        (b"1 1: nan", '1:6: value "nan" is not finite'),
        (b"1 1: \n", '1:3: no value after the colon in "1: "'),
        (b"1 1:0x", '1:5: value "0x" is not a decimal number'),
        (b"1 1:0x1,8", '1:5: value "0x1,8" is not a decimal number'),
        (b"1 1:0x1p999", '1:5: value "0x1p999" is too large for float32'),
        (b"1 1:1 0:2", "1:7: indices must ascend: 0 follows 1"),
        (b"1 1:1 x\x00", "1:8: the line contains a NUL byte"),
    ],
)
def test_lenient_reading_has_limits(text, message):
    with pytest.raises(DataError) as error:
        Dataset.of_text(text, "some.txt", lenient=True)
    assert str(error.value) == f"some.txt:{message}"


# --------------------------------------------------------------------------------- exact numbers


def test_values_are_the_float_nearest_to_pythons_float():
    rng = random.Random(1)
    texts = [repr(float(x)) for x in random_floats(3000, seed=2)]
    texts += [f"{rng.uniform(-1, 1):.{rng.randrange(0, 25)}g}" for _ in range(3000)]
    texts += [f"{rng.uniform(0, 9):.{rng.randrange(12, 22)}f}" for _ in range(3000)]
    texts += [f"{rng.randrange(10**24)}e{rng.randrange(-60, 14)}" for _ in range(3000)]
    texts += [f"0.{rng.randrange(10**19):019d}E{rng.randrange(-45, 38)}" for _ in range(3000)]
    for text in texts:
        assert parse_value(text).tobytes() == np.float32(float(text)).tobytes(), text


@pytest.mark.parametrize(
    "text",
    [
        "1.4012984643248170709e-45",
        "0.70064923216240853546e-45",  # half of the smallest denormal: ties to zero
        "0.70064923216240853547e-45",
        "1.1754943508222875e-38",
        "3.4028234663852886e38",
        "3.4028235677973362e38",  # just below the values that round to infinity
        "16777217",
        "16777217.0000000000000001",
        "16777217.00000000500",  # 19 digits, just above and just below the middle of two floats
        "16777216.99999999500",
        "9007199254740993",
        "0.1000000014901161193847656250000001",
        "1" + "0" * 300 + "e-300",
        "0." + "0" * 5000 + "125e5000",
        "1" + "0" * 5000 + "1e-5001",
        "33554433" + "0" * 900 + "1e-901",
        "000000000000000000000000000000.5",
        "0e999999999999999999999999",
        "1e-999999999999999999999999",
    ],
)
def test_awkward_values_are_rounded_as_python_rounds_them(text):
    for signed in (text, "-" + text):
        expected = np.float32(float(signed)) if float(signed) else np.float32(0)
        assert parse_value(signed) == expected


def test_labels_are_pythons_float():
    rng = random.Random(3)
    texts = [repr(rng.uniform(-1, 1) * 10 ** rng.uniform(-300, 300)) for _ in range(3000)]
    texts += [f"{rng.randrange(10**19)}e{rng.randrange(-30, 30)}" for _ in range(3000)]
    texts += ["5e-324", "2.4703282292062328e-324", "1.7976931348623157e308", "-0.0", "1e-400"]
    texts += ["9007199254740993." + "0" * 1000 + "1", "9007199254740993." + "0" * 1000]
    labels = parse("\n".join(texts).encode())[0][:, 0]
    assert labels.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_a_decimal_comma_locale_changes_nothing():
    code = (
        "import locale\n"
        "from dcsvm import _svmlight\n"
        "locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\n"
        "text = b'0.1000000000000000055511151 1:0.5'\n"
        "prefix, *csr, _ = _svmlight.Text(text).csr()\n"
        "print(prefix[0, 0], _svmlight.write_csr(prefix, *csr))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "unsupported locale" in run.stderr:
        pytest.skip("no locale with a decimal comma is installed")
    assert run.stdout == "0.1 b'0.1 1:0.5 \\n'\n"


# ------------------------------------------------------------------------------ writing and back


def test_written_rows_read_back_bit_for_bit():
    values = np.concatenate((random_floats(20000, seed=4), [TINY, -TINY, HUGE, -HUGE]))
    values = values[: len(values) // 4 * 4].astype(np.float32)
    dense = np.ascontiguousarray(values.reshape(-1, 4))
    dense[::3, 1] = 0
    prefix = np.random.default_rng(5).normal(size=(len(dense), 2)) * 1e-150
    text = _svmlight.write_dense(prefix, dense)
    back, *csr, n_features = parse(text, n_prefix=2)
    assert back.tobytes() == prefix.tobytes()
    assert _svmlight.densify(*csr, n_features, 1).tobytes() == dense.tobytes()
    assert _svmlight.write_csr(prefix, *csr) == text
    assert _svmlight.write_dense(prefix, dense, threads=3) == text


def test_the_first_bad_row_is_told_for_any_number_of_threads():
    dense = np.ones((1000, 1), np.float32)
    dense[[300, 700]] = np.nan
    with pytest.raises(ValueError, match="row 300 holds"):
        _svmlight.write_dense(np.zeros((1000, 1)), dense, threads=3)


def test_lines_look_as_svm_train_writes_them():
    dense = np.array([[0.5, 0, 1], [0, 0, 0], [0, 1e20, 0.1]], np.float32)
    prefix = np.array([[1.0, 0.25], [-1.0, 1e-5]])
    text = _svmlight.write_dense(prefix, dense, np.array([2, 1]))
    assert text == b"1 0.25 2:1e+20 3:0.1 \n-1 1e-05 \n"


def test_rows_are_written_in_the_order_asked_for():
    _, *csr, _ = parse(b"1 1:1\n1 2:2\n1 3:3\n")
    text = _svmlight.write_csr(np.zeros((4, 1)), *csr, np.array([2, 0, 0, 1]))
    assert text == b"0 3:3 \n0 1:1 \n0 1:1 \n0 2:2 \n"


@pytest.mark.parametrize("number", [-1, 3, 2**62])
def test_a_row_that_does_not_exist_is_not_written(number):
    with pytest.raises(IndexError, match="not one of 3"):
        _svmlight.write_dense(np.zeros((1, 1)), np.ones((3, 2), np.float32), np.array([number]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_not_written(bad):
    with pytest.raises(ValueError, match="row 0 holds a value that is not finite"):
        _svmlight.write_dense(np.zeros((1, 1)), np.full((1, 2), bad, np.float32))
    with pytest.raises(ValueError, match="row 0 has a prefix that is not finite"):
        _svmlight.write_dense(np.full((1, 1), bad), np.ones((1, 2), np.float32))


@pytest.mark.parametrize(
    "indptr, indices",
    [([0, 3], [0, 1]), ([0, -1], [0, 1]), ([-1, 1], [0, 1]), ([2, 1], [0, 1]), ([0, 2], [0, -1])],
)
def test_broken_csr_arrays_are_refused(indptr, indices):
    csr = (np.array(indptr), np.array(indices, np.int32), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="row 0"):
        _svmlight.densify(*csr, 2, 1)
    with pytest.raises(ValueError, match="row 0"):
        _svmlight.write_csr(np.zeros((1, 1)), *csr)


def test_arrays_of_unequal_length_are_refused():
    one, two = np.ones(1, np.float32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="do not belong together"):
        _svmlight.densify(np.array([0, 1]), two, one, 2, 1)
    with pytest.raises(ValueError, match="2 prefix rows for 1 lines"):
        _svmlight.write_dense(np.zeros((2, 1)), np.ones((1, 1), np.float32))


# ---------------------------------------------------------------------------- chunks and threads


def test_many_chunks_give_what_one_gives():
    text = many_lines(30000)
    assert len(text) > 4 * 2**18
    lines = text.splitlines(keepends=True)
    whole = parse(text)
    parts = [parse(b"".join(lines[k : k + 1000])) for k in range(0, len(lines), 1000)]
    for which in (0, 2, 3):
        joined = np.concatenate([part[which] for part in parts])
        assert whole[which].tobytes() == joined.tobytes()
    lengths = np.concatenate([np.diff(part[1]) for part in parts])
    assert np.diff(whole[1]).tolist() == lengths.tolist()
    assert whole[4] == max(part[4] for part in parts)


@pytest.mark.parametrize("end", [b"", b"1 5:5"])
def test_threads_change_nothing(end):
    text = many_lines(30000) + end
    once = parse(text, threads=1)
    assert same_arrays(once, parse(text, threads=4))
    dense = _svmlight.densify(*once[1:], 1)
    assert dense.tobytes() == _svmlight.densify(*once[1:], 4).tobytes()


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_of_several_errors_is_reported(threads):
    lines = many_lines(30000).splitlines()
    for number in (29999, 20000, 12345, 12344):
        lines[number] = b"1 1:oops"
        with pytest.raises(_svmlight.ParseError) as error:
            parse(b"\n".join(lines), threads=threads)
        assert (error.value.line, error.value.column) == (number + 1, 5)


def test_lines_longer_than_a_chunk_are_parsed():
    long_line = b"1" + b"".join(b" %d:1" % j for j in range(1, 100001))
    text = b"\n".join([long_line, b"1 3:1", long_line, long_line])
    _, indptr, _, values, n_features = parse(text, threads=2)
    assert np.diff(indptr).tolist() == [100000, 1, 100000, 100000]
    assert (len(values), n_features) == (300001, 100000)


def test_the_text_may_end_anywhere():
    text = b"1 1:0.123456789 3:25\n-1\n2 2:1e5\n3 4:.5 7:12345678901\n4\n5 \n" * 2
    for size in range(1, len(text) + 1):
        lines = text[:size].split(b"\n")
        lines = lines[:-1] if lines[-1] == b"" else lines
        try:
            whole = parse(text[:size])
        except _svmlight.ParseError as error:
            assert error.line == len(lines)
            continue
        for number, line in enumerate(lines):
            _, _, indices, values, _ = parse(line)
            begin, end = whole[1][number : number + 2]
            assert whole[2][begin:end].tolist() == indices.tolist()
            assert whole[3][begin:end].tolist() == values.tolist()


@pytest.mark.parametrize("zeros", [1, 20])
def test_zeros_leave_no_gaps_between_chunks(zeros):
    line = b"1 1:3" + b"".join(b" %d:0" % j for j in range(2, 2 + zeros)) + b" 99:0.5\n"
    prefix, indptr, indices, values, n_features = parse(line * 40000, threads=2)
    assert (indptr == 2 * np.arange(40001)).all()
    assert (indices.reshape(-1, 2) == [0, 98]).all()
    assert (values.reshape(-1, 2) == [3, 0.5]).all()
    assert n_features == 99
    assert Dataset.of_text(line * 40000, "zeros").rows.is_dense == (2 / 99 >= 0.05)


def test_values_can_be_kept_in_float64():
    prefix, indptr, indices, values, n_features = _svmlight.Text(b"1 1:0.1 2:0 3:1e300\n").csr(
        float64=True
    )
    assert values.tolist() == [0.1, 1e300]
    assert (indptr.tolist(), indices.tolist(), n_features) == ([0, 2], [0, 2], 3)
    with pytest.raises(_svmlight.ParseError, match='^1:5: value "1e999" is too large$'):
        _svmlight.Text(b"1 1:1e999").csr(float64=True)


# ------------------------------------------------------------------------------------------ fuzz

SEEDS = (
    b"1 1:0.5 2:1 7:-3e-5\n-1 3:1\n+1 1:1e10 2:.5 \r\n",
    b"-1.5e3\t1:12345678901234567890 10:0\n2",
    b"0 0 1:1\n",
)
PIECES = [b" ", b"\n", b"\r", b"\r\n", b"\t", b"\x00", b"\xff", b"9" * 30, b"0" * 900 + b"1"]
PIECES += b": - + . e 1e999 nan # 0x1p3 2147483647:1 1:".split()


def mutated(rng):
    text = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        action = rng.randrange(4)
        if action == 0 and at < len(text):
            text[at] = rng.randrange(256)
        elif action == 1:
            text[at:at] = rng.choice(PIECES)
        elif action == 2:
            del text[at : at + rng.randrange(1, 5)]
        else:
            text[at:] = rng.choice(SEEDS)[rng.randrange(10) :]
    return bytes(text)


@pytest.mark.parametrize("n_prefix", [1, 2])
def test_random_damage_gives_rows_or_an_error_inside_the_text(n_prefix):
    rng = random.Random(6)
    outcomes = {True: 0, False: 0}
    for _ in range(20000):
        text = mutated(rng)
        try:
            prefix, indptr, indices, values, n_features = parse(text, n_prefix)
        except _svmlight.ParseError as error:
            lines = text.split(b"\n")
            assert 1 <= error.line <= len(lines)
            assert 1 <= error.column <= len(lines[error.line - 1]) + 1
            assert error.reason.isprintable()
            outcomes[False] += 1
            continue
        outcomes[True] += 1
        assert np.isfinite(prefix).all()
        assert np.isfinite(values).all()
        assert len(prefix) == len(indptr) - 1 == text.count(b"\n") + (text[-1:] != b"\n")
        assert len(indices) == len(values) == indptr[-1]
        assert all(0 <= j < n_features for j in indices)
        if n_features < 1000:
            dense = np.zeros((len(prefix), n_features), np.float32)
            _, n_stored = _svmlight.Text(text, n_prefix).dense(dense)
            assert (
                dense.tobytes()
                == _svmlight.densify(indptr, indices, values, n_features, 1).tobytes()
            )
            assert n_stored == len(values)
        back = parse(_svmlight.write_csr(prefix, indptr, indices, values), n_prefix)
        assert same_arrays(back[:4], (prefix, indptr, indices, values))
    assert min(outcomes.values()) > 100


# ------------------------------------------------------------------------------------------ Rows


def dense_and_csr():
    """Return the same rows in both storage formats."""
    X = np.random.default_rng(8).normal(size=(7, 5)).astype(np.float32)
    X[X < 0] = 0
    return dense_rows(X), csr_rows(X)


@pytest.mark.parametrize(
    "row_numbers", [[], [3], [6, 0, 3, 3], np.arange(7), np.array([1], np.int32)]
)
def test_taken_rows_are_the_same_dense_and_sparse(row_numbers):
    dense, csr = (rows.take(row_numbers) for rows in dense_and_csr())
    assert dense.is_dense
    assert not csr.is_dense
    assert dense.n_samples == csr.n_samples == len(row_numbers)
    assert as_dense(csr).tobytes() == dense.dense.tobytes()
    assert csr.indptr.dtype == np.int64
    assert csr.indices.dtype == np.int32


def test_more_features_are_columns_of_zeros():
    dense, csr = (rows.with_features(9) for rows in dense_and_csr())
    assert dense.n_features == csr.n_features == 9
    assert as_dense(csr).tobytes() == dense.dense.tobytes()
    assert not dense.dense[:, 5:].any()
    for rows in dense_and_csr():
        with pytest.raises(ValueError, match="rows of 5 features do not fit 4"):
            rows.with_features(4)


def test_dense_rows_do_not_grow_without_bound():
    dense, csr = dense_and_csr()
    wide = dense.with_features(MAX_N_FEATURES)
    assert (wide.is_dense, wide.n_features) == (False, MAX_N_FEATURES)
    assert same_arrays(
        (wide.indptr, wide.indices, wide.values), (csr.indptr, csr.indices, csr.values)
    )
    assert dense.with_features(64).is_dense


def test_columns_without_values_are_left_out_where_there_are_far_too_many():
    a = Rows.of_csr(*parse(b"1 3:1 2147483646:2\n1\n")[1:])
    b = Rows.of_csr(*parse(b"1 1:4 3:5 2147483646:0\n")[1:])
    left, right = without_empty_columns(a, b)
    assert (left.n_features, left.indices.tolist()) == (3, [1, 2])
    assert (right.n_features, right.indices.tolist()) == (3, [0, 1])
    assert without_empty_columns(a)[0].n_features == 2
    dense, csr = dense_and_csr()
    for rows in (dense, csr):
        assert without_empty_columns(rows) == (rows,)


def test_bytes_are_those_of_the_arrays():
    dense, csr = dense_and_csr()
    assert dense.nbytes == 7 * 5 * 4
    assert csr.nbytes == 8 * 8 + 8 * len(csr.values)


@pytest.mark.parametrize(
    "n_features, stored, is_dense",
    [(64, 0, True), (65, 0, False), (100, 49, False), (100, 50, True), (10**6, 10**4, False)],
)
def test_the_form_follows_the_number_of_features_and_the_density(n_features, stored, is_dense):
    indptr = np.array([0, stored] + [stored] * 9)
    csr = (indptr, np.arange(stored, dtype=np.int32), np.ones(stored, np.float32))
    rows = Rows.of_csr(*csr, n_features)
    assert rows.is_dense == is_dense
    assert (rows.n_samples, rows.n_features) == (10, n_features)


@pytest.mark.parametrize("density", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("n_features", [3, 300])
def test_arrays_sparse_matrices_and_text_give_the_same_rows(n_features, density):
    rng = np.random.default_rng(9)
    shape = (40, n_features)
    X = np.where(rng.random(shape) < density, rng.normal(size=shape), 0)
    X[0, -1] = 1
    text = _svmlight.write_dense(np.ones((40, 1)), X.astype(np.float32))
    expected = Dataset.of_text(text, "text").rows
    for other in (X, X.T.copy().T, sparse.csr_matrix(X), sparse.coo_array(X), sparse.csc_array(X)):
        rows = Rows.from_array(other)
        assert rows.is_dense == expected.is_dense
        for name in ("dense", "indptr", "indices", "values"):
            left, right = getattr(rows, name), getattr(expected, name)
            assert (left is None) == (right is None)
            assert left is None or (left.dtype == right.dtype and left.tobytes() == right.tobytes())


def test_sparse_duplicates_are_summed_and_the_matrix_is_left_alone():
    X = sparse.csr_matrix(
        (np.array([1.0, 2.0, 4.0, 1e-60]), np.array([99, 3, 99, 5]), np.array([0, 3, 4])),
        shape=(2, 100),
    )
    rows = Rows.from_array(X)
    assert rows.indptr.tolist() == [0, 2, 2]
    assert rows.indices.tolist() == [3, 99]
    assert rows.values.tolist() == [2.0, 5.0]
    assert X.indices.tolist() == [99, 3, 99, 5]


def test_float32_arrays_are_shared_and_others_converted():
    X = np.ones((2, 3), np.float32)
    assert Rows.from_array(X).dense is X
    for other in (X.astype(bool), X.astype(np.int8), X.astype(np.uint64), X.astype(np.float16)):
        assert Rows.from_array(other).dense.tobytes() == X.tobytes()
    assert Rows.from_array([[1, 1, 1], [1, 1, 1]]).dense.tobytes() == X.tobytes()


@pytest.mark.parametrize(
    "X, message",
    [
        (np.ones(3), "expected rows and columns, got an array of 1 dimensions"),
        (np.ones((2, 2), complex), "expected real numbers, got an array of complex128"),
        ([["a", "b"]], "expected real numbers, got an array of <U1"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "row 1, column 1 is not a finite float32"),
        (np.array([[1.0, 1e39]]), "row 0, column 1 is not a finite float32"),
    ],
)
def test_arrays_that_are_not_finite_real_rows_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Rows.from_array(X)


def test_sparse_values_that_are_not_finite_are_refused():
    X = sparse.csr_matrix(np.array([[0, 0], [0, 0], [1, np.inf]]))
    with pytest.raises(ValueError, match="row 2, column 1 is not a finite float32"):
        Rows.from_array(X)


# ----------------------------------------------------------------------------------------- files


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "empty").touch()
    for name, reason in (("none", "no such file"), ("", "is a directory"), ("empty", "no rows")):
        path = str(tmp_path / name)
        with pytest.raises(DataError) as error:
            Dataset.read(path)
        assert str(error.value) == f"{path}: {reason}"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all files")
def test_a_file_without_permission_is_named(tmp_path):
    path = tmp_path / "locked"
    path.touch(mode=0)
    with pytest.raises(DataError, match="locked: permission denied"):
        Dataset.read(path)


def test_a_name_with_a_nul_is_refused():
    with pytest.raises(DataError, match="null byte"):
        Dataset.read("a\0b")


# ---------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    "labels, order, classes",
    [
        ([1, -1, 1], [1, -1], [0, 1, 0]),
        ([-1, 1, 1], [1, -1], [1, 0, 0]),
        ([2, 1, 2], [2, 1], [0, 1, 0]),
        ([-1, 0, 0], [-1, 0], [0, 1, 1]),
        ([0.5, 7, 0.5], [0.5, 7], [0, 1, 0]),
        ([-1, 1, 3, 1], [-1, 1, 3], [0, 1, 2, 1]),
    ],
)
def test_labels_are_ordered_as_libsvm_orders_them(labels, order, classes):
    found_order, found_classes = class_order(np.array(labels, float))
    assert found_order.tolist() == order
    assert found_classes.tolist() == classes


@pytest.mark.parametrize(
    "labels, message",
    [
        ([], "training needs two classes, found none"),
        ([1, 1], "training needs two classes, found one: 1"),
        ([0.5], "training needs two classes, found one: 0.5"),
    ],
)
def test_fewer_than_two_classes_are_refused(labels, message):
    with pytest.raises(ValueError) as error:
        class_order(np.array(labels, float))
    assert str(error.value) == message
