"""Test random damage to models, checkpoints and range files, and random arguments.

The error is one sentence that names the fault.

FUZZ_EXAMPLES is the number of examples of each test.
"""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
from checkpoints import checkpoints
from click.testing import CliRunner
from sound import check_checkpoint, check_model, check_range

from dcsvm.cli import guard, train, train_file

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

often = settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", 100)), deadline=None)

CORPUS = Path(__file__).with_name("corpus")
SEEDS = sorted(CORPUS.joinpath("model").iterdir())
CHECKPOINTS = sorted(CORPUS.joinpath("checkpoint").iterdir())

WORDS = [b"", b"9" * 4000, b"9" * 5000, b"\xff", b"\x00", b"\xc2\xb2"]
WORDS += b"nan inf -inf -1 0 -0.0 1 2.5 1000000000000 2147483646 1e400 1e999 1_0 0x10 x y".split()
WORDS += b"SV CENTERS EARLY_SV EARLY_RHO sparse dense one_class nu_svr probA rbf linear".split()
WORDS += [b"2147483646:1", b"1:1", b"1:nan"]

# is it in a line of features, position as a fraction of such lines, edit, new word, number of
# removed words or lines
edits = st.lists(
    st.tuples(
        st.booleans(),
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["replace", "insert", "drop", "drop line", "repeat line", "cut"]),
        st.sampled_from(WORDS) | st.binary(max_size=4),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)


def damaged(text, changes):
    """Return the text with words and lines replaced, inserted, dropped, repeated or cut off."""
    for in_features, place, action, word, count in changes:
        lines = [line.split(b" ") for line in text.split(b"\n")]
        numbers = [k for k, line in enumerate(lines) if (b":" in b"".join(line)) == in_features]
        number = numbers[int(place * len(numbers))] if numbers else 0
        line = lines[number]
        at = int(place * len(lines) * len(line)) % len(line)
        if action == "replace":
            line[at : at + 1] = [word]
        elif action == "insert":
            line[at:at] = [word]
        elif action == "drop":
            del line[at : at + count]
        elif action == "drop line":
            del lines[number : number + count]
        elif action == "repeat line":
            lines[number:number] = [line] * count
        text = b"\n".join(b" ".join(line) for line in lines)
        if action == "cut":
            text = text[: int(place * len(text))]
    return text


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def check_small(text):
    before = peak_mb()
    model = check_model(text)
    assert peak_mb() < before + 1000
    return model


every_model = pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
# without such a line the model is LIBSVM's, or lacks the section that this line begins
OPTIONAL = {b"scaling_weights", b"probA", b"converged", b"gap"}
LINES = [b"", b"nonsense", b"0", b"-1", b"1 1:1", b"SV", b"CENTERS", b"EARLY_SV", b"\xff\x00"]


@often
@given(path=st.sampled_from(SEEDS), changes=edits)
def test_damaged_models_load_or_say_why_not(path, changes):
    check_small(damaged(path.read_bytes(), changes))


@every_model
def test_what_fuzzing_begins_with_is_read(path):
    assert check_small(path.read_bytes()) is not None


@every_model
def test_a_missing_line_is_an_error_unless_a_model_may_lack_it(path):
    lines = path.read_bytes().splitlines(keepends=True)
    used = {
        line.split()[0]
        for number, line in enumerate(lines)
        if check_small(b"".join(lines[:number] + lines[number + 1 :]))
    }
    assert used <= OPTIONAL


@every_model
def test_a_model_with_a_replaced_line_is_refused_or_whole(path):
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(len(lines)):
        for line in LINES:
            check_small(b"".join([*lines[:number], line + b"\n", *lines[number + 1 :]]))


@every_model
def test_a_truncated_model_is_an_error_wherever_it_ends(path):
    text = path.read_bytes()
    assert not any(check_small(text[:end]) for end in range(len(text)))


@every_model
def test_a_line_twice_is_an_error(path):
    lines = path.read_bytes().splitlines(keepends=True)
    for number in range(len(lines)):
        assert not check_small(b"".join([*lines[: number + 1], *lines[number:]]))


@every_model
def test_every_header_value_may_be_anything(path):
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        for at in range(len(line.split()[:3]) if line[:1].isalpha() else 0):
            for word in WORDS:
                words = line.split()
                words[at] = word
                changed = [*lines[:number], b" ".join(words), *lines[number + 1 :]]
                check_small(b"\n".join(changed))


@often
@given(text=st.binary(max_size=200))
def test_other_bytes_are_no_model(text):
    assert check_small(text) is None


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.name)
def test_the_checkpoints_that_fuzzing_begins_with_are_restored(path):
    assert check_checkpoint(path.read_bytes()) is not None


def test_the_checkpoints_that_fuzzing_begins_with_have_what_a_checkpoint_has():
    """Else `make fuzz-checkpoints` makes them again."""
    made = checkpoints()
    assert [path.name for path in CHECKPOINTS] == sorted(made)
    for path in CHECKPOINTS:
        arrays = made[path.name]
        with np.load(path) as stored:
            assert set(stored.files) == arrays.keys()
            assert all(stored[name].shape == arrays[name].shape for name in stored.files)


@often
@given(path=st.sampled_from(CHECKPOINTS), changes=edits)
def test_damaged_checkpoints_are_restored_or_refused(path, changes):
    check_checkpoint(damaged(path.read_bytes(), changes))


@often
@given(path=st.sampled_from(CHECKPOINTS), at=st.floats(0, 1, exclude_max=True), byte=st.binary())
def test_a_checkpoint_with_other_bytes_is_restored_or_refused(path, at, byte):
    text = path.read_bytes()
    k = int(at * len(text))
    check_checkpoint(text[:k] + byte + text[k + len(byte) :])


RANGES = (b"x\n-1 1\n1 0 10\n3 -2.5 1e3\n", b"y\n0 1\n-5 5\nx\n0 1\n1 0 1\n2147483646 0 1\n")


@often
@given(text=st.sampled_from(RANGES), changes=edits)
def test_damaged_range_files_load_or_say_why_not(text, changes):
    check_range(damaged(text, changes))


ARGUMENTS = ["-w", "-w1", "-w-1", "-c", "-5", "5", "--", "-", "--gap", "--gap=1", "-gap", "data"]
ARGUMENTS += ["-q", "-v", "-quiet", "-g0.5", "--seed", "", "-", "--help", "-s", "-r", "nan"]


@often
@given(st.lists(st.sampled_from(ARGUMENTS) | st.text(max_size=4), max_size=8))
def test_random_arguments_are_taken_or_one_sentence_says_why_not(words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "check_files", lambda *_: None)
        patch.setattr(train_file, "train_file", lambda *_, **__: 0)
        result = CliRunner().invoke(train.main, words)
    assert result.exit_code in (0, 2), result.exception
    if result.exit_code == 2 and words:  # without any the usage is printed
        assert len(result.stderr.splitlines()) == 1, result.stderr
