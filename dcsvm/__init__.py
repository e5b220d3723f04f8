"""Divide-and-conquer kernel SVM (Hsieh, Si and Dhillon, ICML 2014).

    from dcsvm import train, load_model

    model = train(X, y, C=32, gamma=2, levels=4)   # NumPy array or scipy CSR
    model.predict(X_test)                          # the exact solution
    model.predict(X_test, method="early")          # nearest center, then that cluster's model
    model.save("my.model")                         # svm-predict reads it
    model = load_model("my.model")

The floors, from the ground up; each uses those below it only:

    _core, _svmlight   the numerical core and the parser, in csrc/
    machine            threads, cores and memory of this process
    data               rows and labels, files that come in and go out
    kernel             kernel values, and what is known about distances
    compression        fewer vectors for a sum of kernel values
    problem            what is to be solved: options, types, folds, equal rows
    model              what comes out: parts, prediction, the model file
    solving            a problem being solved, checked, stored and reported
    training           Algorithm 1, probabilities, cross validation
    selection          choosing C and gamma: the settings of a grid, scored
    sklearn            scikit-learn's estimators (an extra)
    distributed        training on the workers of a Dask cluster (an extra)
    cli                the commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "Checkpoint",
    "Model",
    "Progress",
    "Stop",
    "Stopped",
    "TrainOptions",
    "grid_search",
    "load_model",
    "train",
]

if TYPE_CHECKING:
    from dcsvm.model.model import Model
    from dcsvm.selection.grid_search import GridResult


def train(
    X,
    y=None,
    *,
    sample_weight=None,
    progress=None,
    stop=None,
    checkpoint=None,
    init_model=None,
    test=None,
    **options,
) -> Model:
    """Train a support vector machine by divide and conquer; returns a Model.

    X (n, d) is a NumPy array or a scipy sparse matrix; features are used as float32. With
    kernel="precomputed" X is the symmetric kernel matrix (n, n), and rows to predict are their
    kernel values with the training rows. y (n,) are labels, numbers or strings, or the targets of
    a regression; one-class needs none. The options are (type, default):

    What is solved

    - svm_type (str, "c_svc"): or "nu_svc", "one_class", "epsilon_svr", "nu_svr", also with -, or
      LIBSVM's number, 0 to 4.
    - C (float, 1.0): cost of an error, of C-SVC and both regressions; above 0.
    - class_weight (dict, None): label -> factor of C, for C-SVC; 1 for labels it lacks.
    - bias (bool, False): C-SVC with a bias, as in LIBSVM; the other types always have one.
    - nu (float, 0.5): of nu-SVC, one-class and nu-SVR; above 0, at most 1.
    - epsilon (float, 0.1): of epsilon-SVR, in units of y: errors up to it cost nothing.
    - probability (bool or "centered", False): fit what predict_probability needs, from five folds;
      "centered" gives 1/2 where a decision value is 0.

    Kernel

    - kernel (str, "rbf"): ``exp(-gamma |x - z|^2)``, or "linear" ``x'z``, "polynomial"
      ``(gamma x'z + coef0)^degree``, "sigmoid" ``tanh(gamma x'z + coef0)``, "precomputed".
    - gamma (float, None): None is 1 / n_features; 0 makes all kernel values equal.
    - coef0 (float, 0.0): of the polynomial and the sigmoid kernel.
    - degree (int, 3): of the polynomial kernel.

    Accuracy

    - tolerance (float, 0.001): largest violation of the optimality conditions, in units of the
      decision value; of nu-SVR in standard deviations of the targets, where these are below 1.
    - gap (float, None): stop at this duality gap relative to the objective, instead.
    - certify (bool, False): check every row with float64 kernel values, not a sample.

    Levels

    - levels (int, None): levels L to 1 with branching^L clusters in the finest; 0 solves directly;
      None lets the number of rows decide.
    - branching (int, 4): clusters for each one of the next coarser level.
    - sample (int, 1000): rows of a level that kernel k-means is run on; at least 8 for each of its
      clusters, in a tree at most 64.
    - clustering (str, "tree"): each cluster is a part of a coarser one; or "adaptive", levels from
      support vectors of the level below; "random", from random rows; "kmeans", a Euclidean tree.
    - early (bool, False): only one level, with a model of its clusters.
    - early_level (int or "auto", None): the level of early prediction; "auto" finds it, for early
      models alone, and is their default; else it is 3, or the finest.
    - overlap (float, None): clusters of the early level that a row is in on average, from 1 to 2;
      None is 1.5 for early models, else 1.
    - seed (int, 0): of the samples and of all folds.

    Time and memory

    - threads (int, None): None is OMP_NUM_THREADS, else the cores this process may use, and one for
      small work.
    - cache_mb (int, None): megabytes for caches, matrices and working copies; None is half of the
      memory this process may use, at most 8000.
    - max_iterations (int, -1): stop after about so many coordinate updates; -1 is no limit.

    Beside the options

    - sample_weight (n,), at least 0: counts each row as that many copies of it; rows of weight 0
      are left out.
    - progress: a dcsvm.Progress that is told what happens.
    - stop: a dcsvm.Stop, which ends training early, after some seconds or when it is requested;
      the model is what there is by then, and Stopped is raised where that is nothing.
    - checkpoint: a dcsvm.Checkpoint, kept up to date for another process to go on from.
    - init_model: a Model of the same rows, or of the first of them, to begin with.
    - test: (X, y) to choose the early level by, where training finds it.

    The model's attribute `report` is the TrainReport. Raises ValueError for input that does not
    fit and TypeError for an unknown option; warns when the solution did not converge.
    """
    from dcsvm.data.rows import Rows
    from dcsvm.problem.options import TrainOptions
    from dcsvm.training import arguments
    from dcsvm.training.train import train_rows

    options = TrainOptions.of(**options)
    control = arguments.checked_control(progress, stop, checkpoint, init_model)
    rows = Rows.from_array(X)
    labels = arguments.labels_of(y, rows.n_samples, options)
    arguments.warn_of_labels(options, labels)
    test = arguments.test_rows_of(test, X, options)
    options = options if test is None else options.choosing_by_test()
    model, report = train_rows(
        rows,
        labels,
        options,
        control,
        sample_weight=sample_weight,
        init_model=init_model,
        test=test,
    )
    arguments.warn_of_report(report)
    return model


def grid_search(
    X,
    y,
    *,
    Cs=None,
    gammas=None,
    epsilons=None,
    folds=5,
    every=False,
    refine=False,
    sample_weight=None,
    stop=None,
    **options,
) -> GridResult:
    """Score all settings of a grid on rows that were held out; returns a GridResult.

    X and y are as for `train`, and so are the options. With early=True early models are scored,
    else exact ones: their losses are those of cross validation.

    - Cs: the C to try; None is 2^-5, 2^-3, ... 2^15, svm-grid's.
    - gammas: the gamma to try; None is 2^-15, 2^-13, ... 2^3, or the `gamma` of the options.
    - epsilons: of epsilon-SVR; None is the `epsilon` of the options.
    - folds: a number, stratified by class, with the `seed` of the options; or for each row (n,) the
      number of the fold that holds it out, negative for rows that are never held out.
    - every (bool): score every setting on all rows. Otherwise a setting is left when it has lost
      more on some of the rows than the best one has on all; its loss is then an estimate. That
      changes nothing about which one is best.
    - refine (bool): then score a fine grid around the best setting.
    - sample_weight (n,): as of `train`; the rows that are held out count as often in the losses.
    - stop: a dcsvm.Stop, which ends the search early.

    The result has `best_C`, `best_gamma`, `best_epsilon` and `best_loss`, the part of the rows that
    are wrong or the mean squared error; of equal ones the smaller C is best. `table` has a column
    for everything that is known of each setting. Raises ValueError for input that does not fit,
    TypeError for an unknown option, and Stopped where it is stopped before anything was scored;
    warns of settings that did not converge, which are not chosen.
    """
    import warnings

    from dcsvm._core import Stop
    from dcsvm.problem.options import TrainOptions
    from dcsvm.selection.grid_search import default_grid, search_grid

    options = TrainOptions.of(**options)
    if stop is not None and not isinstance(stop, Stop):
        raise TypeError(f"stop must be a dcsvm.Stop or None, not {stop!r}")
    grid = default_grid(options, Cs, gammas, epsilons)
    result = search_grid(
        X,
        y,
        options,
        grid,
        folds=folds,
        every=every,
        refine=refine,
        sample_weight=sample_weight,
        stop=stop,
    )
    n_missed = sum(not score.converged for score in result.scores)
    if n_missed:
        warnings.warn(f"{n_missed} settings did not converge", stacklevel=2)
    return result


_ATTRIBUTES = {
    "Checkpoint": "dcsvm.solving.checkpoint",
    "Model": "dcsvm.model.model",
    "Progress": "dcsvm.solving.report",
    "Stop": "dcsvm._core",
    "Stopped": "dcsvm._core",
    "TrainOptions": "dcsvm.problem.options",
    "load_model": "dcsvm.model.file",
}


def __getattr__(name):
    """What is imported when it is asked for, so that the package starts at once."""
    if name not in _ATTRIBUTES:
        raise AttributeError(f"module 'dcsvm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ATTRIBUTES[name]), name)


def __dir__():
    return sorted([*globals(), *_ATTRIBUTES])
