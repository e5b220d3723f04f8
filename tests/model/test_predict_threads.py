"""Test threads of the caller that predict with one model at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from made_models import made_model
from reference import csr_rows, labelled_rows

from dcsvm.model.reader import load_model

N_THREADS = 8


@pytest.mark.parametrize("form", [np.asarray, csr_rows], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", ["exact", "early"])
def test_eight_threads_get_the_answers_of_one(trained, tmp_path, method, form):
    """Each model is new: its first predictions prepare the support vectors, once."""
    trained[0].save(tmp_path / "m")
    X = labelled_rows(1600, 4, seed=8)[0]
    expected = trained[0].decision_function(X, method=method, threads=1)
    for _ in range(3):
        model, gate = load_model(tmp_path / "m"), threading.Barrier(N_THREADS)

        def work(k, model=model, gate=gate):
            gate.wait(20)
            found = [
                model.decision_function(form(X[some : some + 7]), method=method, threads=1)
                for some in range(k, len(X), 7 * N_THREADS)
            ]
            whole = model.decision_function(form(X), method=method, threads=1 + k % 2)
            return np.concatenate(found), whole

        with ThreadPoolExecutor(N_THREADS) as pool:
            found = list(pool.map(work, range(N_THREADS)))
        for k, (parts, whole) in enumerate(found):
            rows = np.concatenate(
                [np.arange(a, min(a + 7, len(X))) for a in range(k, len(X), 7 * N_THREADS)]
            )
            np.testing.assert_array_equal(parts, expected[rows])
            np.testing.assert_array_equal(whole, expected)


def test_rows_of_different_widths_at_once():
    model = made_model(3)
    X = np.random.default_rng(0).uniform(-1, 1, (200, 5)).astype(np.float32)
    wide = csr_rows(X)
    expected = [model.decision_function(rows, threads=1) for rows in (wide, csr_rows(X[:, :3]))]

    def work(k):
        rows = csr_rows(X[:, :3]) if k % 2 else wide
        return model.decision_function(rows, threads=1)

    with ThreadPoolExecutor(N_THREADS) as pool:
        for k, found in enumerate(pool.map(work, range(40))):
            np.testing.assert_array_equal(found, expected[k % 2])
