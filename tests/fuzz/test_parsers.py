"""Random damage to models, checkpoints and range files, random arguments: one sentence says what is
wrong.

FUZZ_EXAMPLES is the number of examples of each test.
"""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sound import check_checkpoint, check_model, check_range

from dcsvm.cli import train, train_file
from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.training.train import train_rows

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

often = settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", 100)), deadline=None)

CORPUS = Path(__file__).with_name("corpus")
SEEDS = sorted(CORPUS.joinpath("model").iterdir())
CHECKPOINTS = sorted(CORPUS.joinpath("checkpoint").iterdir())

WORDS = [b"nan", b"inf", b"-1", b"0", b"1000000000000", b"2147483646", b"1e999", b"SV", b"x", b"y"]
WORDS += [
    b"",
    b"9" * 4000,
    b"9" * 5000,
    b"\xff",
    b"\x00",
    b"1_0",
    b"0x10",
    b"CENTERS",
    b"EARLY_SV",
    b"sparse",
]
WORDS += [b"EARLY_RHO", b"one_class", b"nu_svr", b"probA"]
WORDS += [b"dense", b"rbf", b"linear", b"2147483646:1", b"1:nan"]

# whether in a line of features, a place as a fraction of those lines, what is done there, a word,
# how many words or lines go
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
    """The text with words and lines replaced, inserted, dropped, repeated, or cut off."""
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


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Texts of an exact, an early, a sparse and a precomputed kernel's model."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (240, 2)).astype(np.float32)
    y = np.where(np.hypot(*X.T) < 0.7, 1.0, -1.0)
    wide = np.zeros((240, 100), np.float32)
    wide[:, [3, 90]] = X
    path = tmp_path_factory.mktemp("models") / "model"
    texts = []
    K = np.exp(-2.0 * np.square(X[:, None] - X).sum(axis=2))
    kernel = {"kernel": "precomputed"}
    for rows, more in ((X, {}), (X, {"early": True}), (wide, {}), (K, kernel)):
        options = TrainOptions(
            C=4.0, gamma=2.0, levels=1, branching=2, threads=1, cache_mb=20, **more
        )
        train_rows(Rows.from_array(rows), y, options)[0].save(path)
        texts.append(path.read_bytes())
    return texts


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def check_small(text):
    before = peak_mb()
    model = check_model(text)
    assert peak_mb() < before + 1000
    return model


@often
@given(which=st.integers(0, 3), changes=edits)
def test_damaged_models_load_or_say_why_not(models, which, changes):
    check_small(damaged(models[which], changes))


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_what_fuzzing_begins_with_is_read(path):
    assert check_small(path.read_bytes()) is not None


@pytest.mark.parametrize("which", range(4))
def test_every_header_value_may_be_anything(models, which):
    lines = models[which].split(b"\n")
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
        patch.setattr(train_file, "train_file", lambda *_, **__: 0)
        result = CliRunner().invoke(train.main, words)
    assert result.exit_code in (0, 2), result.exception
    if result.exit_code == 2 and words:  # without any the usage is printed
        assert len(result.stderr.splitlines()) == 1, result.stderr
