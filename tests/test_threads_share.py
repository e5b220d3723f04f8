"""Test threads of the caller that share models and data, and train, save and read side by side.

Each does what it does alone, bit for bit. On a Python without a GIL they run at the same time.
"""

import os
import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from reference import labelled_rows, libsvm_text
from scipy import sparse

import dcsvm
from dcsvm.data.files import write_beside

N_THREADS = 6
SETTINGS = (
    {"C": 1.0, "gamma": 1.0, "levels": 1}, {"C": 8.0, "gamma": 4.0, "levels": 1},
    {"C": 4.0, "gamma": 2.0, "early": True, "levels": 1}, {"kernel": "linear", "C": 0.5},
    {"kernel": "laplacian", "C": 2.0, "gamma": 1.0}, {"C": 4.0, "gamma": 2.0, "probability": True},
)  # fmt: skip


def at_once(work, n=N_THREADS):
    """Return work(k) for all k < n, called by n threads that begin together."""
    gate = threading.Barrier(n)

    def begin(k):
        gate.wait(60)
        return work(k)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begin, range(n)))


def text_of(model, folder, name):
    """Return the model file of a model."""
    model.save(folder / name)
    return (folder / name).read_bytes()


@pytest.fixture(scope="module")
def rows():
    return labelled_rows(800, 4, seed=3)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="Python has a GIL")
def test_the_modules_do_not_bring_the_gil_back():
    code = "import sys, dcsvm._core, dcsvm._svmlight; print(sys._is_gil_enabled())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_threads_train_on_one_data_set_what_each_trains_alone(rows, tmp_path, form, threads):
    X, y = form(rows[0]), rows[1]
    alone = [
        text_of(dcsvm.train(X, y, threads=1, **options), tmp_path, "alone") for options in SETTINGS
    ]
    data = dcsvm.Dataset(X, y)  # its rows are made by the thread that needs them first
    found = at_once(
        lambda k: text_of(
            dcsvm.train(data, threads=threads, **SETTINGS[k]), tmp_path, f"together{k}"
        )
    )
    assert found == alone


def test_threads_scale_one_data_set_that_none_has_scaled_before(rows):
    X, y = rows
    expected = dcsvm.Dataset(X, y, scale="quantile").rows.dense
    data = dcsvm.Dataset(X, y, scale="quantile")
    for found in at_once(lambda _: data.rows.dense):
        np.testing.assert_array_equal(found, expected)


def test_threads_predict_save_and_begin_with_one_model(rows, tmp_path):
    """The first predictions prepare what all later ones use."""
    X, y = rows
    trained = dcsvm.train(X, y, C=4, gamma=2, levels=1, probability=True, threads=1)
    trained.save(tmp_path / "model")
    loaded = dcsvm.load_model(tmp_path / "model")

    def work(k, model=loaded):
        kinds = (
            lambda: model.decision_function(X, threads=1),
            lambda: model.decision_function(X[:3], method="early"),
            lambda: model.decision_function(X[:500], method="early", threads=2),
            lambda: model.predict_probability(X, threads=1),
            lambda: np.frombuffer(text_of(model, tmp_path, f"model{k}"), np.uint8),
            lambda: dcsvm.train(X, y, C=5, gamma=2, init_model=model, threads=1).exact.dual_coef,
        )
        return [kinds[(k + i) % len(kinds)]() for i in range(len(kinds))]

    alone = work(0, dcsvm.load_model(tmp_path / "model"))
    for k, found in enumerate(at_once(work)):
        for i, values in enumerate(found):
            np.testing.assert_array_equal(values, alone[(k + i) % len(alone)])


def test_a_stop_ends_only_its_own_training(rows):
    X, y = rows
    stop = dcsvm.Stop()
    stop.request()

    def work(k):
        if k % 2:
            with pytest.raises(dcsvm.Stopped):
                dcsvm.train(X, y, C=4, gamma=2, stop=stop)
            return True
        return dcsvm.train(X, y, C=4, gamma=2).report.converged

    assert all(at_once(work))


def test_threads_read_one_file_each_from_its_beginning(rows, tmp_path):
    path = tmp_path / "rows"
    path.write_text(libsvm_text(*rows))
    expected = dcsvm.Dataset.read(path)
    for k, found in enumerate(at_once(lambda k: dcsvm.Dataset.read(path, threads=1 + k % 2))):
        np.testing.assert_array_equal(found.rows.dense, expected.rows.dense, str(k))
        np.testing.assert_array_equal(found.labels, expected.labels)


def test_files_written_at_once_have_the_mode_of_the_umask(tmp_path):
    """The umask is of the process: a thread that changed it to read it would change it for all."""
    before = os.umask(0o027)
    try:
        at_once(lambda k: [write_beside(tmp_path / f"{k} {i}", [b"text"]) for i in range(30)])
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) == 30 * N_THREADS
    assert set(modes.values()) == {0o640}


def test_threads_write_one_file_and_the_last_one_wins(tmp_path):
    path = tmp_path / "file"
    at_once(lambda k: [write_beside(path, [bytes([65 + k]) * 10_000] * 3) for _ in range(20)])
    text = path.read_bytes()
    assert len(text) == 30_000 and len(set(text)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_threads_fit_estimators_and_share_a_fitted_one(rows):
    pytest.importorskip("sklearn.svm")
    from dcsvm.sklearn import SVC

    X, y = rows
    Cs = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    alone = [SVC(C=C, gamma=2.0).fit(X, y).decision_function(X) for C in Cs]
    for found, expected in zip(
        at_once(lambda k: SVC(C=Cs[k], gamma=2.0).fit(X, y).decision_function(X)),
        alone,
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    fitted = SVC(C=Cs[0], gamma=2.0).fit(X, y)
    for found in at_once(lambda k: fitted.decision_function(X)):
        np.testing.assert_array_equal(found, alone[0])
