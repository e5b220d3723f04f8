"""Prepare the benchmark's data sets as LIBSVM text from the files their publishers offer.

    python datasets.py --raw DIR --out DIR [NAME ...]

DIR of --raw holds them under their published names, plain or packed as .bz2, .xz or .gz: ijcnn1,
ijcnn1.t, a9a, a9a.t, covtype.libsvm.binary.scale, letter.scale, letter.scale.t (LIBSVM data page),
census-income.data, kddcup.data_10_percent, corrected (UCI), MNIST's train-* and t10k-* IDX files.
A set whose files are absent is skipped with a line on stderr; what is there is not made again;
files are written beside their names and renamed. Labels are +1 and -1, for letter 1 to 26.
"""

import argparse
import bz2
import errno
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

OPENERS = {"": open, ".bz2": bz2.open, ".xz": lzma.open, ".gz": gzip.open}
CENSUS_NUMERIC = {0, 5, 16, 17, 18, 30, 39}
CENSUS_WEIGHT = 24  # UCI: "should *not* be used in the classifiers"
KDD_CATEGORIES = {1, 2, 3}  # protocol, service, flag; the 0/1 attributes stay one feature each
MNIST_ROUND_DIGITS = (0, 3, 6, 8, 9)
COVTYPE_FILES = {"covtype.tr": None} | {f"covtype.{n}0000.tr": n * 10_000 for n in (1, 2, 5, 10)}

Files = Iterator[tuple[str, Iterable[bytes]]]  # name and lines of each


@dataclass(frozen=True)
class Recipe:
    """The files of a data set, and what makes them from the folder of published files."""

    outputs: tuple[str, ...]
    make: Callable[[Path], Files]


def open_raw(path: Path):
    """Open a published file for reading bytes, whichever way it is packed."""
    for suffix, opener in OPENERS.items():
        if (candidate := Path(f"{path}{suffix}")).exists():
            return opener(candidate, "rb")
    raise FileNotFoundError(errno.ENOENT, "no such file, plain or packed", str(path))


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write beside `path`, then rename: the name never shows half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as stream:
            stream.writelines(lines)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def unpack(sources: dict[str, str], count: int | None = None) -> Recipe:
    """Published files as they are, or their first rows: {name: published name}."""

    def make(raw: Path) -> Files:
        for output, source in sources.items():
            with open_raw(raw / source) as stream:
                yield output, islice(stream, count)

    return Recipe(tuple(sources), make)


