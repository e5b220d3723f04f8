"""Fixtures: rows that several files of this folder share."""

import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.datasets import make_classification, make_friedman1  # noqa: E402


@pytest.fixture(scope="session")
def three_classes():
    """Return 240 rows of 6 features with labels 0 to 2, some of them wrong."""
    return make_classification(
        240, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.05, random_state=1
    )


@pytest.fixture(scope="session")
def curve():
    """Return 150 rows of 6 features and targets."""
    return make_friedman1(150, 6, noise=1.0, random_state=2)


@pytest.fixture(autouse=True)
def shortest_search(short_search, monkeypatch):
    """Try few settings in `dcsvm.easy`: these tests are about estimators."""
    few = {"SCREENED_C": (2.0,), "N_SEARCHED": 2, "N_OF_RIVAL": 1, "N_AGAIN": 1, "N_NEAR": 1}
    for name, value in few.items():
        monkeypatch.setattr(f"dcsvm.selection.search.{name}", value)
