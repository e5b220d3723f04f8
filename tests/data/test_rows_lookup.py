"""Test the lookup of rows among other rows."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows, grid_rows

from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import part_among


@pytest.mark.parametrize("form", [dense_rows, csr_rows])
@pytest.mark.parametrize("other_form", [dense_rows, csr_rows])
def test_the_part_of_rows_that_others_have(form, other_form):
    X = grid_rows(40, 6, density=0.5)
    X[:, 0] = np.arange(1, 41)
    others = np.vstack((X[10:], X[10:] + 1))
    assert part_among(form(X), other_form(others)) == 0.75
    assert part_among(form(X), other_form(X[:, :5])) < 0.75


def test_bytes_are_the_numbers_that_they_are():
    X = np.random.default_rng(0).integers(0, 256, (30, 16))
    assert part_among(Rows.from_array(X.astype(np.uint8)), dense_rows(X[:15])) == 0.5


def test_minus_zero_is_zero():
    assert (
        part_among(dense_rows(np.array([[-0.0, 1.0]])), dense_rows(np.array([[0.0, 1.0]]))) == 1.0
    )


def test_no_rows_are_among_none():
    assert part_among(dense_rows(np.zeros((0, 3))), dense_rows(np.zeros((2, 3)))) == 0.0
