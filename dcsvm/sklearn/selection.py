"""SVCCV and SVRCV: SVC and SVR that choose C, gamma and epsilon themselves."""

from __future__ import annotations

import numpy as np

from dcsvm.sklearn.classification import SVC
from dcsvm.sklearn.parameters import (
    CLASSES,
    CLUSTERS,
    MACHINE,
    SEARCH,
    SEARCHED_KERNEL,
    SOLVING,
    with_parameters,
)
from dcsvm.sklearn.regression import SVR
from dcsvm.sklearn.search import Searching


@with_parameters(*SEARCH, *SEARCHED_KERNEL, *SOLVING, *CLASSES, *CLUSTERS, *MACHINE)
class SVCCV(Searching, SVC):
    """C-support vector classification that chooses C and gamma by cross validation.

    Scores are those of GridSearchCV over SVC with the same folds, but settings share rows, folds
    and clusters, and one that cannot win any more is left. With early=True early models are scored
    and trained. class_weight='balanced' is that of all rows, also in the folds.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    C_, gamma_ : float
        What was chosen: the highest score, of equal ones the smaller C, then the smaller gamma.
        gamma_ and gammas_ are None where the kernel has none.
    Cs_, gammas_ : float64 (n_Cs,), (n_gammas,)
        What was tried, ascending; with refine=True the values of both grids.
    scores_ : float64 (n_folds, n_gammas, n_Cs)
        Accuracy; nan where nothing was scored.
    is_complete_ : bool (n_gammas, n_Cs)
        Whether a setting was scored on all rows. The scores of others, that were left, are
        estimates.
    best_score_ : float
        Accuracy on all rows that were held out.
    table_ : dict
        Columns of what is known of each setting, as of dcsvm.grid_search.

    With refit=True also those of SVC.
    """

    _sought = ("gamma", "C")

    def _score_of(self, losses):
        return 1.0 - losses


@with_parameters(
    *SEARCH, "epsilons", *SEARCHED_KERNEL, *SOLVING, "random_state", *CLUSTERS, *MACHINE
)
class SVRCV(Searching, SVR):
    """Epsilon-support vector regression that chooses C, gamma and epsilon by cross validation.

    Scores are those of GridSearchCV over SVR with the same folds and
    scoring='neg_mean_squared_error'.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    As of SVCCV and SVR, and epsilon_ and epsilons_ (n_epsilons,). Of equal scores the larger
    epsilon is chosen, after the smaller C and gamma. Scores are negative mean squared errors;
    scores_ is (n_folds, n_gammas, n_Cs, n_epsilons), is_complete_ without the folds.
    """

    _sought = ("gamma", "C", "epsilon")

    def _axes(self, options):
        epsilons = np.asarray(self.epsilons, dtype=np.float64)
        is_valid = epsilons.ndim == 1 and len(epsilons) and np.all(epsilons >= 0)
        if not is_valid or not np.all(np.isfinite(epsilons)):
            raise ValueError("epsilons must be an array of values that are not negative")
        return *super()._axes(options)[:2], epsilons

    def _score_of(self, losses):
        return -losses
