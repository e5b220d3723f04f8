"""Test the warnings about data, and data without warnings."""

import numpy as np
import pytest
from reference import csr_rows, dense_rows

from dcsvm.data.rows import Rows
from dcsvm.data.used_columns import data_warnings

LABELS = np.where(np.arange(200) % 3, 1.0, -1.0)


def numbers(n_features=6, seed=0):
    return np.random.default_rng(seed).normal(size=(200, n_features)).astype(np.float32)


def said(X, labels=LABELS):
    """Return the warnings about the rows; both storage formats give the same."""
    sentences = data_warnings(dense_rows(X), labels)
    assert data_warnings(csr_rows(X), labels) == sentences
    return sentences


def test_ordinary_data_has_nothing_said_of_it():
    assert said(numbers()) == []
    assert said(numbers() * np.float32(1e6)) == []
    assert said(numbers() * np.array([0.1, 0.3, 1, 3, 10, 30], np.float32)) == []


def test_wildly_different_scales_are_named():
    X = numbers() * np.array([1, 1, 1, 1e4, 1, 1], np.float32)
    (sentence,) = said(X)
    assert sentence.startswith("feature 4 spans ")
    assert "--scale" in sentence
    assert len(said(X[:, 2:4])) == 1


def test_one_column_of_counts_beside_one_hot_columns_is_named():
    X = np.eye(40, dtype=np.float32)[np.arange(200) % 40]
    X[:, 5] = 50 * np.arange(200)
    (sentence,) = said(X)
    assert sentence.startswith("feature 6 spans 9.95e+03, but ")


def test_constant_columns_are_named():
    X = numbers()
    X[:, 2] = 1.5
    assert said(X) == ["feature 3 is constant: 1.5 in all rows"]
    X[:, 4] = -0.5
    (sentence,) = said(X)
    assert sentence.startswith("2 features are constant, ")
    assert sentence.endswith("feature 3")


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_labels_that_are_all_different_are_named(shift):
    (sentence,) = said(numbers(), np.arange(200) + shift)
    assert sentence.startswith("200 distinct labels in 200 rows: ")
    assert said(numbers(), np.arange(200) % 26 + shift) == []


@pytest.mark.parametrize(
    ("n_labels", "step", "n_copies", "is_told"),
    [(40, 1.0, 20, True), (40, 1.0, 100, False), (40, 0.5, 100, True), (32, 0.5, 5, False)],
)
def test_many_labels_with_fractions_or_few_rows_may_be_targets(n_labels, step, n_copies, is_told):
    labels = np.tile(step * np.arange(n_labels), n_copies)
    X = np.random.default_rng(0).normal(size=(len(labels), 6)).astype(np.float32)
    told = said(X, labels)
    sentence = f"each of the {n_labels} distinct labels is a class: for targets of a regression"
    assert [one.startswith(sentence) for one in told] == [True] * is_told


def test_one_hot_data_has_nothing_said_of_it():
    rng = np.random.default_rng(1)
    rare = np.minimum(rng.geometric(0.2, 200), 30) - 1
    X = np.hstack([np.eye(30, dtype=np.float32)[rare], np.ones((200, 1), np.float32)])
    assert said(X) == []
    X[:, -1] = 0
    assert said(X) == []


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("scale", [1, 1 / 255])
def test_images_have_nothing_said_of_them(inverted, scale):
    rng = np.random.default_rng(2)
    y, x = np.mgrid[-14:14, -14:14]
    centers = rng.normal(size=(200, 2, 1, 1))
    ink = np.exp(-((y - centers[:, 0]) ** 2 + (x - centers[:, 1]) ** 2) / 30)
    X = np.floor(255.9 * ink).reshape(200, -1)
    assert (X == 0).all(axis=0).any()
    X = (255 - X if inverted else X) * scale
    assert said(X.astype(np.float32)) == []


def test_few_rows_empty_rows_and_huge_indices_are_no_trouble():
    X = numbers()
    assert said(X[:10], np.arange(10.0)) == []
    assert said(np.zeros((200, 0), np.float32)) == []
    assert said(np.zeros((200, 3), np.float32)) == []
    wide = csr_rows(X)
    wide = Rows(
        200, 2**31 - 2, indptr=wide.indptr, indices=wide.indices + 2**30, values=wide.values
    )
    assert data_warnings(wide, LABELS) == []
