"""SVCCV and SVRCV: SVC and SVR that choose C, gamma and epsilon themselves."""

from __future__ import annotations

import numpy as np

from dcsvm.sklearn.classification import SVC
from dcsvm.sklearn.parameters import documented
from dcsvm.sklearn.regression import SVR
from dcsvm.sklearn.search import Searching


@documented
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

    def __init__(
        self,
        *,
        Cs=11,
        gammas=10,
        cv=None,
        refine=False,
        every=False,
        refit=True,
        kernel="rbf",
        degree=3,
        coef0=0.0,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        levels=None,
        early=False,
        early_level=None,
        overlap=None,
        threads=None,
        memory=None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.refine = refine
        self.every = every
        self.refit = refit
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.levels = levels
        self.early = early
        self.early_level = early_level
        self.overlap = overlap
        self.threads = threads
        self.memory = memory

    def _score_of(self, losses):
        return 1.0 - losses


@documented
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

    def __init__(
        self,
        *,
        Cs=11,
        gammas=10,
        epsilons=(0.1,),
        cv=None,
        refine=False,
        every=False,
        refit=True,
        kernel="rbf",
        degree=3,
        coef0=0.0,
        tol=1e-3,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        random_state=None,
        levels=None,
        early=False,
        early_level=None,
        overlap=None,
        threads=None,
        memory=None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.refine = refine
        self.every = every
        self.refit = refit
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state
        self.levels = levels
        self.early = early
        self.early_level = early_level
        self.overlap = overlap
        self.threads = threads
        self.memory = memory

    def _axes(self, options):
        epsilons = np.asarray(self.epsilons, dtype=np.float64)
        is_valid = epsilons.ndim == 1 and len(epsilons) and np.all(epsilons >= 0)
        if not is_valid or not np.all(np.isfinite(epsilons)):
            raise ValueError("epsilons must be an array of values that are not negative")
        return *super()._axes(options)[:2], epsilons

    def _score_of(self, losses):
        return -losses
