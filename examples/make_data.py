"""Make data sets: problems that need a kernel, of any size.

    python make_data.py checkerboard FOLDER [--train 20000] [--test 5000] [--noise 0.02]
    python make_data.py digits N FOLDER --raw RAW [--round] [--npy]
    python make_data.py gaussians N FOLDER
    python make_data.py webspam FOLDER
    python make_data.py cifar FOLDER [--images FOLDER]
    python make_data.py mnist8m FOLDER --raw RAW [--rows 8100000]

Each has --seed. The modules of made/ describe the data. webspam, cifar and mnist8m replace the
published sets of these names, in their sizes, and are called webspam-made, cifar-made and
mnist8m-made.
"""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from bench.datasets import MNIST8M_ROWS, ROUND_DIGITS, mnist, split
from made.checkerboard import checkerboard
from made.digits import SIDE, deformed
from made.gaussians import gaussians
from made.pages import pages
from made.pictures import N_ROWS, N_TEST_ROWS, pictures, pictures_of
from tqdm import tqdm

from dcsvm import _svmlight

BATCH_SIZE = 2000  # rows written together


def write_libsvm(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with open(path, "w", encoding="ascii") as file:
        for label, row in zip(y, X, strict=True):
            features = " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row, start=1))
            file.write(f"{label:+d} {features}\n")


def make_checkerboard(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    for name, n_rows in (("train.txt", options.train), ("test.txt", options.test)):
        write_libsvm(options.folder / name, *checkerboard(n_rows, options.noise, rng))


def make_digits(options: argparse.Namespace) -> None:
    _, labels, images = next(mnist(options.raw))
    labels = labels.astype(np.float64)
    if options.round:
        labels = np.where(np.isin(labels, ROUND_DIGITS), 1.0, -1.0)
    made = deformed(images, options.n, options.seed)
    progress = tqdm(total=options.n, unit=" digits", disable=None)
    if options.npy:
        shape = options.n, SIDE**2
        X = np.lib.format.open_memmap(options.folder / "digits.npy", "w+", np.uint8, shape)
        y, begin = np.empty(options.n), 0
        for chosen, pixels in made:
            own = slice(begin, begin := begin + len(chosen))
            X[own], y[own] = pixels, labels[chosen]
            progress.update(len(chosen))
        np.save(options.folder / "digits.labels.npy", y)
        return
    with appearing(options.folder / "digits.txt") as file:
        for chosen, pixels in made:
            file.write(text_of(pixels, labels[chosen]))
            progress.update(len(chosen))


def make_mnist8m(options: argparse.Namespace) -> None:
    _, labels, images = next(mnist(options.raw))
    signs = np.where(np.isin(labels, ROUND_DIGITS), 1.0, -1.0)
    progress = tqdm(total=options.rows, unit=" digits", disable=None)
    with appearing(options.folder / "mnist8m-made.tr") as file:
        for chosen, pixels in deformed(images, options.rows, options.seed):
            file.write(text_of(pixels, signs[chosen]))
            progress.update(len(chosen))


def make_gaussians(options: argparse.Namespace) -> None:
    with open(options.folder / "gaussians.txt", "wb") as file:
        for X, y in gaussians(options.n, options.seed):
            file.write(text_of(X, y))


def make_webspam(options: argparse.Namespace) -> None:
    X, y = pages(seed=options.seed)
    train, test = split(len(y))
    write_rows(options.folder / "webspam-made.te", X[test], y[test])
    write_rows(options.folder / "webspam-made.tr", X[train], y[train])


def make_cifar(options: argparse.Namespace) -> None:
    if options.images is None:
        X, y = pictures(N_ROWS + N_TEST_ROWS, options.seed)
        train, test = np.split(np.arange(len(y)), [N_ROWS])
    else:
        X, y = pictures_of(options.images)
        train, test = split(len(y))
    write_rows(options.folder / "cifar-made.te", X[test], y[test])
    write_rows(options.folder / "cifar-made.tr", X[train], y[train])


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file, which gets its name when it is complete."""
    beside = path.with_name(f".{path.name}")
    with open(beside, "wb") as file:
        yield file
    beside.replace(path)


def write_rows(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with appearing(path) as file:
        for begin in range(0, len(y), BATCH_SIZE):
            own = slice(begin, begin + BATCH_SIZE)
            file.write(text_of(X[own], y[own]))


def text_of(X: np.ndarray, y: np.ndarray) -> bytes:
    return _svmlight.write_dense(y[:, None], X.astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    board = kinds.add_parser("checkerboard", help="train.txt and test.txt")
    board.set_defaults(make=make_checkerboard)
    board.add_argument("folder", type=Path)
    board.add_argument("--train", type=int, default=20_000, help="rows (default %(default)s)")
    board.add_argument("--test", type=int, default=5_000, help="rows (default %(default)s)")
    board.add_argument("--noise", type=float, default=0.02, help="share of wrong labels")
    digits = kinds.add_parser("digits", help="deformed ones of MNIST, digits.txt or digits.npy")
    digits.set_defaults(make=make_digits)
    digits.add_argument("n", type=int, metavar="N")
    digits.add_argument("folder", type=Path)
    digits.add_argument("--raw", type=Path, required=True, help="folder of MNIST's published files")
    digits.add_argument("--round", action="store_true", help="+1: 0, 3, 6, 8, 9; -1: the others")
    digits.add_argument("--npy", action="store_true", help="digits.npy and digits.labels.npy")
    table = kinds.add_parser("gaussians", help="two overlapping classes, gaussians.txt")
    table.set_defaults(make=make_gaussians)
    table.add_argument("n", type=int, metavar="N")
    table.add_argument("folder", type=Path)
    spam = kinds.add_parser("webspam", help="350,000 made pages, one fifth for testing")
    spam.set_defaults(make=make_webspam)
    spam.add_argument("folder", type=Path)
    cifar = kinds.add_parser("cifar", help="50,000 and 10,000 made pictures, or some PNG images")
    cifar.set_defaults(make=make_cifar)
    cifar.add_argument("folder", type=Path)
    cifar.add_argument("--images", type=Path, help="a folder with folders of PNG images by class")
    million = kinds.add_parser(
        "mnist8m", help="deformed digits of MNIST, round ones against others"
    )
    million.set_defaults(make=make_mnist8m)
    million.add_argument("folder", type=Path)
    million.add_argument(
        "--raw", type=Path, required=True, help="folder of MNIST's published files"
    )
    million.add_argument("--rows", type=int, default=MNIST8M_ROWS, help="default %(default)s")
    for one in (board, digits, table, spam, cifar, million):
        one.add_argument("--seed", type=int, default=0, help="default %(default)s")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.make(options)


if __name__ == "__main__":
    main()
