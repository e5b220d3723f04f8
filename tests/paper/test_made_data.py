"""Test generated data: the same for the same seed, in the form of the originals."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made.digits import SIDE, deformed
from made.gaussians import N_FEATURES as TABLE_FEATURES
from made.gaussians import RATIO, SHIFT, gaussians
from made.pages import N_FEATURES, pages
from made.pictures import pictures, pictures_of

from dcsvm.data.dataset import Dataset

EXAMPLES = Path(__file__).parents[2] / "examples"


def strokes(n):
    """Return images uint8 (n, SIDE^2) with one vertical stroke near the middle."""
    images = np.zeros((n, SIDE, SIDE), np.uint8)
    for k, image in enumerate(images):
        image[6:22, 12 + k % 4 : 15 + k % 4] = 200
    return images.reshape(n, -1)


def test_digits_are_moved_a_little():
    images = strokes(40)
    chosen, made = map(np.concatenate, zip(*deformed(images, 1300, seed=1), strict=True))
    assert made.shape == (1300, SIDE**2) and made.dtype == np.uint8
    assert np.bincount(chosen, minlength=40).max() - np.bincount(chosen, minlength=40).min() <= 2
    again = np.concatenate([one for _, one in deformed(images, 1300, seed=1)])
    other = np.concatenate([one for _, one in deformed(images, 1300, seed=2)])
    assert np.array_equal(made, again) and not np.array_equal(made, other)
    mass, was = made.sum(axis=1, dtype=float), images[chosen].sum(axis=1, dtype=float)
    assert np.all((mass / was > 0.4) & (mass / was < 2.5))
    column = np.arange(SIDE)
    center = made.reshape(-1, SIDE, SIDE).sum(axis=1) @ column / mass
    before = images[chosen].reshape(-1, SIDE, SIDE).sum(axis=1) @ column / was
    assert np.std(center - before) > 0.3 and np.abs(center - before).max() < 3.5


def test_pages_and_pictures_have_their_forms():
    X, y = pages(3000, seed=1)
    assert X.shape == (3000, N_FEATURES) and X.min() == 0 and X.max() == 1
    assert 0.3 < np.mean(X != 0) < 0.7 and 0.5 < np.mean(y > 0) < 0.7
    assert np.array_equal(X, pages(3000, seed=1)[0])
    P, z = pictures(300, seed=1)
    assert P.shape == (300, 3072) and P.dtype == np.uint8 and 0.35 < np.mean(z > 0) < 0.65
    assert np.array_equal(P, pictures(300, seed=1)[0])


def test_gaussians_overlap_as_they_say():
    X, y = map(np.concatenate, zip(*gaussians(150_000, seed=1), strict=True))
    assert X.shape == (150_000, TABLE_FEATURES)
    deviation = np.where(np.arange(TABLE_FEATURES) % 2 == 0, RATIO, 1 / RATIO)
    rule = (X**2 - ((X - SHIFT) / deviation) ** 2).sum(axis=1)  # the product of deviations is 1
    assert abs(np.mean((rule > 0) != (y > 0)) - 0.302) < 0.005


def test_pictures_may_be_images_of_ones_own(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    rng = np.random.default_rng(0)
    for name in ("cat", "dog", "plane"):
        (tmp_path / name).mkdir()
        for k in range(2):
            image.imsave(tmp_path / name / f"{k}.png", rng.random((40, 32, 3)))
    P, z = pictures_of(tmp_path)
    assert P.shape == (6, 3072) and z.tolist() == [1, 1, 1, 1, -1, -1]
    image.imsave(tmp_path / "cat" / "small.png", rng.random((20, 32, 3)))
    with pytest.raises(ValueError, match="smaller than 32 x 32"):
        pictures_of(tmp_path)
    with pytest.raises(ValueError, match="no PNG images"):
        pictures_of(tmp_path / "cat")


def test_digits_are_text_or_an_array(tmp_path):
    images, labels = strokes(20), (np.arange(20) % 10).astype(np.uint8)
    header = np.zeros(16, np.uint8).tobytes()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header + images.tobytes())
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(header[:8] + labels.tobytes())
    command = [sys.executable, EXAMPLES / "make_data.py", "digits", "50", tmp_path]
    for more in ([], ["--npy"]):
        subprocess.run([*command, "--raw", tmp_path, *more], check=True)
    data = Dataset.read(tmp_path / "digits.txt")
    array = np.load(tmp_path / "digits.npy")
    assert np.array_equal(data.rows.with_features(SIDE**2).dense, array)
    assert np.array_equal(data.labels, np.load(tmp_path / "digits.labels.npy"))
    assert set(data.labels) <= set(range(10))
