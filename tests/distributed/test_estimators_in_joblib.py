"""Test our estimators in scikit-learn's search under joblib's dask backend."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

import joblib  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402

from dcsvm.sklearn import SVC  # noqa: E402


def test_a_grid_search_on_workers_finds_what_it_finds_here(rows_in_spots):
    X, y = (one[:600] for one in rows_in_spots)
    search = GridSearchCV(SVC(threads=1), {"C": [0.1, 10], "gamma": [0.01, 1]}, cv=3)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with (
        LocalCluster(1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        joblib.parallel_config("dask", client=client),
    ):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    assert np.array_equal(here, there)
