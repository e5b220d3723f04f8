"""Test that subproblems are divided into chunks of about equal cost."""

import numpy as np
import pytest

from dcsvm.training.certificate import Subproblems
from dcsvm.training.remote_engine import parcels_of


@pytest.mark.parametrize(
    ("n_parts", "n_parcels"), [(1, 1), (20, 1), (60, 2), (110, 4), (150, 4), (2000, 32)]
)
def test_parcels_are_as_many_as_an_even_number_of_workers_shares(n_parts, n_parcels):
    size = 1000  # variables of a subproblem: 1e6 kernel values
    start = size * np.arange(n_parts + 1)
    parts = Subproblems(None, start, np.arange(start[-1], dtype=np.int32))
    parcels = list(parcels_of(parts, 32))
    assert len(parcels) == n_parcels
    assert [one.start for one in parcels[1:]] == [one.stop for one in parcels[:-1]]
    assert parcels[0].start == 0 and parcels[-1].stop == n_parts
    lengths = [one.stop - one.start for one in parcels]
    assert max(lengths) - min(lengths) <= 1


def test_parts_without_variables_are_in_no_parcel():
    assert not list(parcels_of(Subproblems(None, np.zeros(3, int), np.zeros(0, np.int32)), 32))
