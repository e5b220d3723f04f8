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
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from bench.datasets import MNIST8M_ROWS, ROUND_DIGITS, mnist, split, write_lines
from made.checkerboard import checkerboard
from made.digits import SIDE, deformed
from made.gaussians import gaussians
from made.pages import pages
from made.pictures import N_ROWS, N_TEST_ROWS, pictures, pictures_of
from tqdm import tqdm

from dcsvm import _svmlight

BATCH_SIZE = 2000  # rows written together

Batches = Iterable[tuple[np.ndarray, np.ndarray]]  # rows (n, d) and labels (n,)


def make_checkerboard(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    for name, n_rows in (("train.txt", options.train), ("test.txt", options.test)):
        X, y = checkerboard(n_rows, options.noise, rng)
        with open(options.folder / name, "w", encoding="ascii") as file:
            for label, row in zip(y, X, strict=True):
                features = " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row, start=1))
                file.write(f"{label:+d} {features}\n")


def make_digits(options: argparse.Namespace) -> None:
    made = digits_of(options)
    if not options.npy:
        write(options.folder / options.file, made)
        return
    X = np.lib.format.open_memmap(
        options.folder / "digits.npy", "w+", np.uint8, (options.n, SIDE**2)
    )
    labels = []
    for pixels, y in made:
        begin = sum(map(len, labels))
        X[begin : begin + len(y)] = pixels
        labels.append(y)
    np.save(options.folder / "digits.labels.npy", np.concatenate(labels))


def digits_of(options: argparse.Namespace) -> Batches:
    _, labels, images = next(mnist(options.raw))
    if options.round:
        labels = np.where(np.isin(labels, ROUND_DIGITS), 1.0, -1.0)
    progress = tqdm(total=options.n, unit=" digits", disable=None)
    for chosen, pixels in deformed(images, options.n, options.seed):
        yield pixels, labels[chosen].astype(np.float64)
        progress.update(len(chosen))


def make_gaussians(options: argparse.Namespace) -> None:
    write(options.folder / "gaussians.txt", gaussians(options.n, options.seed))


def make_webspam(options: argparse.Namespace) -> None:
    X, y = pages(seed=options.seed)
    write_both(options.folder, "webspam-made", X, y, *split(len(y)))


def make_cifar(options: argparse.Namespace) -> None:
    if options.images is None:
        X, y = pictures(N_ROWS + N_TEST_ROWS, options.seed)
        parts = np.split(np.arange(len(y)), [N_ROWS])
    else:
        X, y = pictures_of(options.images)
        parts = split(len(y))
    write_both(options.folder, "cifar-made", X, y, *parts)


def write_both(folder: Path, name: str, X: np.ndarray, y: np.ndarray, train, test) -> None:
    for end, rows in (("te", test), ("tr", train)):
        write(folder / f"{name}.{end}", batches(X[rows], y[rows]))


def batches(X: np.ndarray, y: np.ndarray) -> Batches:
    for begin in range(0, len(y), BATCH_SIZE):
        yield X[begin : begin + BATCH_SIZE], y[begin : begin + BATCH_SIZE]


def write(path: Path, made: Batches) -> None:
    """Write LIBSVM text, under a temporary name until it is complete."""
    write_lines(path, (_svmlight.write_dense(y[:, None], X.astype(np.float32)) for X, y in made))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True, metavar="KIND")

    def add(
        name: str, make, text: str, *, has_n: bool = False, **defaults
    ) -> argparse.ArgumentParser:
        kind = kinds.add_parser(name, help=text)
        kind.set_defaults(make=make, **defaults)
        if has_n:
            kind.add_argument("n", type=int, metavar="N")
        kind.add_argument("folder", type=Path)
        kind.add_argument("--seed", type=int, default=0, help="default %(default)s")
        return kind

    raw = {"type": Path, "required": True, "help": "folder of MNIST's published files"}
    board = add("checkerboard", make_checkerboard, "train.txt and test.txt")
    board.add_argument("--train", type=int, default=20_000, help="rows (default %(default)s)")
    board.add_argument("--test", type=int, default=5_000, help="rows (default %(default)s)")
    board.add_argument("--noise", type=float, default=0.02, help="share of wrong labels")
    text = "deformed ones of MNIST, digits.txt or digits.npy"
    digits = add("digits", make_digits, text, has_n=True, file="digits.txt")
    digits.add_argument("--raw", **raw)
    digits.add_argument("--round", action="store_true", help="+1: 0, 3, 6, 8, 9; -1: the others")
    digits.add_argument("--npy", action="store_true", help="digits.npy and digits.labels.npy")
    add("gaussians", make_gaussians, "two overlapping classes, gaussians.txt", has_n=True)
    add("webspam", make_webspam, "350,000 made pages, one fifth for testing")
    cifar = add("cifar", make_cifar, "50,000 and 10,000 made pictures, or some PNG images")
    cifar.add_argument("--images", type=Path, help="a folder with folders of PNG images by class")
    text, how = "deformed digits of MNIST, round ones against others", {"round": True, "npy": False}
    million = add("mnist8m", make_digits, text, file="mnist8m-made.tr", **how)
    million.add_argument("--raw", **raw)
    million.add_argument("--rows", dest="n", type=int, default=MNIST8M_ROWS, help="%(default)s")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.make(options)


if __name__ == "__main__":
    main()
