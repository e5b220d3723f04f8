"""Training on rows with few different indices far apart: as if these were 1, 2, 3 and so on, so
that memory follows how many there are. The model has the given indices again."""

from __future__ import annotations

from dataclasses import replace

from dcsvm.data.columns import narrowed, used_columns, widened
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.preparation import kernel_of


class Columns:
    """The columns of rows to train on, and of `others` that meet them, that training works on."""

    def __init__(self, rows: Rows, *others: Rows):
        self.n_features, sides = rows.n_features, [rows, *others]
        most = max(one.n_features for one in sides)
        self.used = used_columns(*(one.with_features(most) for one in sides))

    def of(self, rows: Rows) -> Rows:
        return rows if self.used is None else narrowed(rows, self.used)

    def options(self, options: TrainOptions) -> TrainOptions:
        """Options whose gamma follows from the number of features with that of all of them."""
        if self.used is None or options.gamma is not None:
            return options
        return replace(options, gamma=kernel_of(options, self.n_features).gamma)

    def model(self, model: Model) -> Model:
        """A model that was trained on the used columns, with all of them."""
        if self.used is None:
            return model
        exact, early = model.exact, model.early
        if exact is not None:
            exact = replace(exact, rows=self._all(exact.rows))
        if early is not None:
            partition = replace(early.partition, sample=self._all(early.partition.sample))
            early = replace(early, rows=self._all(early.rows), partition=partition)
        return replace(model, exact=exact, early=early)

    def _all(self, rows: Rows | ChosenRows) -> Rows | ChosenRows:
        if isinstance(rows, ChosenRows):
            return replace(rows, rows=self._all(rows.rows))
        return widened(rows, self.used, self.n_features)
