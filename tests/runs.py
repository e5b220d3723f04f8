"""Short ways to train rows and labels, for the tests."""

from dcsvm.data.dataset import Dataset
from dcsvm.data.rows import Rows
from dcsvm.problem.data_gamma import number_of_gamma
from dcsvm.problem.options import TrainOptions
from dcsvm.training import probability as cross_validation
from dcsvm.training.engine import LocalEngine
from dcsvm.training.fit import begin, fit
from dcsvm.training.state import RunControl


def train_rows(rows: Rows, labels, options: TrainOptions, control=None, *, sample_weight=None,
               test=None, consume=False, **how):  # fmt: skip
    """Train a model. Returns it and its report."""
    data = Dataset(rows, labels, sample_weight=sample_weight)
    test = None if test is None else Dataset(*test)
    model = fit(data.disposable() if consume else data, options, control, test=test, **how)
    return model, model.report


def ready(rows: Rows, labels, options: TrainOptions, control=None, **how):
    """Prepare a run."""
    options = number_of_gamma(options, rows)
    return begin(LocalEngine.of(rows, options), labels, options, control or RunControl(), **how)


def cross_validate(rows: Rows, labels, options: TrainOptions, n_folds, progress=None, *,
                   consume=False):  # fmt: skip
    """Predict every row by a model trained on the other folds."""
    data = Dataset(rows, labels)
    data = data.disposable() if consume else data
    measured, _ = cross_validation.cross_validate(data, options, n_folds, progress)
    return measured.kept[0].predicted
