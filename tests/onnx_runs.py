"""Run models in ONNX, and compare their outputs; tests that need this are skipped without it."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

CLOSE = 1e-5  # of the spread of the values, for kernel values of float32
SAME = 1e-9  # for those of float64


def session_of(file):
    """Check the contents of an ONNX file, and return a session of onnxruntime."""
    graph = onnx.load_from_string(file)
    onnx.checker.check_model(graph, full_check=True)
    onnx.shape_inference.infer_shapes(graph, check_type=True, strict_mode=True, data_prop=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def run(session, given):
    """Return the outputs by name. onnxruntime plans memory in the first run for the next ones."""
    names = [one.name for one in session.get_outputs()]
    first, second = session.run(None, given), session.run(None, given)
    for one, again in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, again)
    return dict(zip(names, first, strict=True))


def outputs(model, X, **how):
    """Return the outputs for rows, which are an array or the columns of a data frame, by name."""
    session = session_of(model.to_onnx(**how))
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    inputs = {one.name: kinds[one.type] for one in session.get_inputs()}
    if not hasattr(X, "columns"):
        return run(session, {"X": np.asarray(X, inputs["X"])})
    return run(session, {name: np.array(X[[name]], kind) for name, kind in inputs.items()})


def values_in_float64(model, X, method=None):
    """Compute decision values (n, n_pairs) of dcsvm with every step in float64."""
    return model.predictor(method)._values_in_float64(model.rows_of(X), 1)


def close(found, expected, tolerance=CLOSE):
    """Compare decision values up to a share of their spread; nan are equal."""
    expected = np.asarray(expected).reshape(np.shape(found))
    spread = np.nanstd(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * (spread or 1.0))


def same_labels(found, expected, values):
    """Compare labels, but for rows with a decision value (n, n_pairs) that is nearly 0."""
    sure = ~(np.abs(values) <= CLOSE * np.nanstd(values)).any(axis=1)
    assert np.array_equal(np.asarray(found)[sure], expected[sure])
    assert sure.mean() > 0.9
