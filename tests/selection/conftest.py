"""Fixture: the folds and repetitions of the search, which other folders' tests shorten."""

import pytest

from dcsvm.selection import search, trials

N_FOLDS, MAX_REPEATED = trials.N_FOLDS, search.MAX_REPEATED


@pytest.fixture(autouse=True)
def all_folds(monkeypatch, short_search):
    monkeypatch.setattr(trials, "N_FOLDS", N_FOLDS)
    monkeypatch.setattr(search, "MAX_REPEATED", MAX_REPEATED)
