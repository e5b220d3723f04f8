"""Test roundings of landmarks: few digits, integers for bytes."""

import numpy as np
import pytest
from reference import dense, dense_rows

from dcsvm.kernel.kernels import Kernel
from dcsvm.model.rounding import in_bytes, in_steps, rounded, roundings, shortest


def test_a_number_in_its_shortest_form_is_that_of_float32():
    values = np.array([[0.1, -1 / 3, 1e-30], [12345678.9, 0.0, np.nan]])
    found = shortest(values)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.astype(np.float32), values.astype(np.float32))
    assert max(len(repr(float(x)).strip("-")) for x in found.ravel()) <= 15
    assert shortest(np.empty((3, 0))).shape == (3, 0)


def test_roundings_become_finer_and_leave_other_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    moved = np.array([0, 2])
    found = [
        dense(rows)
        for rows in roundings(Kernel("rbf"), dense_rows(X), moved, 0.3, are_for_bytes=False)
    ]
    errors = [np.abs(each - X).max() for each in found]
    assert errors == sorted(errors, reverse=True)
    assert 0.02 < errors[0] <= 0.051
    assert errors[-1] < 1e-6
    for each in found:
        np.testing.assert_array_equal(each[:, 1], X[:, 1])
    assert {len(str(abs(x))) for x in found[1][:, moved].ravel()} <= {3, 4}


def test_without_a_width_or_a_moved_feature_nothing_is_rounded():
    rows = dense_rows(np.ones((3, 2)))
    for moved, width in ((np.arange(0), 1.0), (np.arange(2), 0.0)):
        assert list(roundings(Kernel("rbf"), rows, moved, width, are_for_bytes=False)) == []


def test_a_rounded_value_is_no_negative_zero():
    assert not np.signbit(rounded(np.array([-0.001], np.float32), 2)).any()


@pytest.mark.parametrize(("name", "is_bytes"), [("rbf", False), ("laplacian", True)])
def test_landmarks_for_bytes_are_integers_first(name, is_bytes):
    X = np.random.default_rng(0).uniform(-20, 270, (9, 36)).astype(np.float32)
    proposals = roundings(Kernel(name), dense_rows(X), np.arange(36), 1.0, are_for_bytes=True)
    first = next(iter(proposals))
    assert first.is_bytes == is_bytes
    values = first.dense.astype(float)
    assert (values == np.rint(values)).all()
    if is_bytes:
        assert np.abs(values - np.clip(X, 0, 255)).max() <= 0.5


def test_no_landmarks_have_no_integers():
    none = dense_rows(np.empty((0, 36)))
    assert in_steps(none) is None
    assert in_bytes(none) is None
