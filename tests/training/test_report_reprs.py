"""Test what notebooks show: bars, and models and reports as text and HTML."""

import sys

import numpy as np
import pytest

import dcsvm
from dcsvm.training.report import BarProgress, Progress, default_progress


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return dcsvm.train(X, np.where(X[:, 0] > 0, "a<b", "c"), scale="auto")


def test_texts_are_short_and_html_is_escaped(model):
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = dcsvm.grid_search(X, X[:, 0] > 0, Cs=[1, 2], gammas=[1, 2])
    for one in (model, model.report, found):
        assert len(repr(one)) < 200
        assert "\n" not in repr(one)
        assert one._repr_html_().startswith("<table><caption>dcsvm.")
    assert "exact: " in repr(model)


def test_bars_are_shown_only_where_they_can_be_seen(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert type(default_progress()) is Progress
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert type(default_progress()) is BarProgress


def test_a_bar_appears_after_two_seconds(capsys):
    bar = BarProgress()
    bar.begin("level 1", 10)
    bar.advance(5)
    bar.end("level 1", 1.0)
    assert capsys.readouterr().err == ""
    bar.start -= 10
    bar.begin("conquer", 10)
    bar.advance(5)
    assert bar.bar.n == 5
    bar.close()
    assert "conquer" in capsys.readouterr().err
    assert bar.bar is None
