"""Draw the regions of a checkerboard's model: `board_picture.py MODEL TEST_FILE PICTURE.png`."""

import sys
from pathlib import Path

import matplotlib
import numpy as np

import dcsvm
from dcsvm.data.dataset import Dataset

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (after the choice of its backend)

SIDE = 400  # points of the grid in each direction
TITLES = {"exact": "exact: one SVM of all rows", "early": "early: an SVM for each cluster"}


def main(model_file: str, test_file: str, picture: str) -> None:
    model = dcsvm.load_model(model_file)
    test = Dataset.read(test_file)
    line = np.linspace(-1, 1, SIDE)
    grid = np.zeros((SIDE, SIDE, test.n_features))
    grid[..., 0], grid[..., 1] = np.meshgrid(line, line)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), constrained_layout=True)
    for ax, (method, title) in zip(axes, TITLES.items(), strict=True):
        right = np.mean(model.predict(test.rows, method=method) == test.labels)
        regions = model.predict(grid.reshape(SIDE**2, -1), method=method).reshape(SIDE, SIDE)
        ax.imshow(regions, origin="lower", extent=(-1, 1, -1, 1), cmap="coolwarm")
        ax.set_title(f"{title}\n{right:.1%} of the test rows")
    figure.savefig(picture, dpi=100)
    print(f"picture: {Path(picture).resolve()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
