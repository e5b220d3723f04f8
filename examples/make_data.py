"""Make a problem that needs a kernel: a rotated checkerboard, as two files of LIBSVM text.

    python make_data.py FOLDER [--train 20000] [--test 5000] [--noise 0.02] [--seed 0]

Two features say which field of an 6 by 6 board a row lies on, and the field's colour is the label;
two more features say nothing. `noise` is the share of labels that are wrong, in both files: no
classifier is right more often than 1 - noise.
"""

import argparse
from pathlib import Path

import numpy as np

FIELDS = 6  # on a side of the board
ANGLE = np.pi / 6
USELESS = 2  # features


def checkerboard(n_rows: int, noise: float, rng: np.random.Generator):
    """Rows in [-1, 1] (n, 2 + USELESS) and labels +1 and -1 (n,)."""
    X = rng.uniform(-1, 1, (n_rows, 2 + USELESS))
    turn = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])
    fields = np.floor(X[:, :2] @ turn * FIELDS / 2)
    y = np.where(fields.sum(axis=1) % 2 == 0, 1, -1)
    X[:, 2:] *= 0.1
    return X, np.where(rng.uniform(size=n_rows) < noise, -y, y)


def write_libsvm(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    with open(path, "w", encoding="ascii") as file:
        for label, row in zip(y, X, strict=True):
            features = " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row, start=1))
            file.write(f"{label:+d} {features}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where train.txt and test.txt are written")
    parser.add_argument("--train", type=int, default=20_000, help="rows (default %(default)s)")
    parser.add_argument("--test", type=int, default=5_000, help="rows (default %(default)s)")
    parser.add_argument("--noise", type=float, default=0.02, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    for name, n_rows in (("train.txt", options.train), ("test.txt", options.test)):
        write_libsvm(options.folder / name, *checkerboard(n_rows, options.noise, rng))


if __name__ == "__main__":
    main()
