"""Checks of a parser in Python on any bytes: a one-sentence error or a sound result.

Shared by Hypothesis (test_parsers.py) and atheris (parsers.py).
"""

import io
import zipfile
from unittest import mock

import numpy as np

from dcsvm.data.files import DataError
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import parse_scaling, range_text
from dcsvm.model.reader import ModelError, ModelReader
from dcsvm.model.writer import model_text
from dcsvm.problem.formulation import BoxQP
from dcsvm.training.certificate import Iterate
from dcsvm.training.state import Budget, Checkpoint, CheckpointError, RunState

MAX_SENTENCE = 500


def require_sentence(error):
    assert "\n" not in str(error) and len(str(error)) < MAX_SENTENCE


def check_model(text):
    """Read the model of a text; return it, or None after an error.

    The model has to predict with all its parts, and to be the same after saving and reading.
    """
    try:
        model = ModelReader(bytes(text), "model", 1).read()
    except ModelError as error:
        require_sentence(error)
        return None
    assert np.isfinite([*model.labels, *model.kernel.parameters.values()]).all()
    methods = [method for method in ("exact", "early") if getattr(model, method)]
    n_features = max(getattr(model, method).rows.n_features for method in methods)
    if n_features <= 1000:
        try:
            predict_all(model, Rows.from_array(np.ones((2, n_features), np.float32)), methods)
        except ValueError as error:
            assert "beyond float64" in str(error)
    written = b"".join(model_text(model))
    assert b"".join(model_text(ModelReader(written, "again", 1).read())) == written
    return model


def predict_all(model, rows, methods):
    for method in methods:
        with np.errstate(all="ignore"):
            predicted = model.predict(rows, method=method, threads=1)
            assert len(predicted) == 2
            assert not model.is_classifier or np.isin(predicted, model.labels).all()
            if model.is_classifier and model.probability:
                model.predict_probability(rows, method=method, threads=1)


def check_range(text):
    try:
        scaling = parse_scaling(bytes(text), "range")
    except DataError as error:
        require_sentence(error)
        return
    assert (np.diff(scaling.columns) > 0).all()
    assert (scaling.features.minimum < scaling.features.maximum).all()
    written = range_text(scaling)
    assert range_text(parse_scaling(written, "again")) == written
    indptr, indices = np.array([0, 2, 2]), np.array([0, 2], np.int32)
    try:
        rows = scaling.scaled_rows([(indptr, indices, np.array([1.0, 1e300]))], "rows")
    except DataError as error:
        assert "too large" in str(error)
        return
    assert np.isfinite(rows.dense if rows.is_dense else rows.values).all()


def small_run():
    """Return (problem, state) of a run over six rows that has not begun."""
    sign = np.array([1.0, -1, 1, -1, 1, -1])
    problem = BoxQP(sign, np.minimum(4.0 * sign, 0.0), np.maximum(4.0 * sign, 0.0))
    iterate = Iterate.of(np.zeros(6))
    counts = np.zeros(1, np.int64)
    state = RunState(
        iterate=iterate, whole_tolerance=np.full(2, np.inf), budget=Budget({}),
        n_iterations=counts, converged=np.zeros(1, bool),
    )  # fmt: skip
    return problem, state


def check_checkpoint(text):
    """Restore a checkpoint from bytes, without the check sums, which would reject most damage."""
    problem, state = small_run()
    checkpoint = object.__new__(Checkpoint)
    checkpoint.folder = checkpoint.path = "folder"
    checkpoint.run = {"options": {}, "data": {}}
    try:
        with mock.patch.object(zipfile.ZipExtFile, "_update_crc"):
            checkpoint.restore(io.BytesIO(bytes(text)), state, problem, 6, 1)
    except CheckpointError as error:
        require_sentence(error)
        return None
    assert (problem.lower <= state.iterate.alpha).all()
    assert (state.iterate.alpha <= problem.upper).all()
    assert state.checks >= 0
    state.to_arrays()
    return state
