"""Train on rows with few distinct indices, far apart, as if the indices were 1, 2, 3, ...

Memory then follows the number of distinct indices. Models have the caller's indices again.
"""

from __future__ import annotations

from dataclasses import replace

from dcsvm.data.columns import narrowed, used_columns, widened
from dcsvm.data.rows import ChosenRows, Rows
from dcsvm.model.model import Model
from dcsvm.problem.options import TrainOptions
from dcsvm.solving.preparation import kernel_of


class Columns:
    """Columns that training works on: those with values in `rows` to train on or in `others` that
    meet them, or all columns."""

    def __init__(self, rows: Rows, *others: Rows):
        self.n_features, self.used = rows.n_features, None
        sides = [rows, *others]
        if not any(one.is_dense for one in sides):  # or more features might copy dense rows
            n_features = max(one.n_features for one in sides)
            self.used = used_columns(*(one.with_features(n_features) for one in sides))

    def of(self, rows: Rows) -> Rows:
        """Return the rows with these columns alone."""
        return rows if self.used is None else narrowed(rows, self.used)

    def options(self, options: TrainOptions) -> TrainOptions:
        """Return the options with the default gamma of all columns, where gamma is not set."""
        if self.used is None or options.gamma is not None:
            return options
        return replace(options, gamma=kernel_of(options, self.n_features).gamma)

    def model(self, model: Model) -> Model:
        """Return a model that was trained on these columns with the caller's indices."""
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