def split(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers for training and for testing: one random fifth is for testing."""
    order = np.random.default_rng(0).permutation(n_rows)
    return order[n_rows // 5 :], order[: n_rows // 5]


def make_covtype(raw: Path) -> Files:
    """Label 2 becomes +1 and 1 becomes -1; the text of the features stays as published."""
    with open_raw(raw / "covtype.libsvm.binary.scale") as stream:
        rows = [(b"+1" if line[:1] == b"2" else b"-1") + line[1:] for line in stream]
    train, test = split(len(rows))
    yield "covtype.te", (rows[i] for i in test)
    for output, count in COVTYPE_FILES.items():
        yield output, (rows[i] for i in train[:count])


def make_mnist(raw: Path) -> Files:
    """Raw pixels 0..255; round digits against the rest, as the paper does for mnist8m."""
    for output, part in (("mnist.tr", "train"), ("mnist.te", "t10k")):
        with open_raw(raw / f"{part}-labels-idx1-ubyte") as stream:
            digits = np.frombuffer(stream.read(), np.uint8, offset=8)
        with open_raw(raw / f"{part}-images-idx3-ubyte") as stream:
            images = np.frombuffer(stream.read(), np.uint8, offset=16).reshape(len(digits), -1)
        yield output, map(mnist_line, np.isin(digits, MNIST_ROUND_DIGITS), images)


def mnist_line(is_round: bool, pixels: np.ndarray) -> bytes:
    places = np.flatnonzero(pixels)
    pairs = zip((places + 1).tolist(), pixels[places].tolist(), strict=True)
    text = " ".join(f"{index}:{value}" for index, value in pairs)
    return f"{'+1' if is_round else '-1'} {text}\n".encode()


def make_census(raw: Path) -> Files:
    """The .data file is split, as in the paper; the instance weight is left out, as UCI asks."""
    columns = read_columns(raw / "census-income.data")
    labels = np.where(columns.pop() == "50000+.", "+1", "-1")
    kept = [i for i in range(len(columns)) if i != CENSUS_WEIGHT]
    train, test = split(len(labels))
    encoders = [(i in CENSUS_NUMERIC, columns[i][train]) for i in kept]
    for output, part in (("census.tr", train), ("census.te", test)):
        yield output, encode(labels[part], [columns[i][part] for i in kept], encoders)


def make_kdd10(raw: Path) -> Files:
    """KDD Cup 1999, the 10 % training file and the labelled test file: normal (+1) or attack."""
    encoders = None
    for output, source in (("kdd10.tr", "kddcup.data_10_percent"), ("kdd10.te", "corrected")):
        columns = read_columns(raw / source)
        labels = np.where(columns.pop() == "normal.", "+1", "-1")
        encoders = encoders or [(i not in KDD_CATEGORIES, c) for i, c in enumerate(columns)]
        yield output, encode(labels, columns, encoders)


def read_columns(path: Path) -> list[np.ndarray]:
    """A comma-separated table as one array of strings per column; `?` is a value like any other."""
    with open_raw(path) as stream:
        rows = [line.decode("ascii").strip().split(",") for line in stream]
    return [np.char.strip(np.array(column)) for column in zip(*rows, strict=True)]


def encode(labels: np.ndarray, columns: list, encoders: list) -> Iterable[bytes]:
    """LIBSVM lines: numbers scaled to [0, 1] by the training range, one feature per category."""
    lines = labels.astype(object)
    index = 1
    for column, (is_numeric, training) in zip(columns, encoders, strict=True):
        text_of, width = (encode_number if is_numeric else encode_category)(training, index)
        values, inverse = np.unique(column, return_inverse=True)
        lines += np.array([text_of(value) for value in values], dtype=object)[inverse]
        index += width
    return (f"{line}\n".encode() for line in lines)


def encode_number(training: np.ndarray, index: int) -> tuple[Callable[[str], str], int]:
    numbers = np.unique(training).astype(float)
    low, span = numbers.min(), np.ptp(numbers) or np.inf  # a constant column is 0 everywhere

    def text_of(value: str) -> str:
        scaled = (float(value) - low) / span
        return f" {index}:{scaled:.9g}" if scaled else ""

    return text_of, 1


def encode_category(training: np.ndarray, index: int) -> tuple[Callable[[str], str], int]:
    """A category that training never saw sets no feature."""
    places = {value: index + i for i, value in enumerate(np.unique(training))}
    return lambda value: f" {places[value]}:1" if value in places else "", len(places)


RECIPES = {
    "ijcnn1": unpack({"ijcnn1": "ijcnn1", "ijcnn1.t": "ijcnn1.t"}),
    "ijcnn1.10000": unpack({"ijcnn1.10000": "ijcnn1"}, count=10_000),
    "covtype": Recipe(("covtype.te", *COVTYPE_FILES), make_covtype),
    "a9a": unpack({"a9a": "a9a", "a9a.t": "a9a.t"}),
    "a9a.10000": unpack({"a9a.10000": "a9a"}, count=10_000),
    "mnist": Recipe(("mnist.tr", "mnist.te"), make_mnist),
    "letter": unpack({"letter": "letter.scale", "letter.t": "letter.scale.t"}),
    "census": Recipe(("census.tr", "census.te"), make_census),
    "kdd10": Recipe(("kdd10.tr", "kdd10.te"), make_kdd10),
}


def prepare(name: str, raw: Path, out: Path) -> None:
    recipe = RECIPES[name]
    if not all((out / output).exists() for output in recipe.outputs):
        for output, lines in recipe.make(raw):
            write_lines(out / output, lines)
            print(output, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--raw", type=Path, required=True, help="folder of the published files")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(RECIPES)}")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or RECIPES:
        try:
            prepare(name, options.raw, options.out)
        except FileNotFoundError as missing:
            print(f"{name}: skipped, {missing.filename} is missing", file=sys.stderr)


if __name__ == "__main__":
    main()
