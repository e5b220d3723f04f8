"""How the variables of a formulation fall into parts that do not touch each other.

A unit is a problem (one against one), or its part in one independent group of rows where no sum
couples them. A family is the units of all folds that have the same problem and group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dcsvm.kernel.kernel_sums import Terms
from dcsvm.kernel.locality import Locality
from dcsvm.problem.formulation import Formulation


@dataclass(frozen=True, eq=False)
class Units:
    formulation: Formulation
    locality: Locality

    @cached_property
    def group(self) -> np.ndarray:
        """The group of every row, int32; all are one where a sum couples them."""
        if self.formulation.has_sums:
            return np.zeros(len(self.locality.order), np.int32)
        return self.locality.group

    @cached_property
    def of(self) -> np.ndarray:
        """The unit of every variable."""
        n_groups = int(self.group[-1]) + 1
        return self.formulation.number * n_groups + self.group[self.formulation.problem.rows]

    @property
    def n_of_fold(self) -> int:
        return self.formulation.n_problems_of_fold * (int(self.group[-1]) + 1)

    @property
    def n_units(self) -> int:
        return self.formulation.n_folds * self.n_of_fold

    @cached_property
    def start(self) -> np.ndarray:
        """Where the variables of each unit begin, and the end."""
        return np.searchsorted(self.of, np.arange(self.n_units + 1))

    def sizes(self, variables: np.ndarray) -> np.ndarray:
        """How many of these variables, ascending, are in each unit."""
        return np.diff(np.searchsorted(variables, self.start))

    def terms(self, variables: np.ndarray) -> Terms:
        """Some variables as kernel sums see them: groups apart, coupled by a sum or not."""
        n_groups, rows = self.locality.n_groups, self.formulation.problem.rows[variables]
        unit = self.formulation.number[variables] * n_groups + self.locality.group[rows]
        return Terms(rows, unit, unit % (self.formulation.n_problems_of_fold * n_groups))
