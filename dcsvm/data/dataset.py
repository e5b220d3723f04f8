"""Dataset: rows, labels, sample weights, columns of a table and scaling, from any kind of data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dcsvm.data.arrays import Float64Parts, as_labels, as_weights, slices
from dcsvm.data.columns import TableEncoding, TableRows
from dcsvm.data.files import DataError, first_lines, text_pieces
from dcsvm.data.frames import frame_of, frame_of_matrix, is_frame
from dcsvm.data.reading import (
    Buffer,
    Encoded,
    FileOptions,
    SvmlightRows,
    Unscaled,
    check_lines,
    is_comment,
    kind_of,
    read_file,
    read_values,
    text_rows,
)
from dcsvm.data.rows import Rows, Storage, of_columns, stacked
from dcsvm.data.scaling import Extremes, PartsInMemory, Scaling, Source, quantile_scaling
from dcsvm.data.used_columns import data_warnings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OWN_SCALINGS = ("auto", "quantile")  # computed from the data
PIECE_ROWS = 2**17  # rows of a piece of a table
AnyModel = TypeVar("AnyModel", bound=Any)
Own = TypeVar("Own", bound="Dataset")
Result = TypeVar("Result")


class Dataset:
    """Rows with labels and sample weights, made once and trained many times.

    >>> data = dcsvm.Dataset(X, y, scale="auto")
    >>> models = [dcsvm.train(data, C=C) for C in (1, 10, 100)]

    Parameters
    ----------
    X : array, scipy sparse matrix or data frame of shape (n, d)
        Rows; features are used as float32. A data frame is one of pandas or polars, or an object
        with Arrow's C stream. Its columns may be numbers, booleans or text; categories become
        one-hot features of value 0.5. NaN in an array or a gap in a data frame is a missing value:
        the median of its column, and another feature marks it. X is not copied where that can be
        avoided: do not change it while the Dataset is used.
    y : array of shape (n,), optional
        Labels, numbers or strings, or the targets of a regression.
    sample_weight : array of shape (n,), optional
        Nonnegative weights: a row counts as that many copies of itself.
    scale : {"auto", "quantile"} or a scaling, optional
        Scale the features: to [-1, 1], or to a normal distribution by the ranks of their values,
        or as other data, by the attribute `scaling` of a Dataset or a Model. Models have the
        scaling and apply it to the rows they predict.
    feature_weights : array of shape (d,), optional
        Factors of the scaled features.
    like : Dataset or Model, optional
        Encode, scale and weight the rows as the training rows of this one.

    Attributes
    ----------
    labels : float64 or str (n,)
        Zeros if there are none, see `has_labels`.
    sample_weight : float64 (n,) or None
    scaling : Scaling or None
        Applied to the rows; it has the feature weights.
    table : TableEncoding or None
        Encoding of the columns of a table or a data frame.
    first_index : int
        Index of column 0 in the file, 0 or 1.

    Raises
    ------
    ValueError
        If the input is invalid.
    """

    says_first_index = True

    def __init__(
        self,
        X: ArrayLike | Rows | Unscaled,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        scale: str | Scaling | None = None,
        feature_weights: ArrayLike | None = None,
        like: Encoded | None = None,
    ):
        self._rows: Rows | None = None
        self.labels: np.ndarray
        if isinstance(X, Rows):  # of other modules of dcsvm
            self._rows, self._data = X, Unscaled("X", PartsInMemory([], X.n_features))
        else:
            self._data = X if isinstance(X, Unscaled) else read_values(X, like)
        self.name, self.table = self._data.name, self._data.table
        self.is_scaling_stored, self.is_disposable, self.first_index = True, False, 1
        self.scaling = self._scaling_of(scale, like)
        if self._rows is None:
            self._check_width()
        text = self._data.rows
        if isinstance(text, SvmlightRows):
            if not text.n_rows:
                self._make_rows()  # a pass over the text finds its labels
            self._set_labels(text.labels, sample_weight)
            assert text.first_index is not None
            self.first_index = text.first_index
            if self.scaling is not None:
                self.scaling = self.scaling.with_first_index(self.first_index)
                self.labels = self.scaling.scaled_labels(text.labels, self.name)
        else:
            labels = self._data.labels if y is None else as_labels(y)
            if isinstance(X, Rows) and y is not None:  # class indices are not converted
                labels = np.asarray(y)
            given = self._data.sample_weight if sample_weight is None else sample_weight
            self._set_labels(labels, given)
        if feature_weights is not None:
            weighted = self.weighted(feature_weights)
            self.scaling, self._rows = weighted.scaling, weighted.rows

    def _scaling_of(self, scale: str | Scaling | None, like: Encoded | None) -> Scaling | None:
        """Return the scaling to apply. Raises ValueError."""
        if scale is None:
            return None if like is None else like.scaling
        if isinstance(scale, Scaling):
            return scale
        if not isinstance(scale, str) or scale not in OWN_SCALINGS:
            raise ValueError(f"scale must be one of {', '.join(OWN_SCALINGS)}, got {scale!r}")
        one_hot = None if self.table is None else self.table.one_hot

        def found(rows: Source) -> Scaling:
            first_index = rows.first_index if isinstance(rows, SvmlightRows) else None
            first_index = 1 if first_index is None else first_index
            if scale == "auto":
                return Extremes.of(rows).scaling(self.name, first_index, one_hot)
            return quantile_scaling(rows, self.name, first_index, one_hot)

        scaling = first_pass(self._data.rows, found)
        is_text = isinstance(self._data.rows, SvmlightRows)
        return replace(scaling, n_features=None if is_text else self.n_features)

    def _check_width(self) -> None:
        """Raise ValueError if the scaling was made of another number of features.

        Sparse rows may have fewer, and features may be absent in LIBSVM text.
        """
        n_known = None if self.scaling is None else self.scaling.n_features
        rows, n_features = self._data.rows, self.n_features
        if n_known is None or n_known == n_features or isinstance(rows, SvmlightRows):
            return
        is_sparse = isinstance(rows, Float64Parts) and rows.is_sparse
        if not (is_sparse and n_features < n_known):
            raise ValueError(
                f"rows have {n_features} features, the scaling was made of {n_known}: give the "
                "same features"
            )

    def _set_labels(self, labels: np.ndarray | None, sample_weight: ArrayLike | None) -> None:
        """Set labels and sample weights. Raises ValueError."""
        n_rows, self.has_labels = self.n_rows, labels is not None
        self.labels = np.zeros(n_rows) if labels is None else labels
        if len(self.labels) != n_rows:
            raise ValueError(f"{n_rows} rows have {len(self.labels)} labels")
        self.sample_weight: np.ndarray | None = None
        if sample_weight is not None:
            self.sample_weight = as_weights(sample_weight, n_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._data.rows.n_rows if self._rows is None else self._rows.n_samples

    @property
    def n_features(self) -> int:
        """Number of features before scaling, which may drop some."""
        return self._data.rows.n_features

    @property
    def description(self) -> str:
        """One line on a table, empty for other data."""
        return self._data.description

    def __repr__(self) -> str:
        labels = "labels" if self.has_labels else "no labels"
        return f"Dataset({self.n_rows} rows of {self.n_features} features, {labels})"

    @property
    def rows(self) -> Rows:
        """The rows as they are trained: encoded, scaled and weighted. Raises ValueError."""
        return self._make_rows()

    def _make_rows(self) -> Rows:
        """Make the rows, once."""
        if self._rows is not None:
            return self._rows
        data, scaling = self._data.rows, self.scaling
        if scaling is None and isinstance(data, SvmlightRows):
            self._rows = data.unscaled()
        elif scaling is None and isinstance(data, Float64Parts):
            self._rows = Rows.from_array(data.rows)
        else:
            used = scaling or Scaling.identity(data.n_features, self.name)
            self._rows = first_pass(data, lambda rows: self._scaled_rows(used, rows))
        return self._rows

    def _scaled_rows(self, scaling: Scaling, rows: Source) -> Rows:
        if isinstance(rows, SvmlightRows) and rows.first_index is not None:
            scaling = scaling.with_first_index(rows.first_index)
        return scaling.scaled_rows(rows, self.name)

    @staticmethod
    def read(
        path: str | os.PathLike[str],
        *,
        like: Encoded | None = None,
        scale: str | os.PathLike[str] | Scaling | None = None,
        is_lazy: bool = False,
        is_disposable: bool = False,
        **options: Any,
    ) -> Dataset:
        """Read a file: LIBSVM text or a table (CSV, TSV, Parquet, Arrow, Feather).

        Parameters
        ----------
        path : str or path-like
            The file, also packed by gzip, bzip2 or xz. "-" is the standard input.
        like : Dataset or Model, optional
            Encode and scale the rows as the training rows of this one.
        scale : {"auto", "quantile"}, range file of svm-scale, or a scaling, optional
            As for a Dataset. Models do not contain the scaling of a range file.
        is_lazy : bool, default False
            Make the rows when they are used first; errors of labels and syntax are found at once.
        is_disposable : bool, default False
            The data are trained once: training may reorder the rows in place.
        format : str, optional
            A format as of the option --format, such as "csv" or "libsvm". The default is told by
            the ending of the name.
        label : str, optional
            Label column of a table, by name or number, by default a column named target, label,
            class or y, else the last one.
        drop : sequence of str, optional
            Columns of a table to leave out.
        weight : str, optional
            Column of a table with sample weights.
        lenient : bool, default False
            Accept malformed lines of LIBSVM text that svm-train accepts.
        kernel_values : bool, default False
            The file is LIBSVM text of a precomputed kernel.
        threads : int, optional
            Number of threads; the default is all available cores.

        Raises
        ------
        DataError
            If the file cannot be opened or parsed.
        TypeError
            For an unknown option.
        """
        known = loaded(scale)
        read = read_file(os.fspath(path), like, FileOptions(**options))
        if is_lazy and isinstance(read.rows, SvmlightRows):
            read.rows.check()
        data = Dataset(read, scale=known, like=like)
        if not is_lazy:
            data._make_rows()
        data.is_scaling_stored = known is scale
        return data.disposable() if is_disposable else data

    @staticmethod
    def of_text(
        text: Buffer,
        name: str,
        *,
        first_line: int = 1,
        like: Encoded | None = None,
        scale: str | Scaling | None = None,
        **options: Any,
    ) -> Dataset:
        """Parse a LIBSVM text, a part of the file `name`; for options see `read`."""
        rows = text_rows(text, name, like, FileOptions(**options), first_line)
        data = Dataset(Unscaled(name, rows), scale=scale, like=like)
        data._make_rows()
        return data

    @staticmethod
    def pieces(
        path: str | os.PathLike[str],
        *,
        like: Encoded | None = None,
        scale: str | os.PathLike[str] | Scaling | None = None,
        **options: Any,
    ) -> Iterator[Dataset]:
        """Read a file piece by piece; for options see `read`.

        Only one piece of a LIBSVM text is in memory; each has its own number of features. Rows of a
        precomputed kernel are one piece.
        """
        name, known, how = os.fspath(path), loaded(scale), FileOptions(**options)
        if how.kernel_values:
            yield Dataset.read(name, like=like, scale=known, **options)
            return
        if kind_of(name, how, like) is not None:
            table = Dataset.read(name, like=like, scale=known, is_lazy=True, **options)
            for some in slices(table.n_rows, PIECE_ROWS):
                yield table.part(some)
            return
        first_line, n_rows = 1, 0
        for text in text_pieces(name):
            if not (how.lenient and is_comment(text)):
                data = Dataset.of_text(
                    text, name, first_line=first_line, like=like, scale=known, **options
                )
                n_rows += data.n_rows
                yield data
            first_line += text.count(b"\n")
        if n_rows == 0:
            raise DataError(f"{name}: no rows")

    @staticmethod
    def check_first_rows(path: str, like: Encoded, **options: Any) -> None:
        """Encode the first rows of a test file, to find its errors before long work.

        For options see `read`. A stream can be read only once and is not checked. Raises DataError.
        """
        if not os.path.isfile(path):
            return
        how = FileOptions(**options)
        kind = kind_of(path, how, like)
        if kind is None:
            text, first_index = first_lines(path), like.first_index
            check_lines(text, path, lenient=how.lenient, first_index=first_index)
            return
        from dcsvm.data.tables import first_table_rows

        assert like.table is not None
        for _ in first_table_rows(path, kind, like.table, how.label):
            pass

    @staticmethod
    def table_of(X: Any) -> TableEncoding:
        """Find the encoding of a data frame or an array, also if it has only numbers and no gaps.

        Raises DataError.
        """
        return TableEncoding.of(frame_of(X) if is_frame(X) else frame_of_matrix(np.asarray(X)))

    def scaled(self, scale: str | Scaling | None) -> Dataset:
        """Return the data set in a scaling, without weights; for `scale` see the constructor."""
        self._check_source()
        return self._in_scaling(self._scaling_of(scale, None), is_scaling_stored=True)

    def _check_source(self) -> None:
        if self._data.rows.n_rows == 0 < self.n_rows:
            raise ValueError(f"{self.name}: the rows before scaling are not kept")

    def _in_scaling(self, scaling: Scaling | None, **changes: Any) -> Dataset:
        """Return the data set in a scaling of the same features. Raises ValueError."""
        data = self._with(scaling=scaling, _rows=None, **changes)
        data._check_width()  # noqa: SLF001
        return data

    def weighted(self, weights: ArrayLike, columns: np.ndarray | None = None) -> Dataset:
        """Multiply the scaled features by weights, float64 (n_features,), all at least 0.

        `columns`, ascending, are the columns of the weights if they are not all; others have
        weight 0. Raises ValueError for invalid weights, or products beyond float32.
        """
        if isinstance(weights, str):
            raise ValueError(f"weights must be an array, got {weights!r}: dcsvm.train learns them")
        values = np.asarray(weights, np.float64)
        scaling = self._weighted_scaling(values, columns)
        if columns is None:
            values = values[: self.rows.n_features]  # a scaling drops constant columns at the end
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = self.rows.weighted(values, columns)
        products = weighted.csr.values if weighted.dense is None else weighted.dense
        if not np.isfinite(products).all():
            raise ValueError(
                f"feature weights of up to {values.max():.3g} make features of {self.name} too "
                "large for float32"
            )
        return self._with(scaling=scaling, is_scaling_stored=True, _rows=weighted)

    def _weighted_scaling(self, values: np.ndarray, columns: np.ndarray | None) -> Scaling:
        """Return the scaling times weights. Raises ValueError for invalid weights."""
        if columns is None and values.shape != (self.n_features,):
            raise ValueError(
                f"feature_weights must have shape ({self.n_features},), got {values.shape}"
            )
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError("feature_weights must be finite and at least 0")
        used = np.arange(len(values)) if columns is None else columns
        scaling = self.scaling or Scaling.identity(used, self.name, self.first_index)
        return scaling.weighted(of_columns(values, used, scaling.columns))

    def weighted_as(self, other: Encoded, name: str) -> Dataset:
        """Multiply the features by the weights of a model, which is named in errors."""
        scaling = other.scaling
        if scaling is None or scaling.weights is None:
            raise DataError(f"{name}: the model has no feature weights")
        columns = scaling.indices - self.first_index
        absent = scaling.indices[(columns < 0) | (columns >= self.rows.n_features)]
        if len(absent):
            raise DataError(
                f"{name}: feature {absent[0]} has a weight, but {self.name} has no values of it"
            )
        return self.weighted(scaling.weights, columns)

    @property
    def unknown_categories(self) -> list[str]:
        """A sentence for each column with categories that the training rows lack."""
        rows = self._data.rows
        return rows.warnings() if isinstance(rows, TableRows) else []

    def take(self, row_numbers: np.ndarray) -> Dataset:
        """Copy the rows with the given indices, which ascend."""
        data = replace(self._data, rows=self._data.rows.take(row_numbers))
        return self._with(_data=data, _rows=None, **self._labels_of(row_numbers))

    def part(self, some: slice) -> Dataset:
        """Return consecutive rows of a table."""
        assert isinstance(self._data.rows, TableRows)
        data = replace(self._data, rows=self._data.rows.part(some))
        return self._with(_data=data, _rows=None, **self._labels_of(some))

    def followed_by(self, other: Dataset) -> Dataset:
        """Return these rows and then those of another data set, whose rows have weight 1."""
        n_features = max(self.rows.n_features, other.rows.n_features)
        rows, others = (one.rows.with_features(n_features) for one in (self, other))
        weights = self.sample_weight
        if weights is not None:
            weights = np.append(weights, np.ones(other.n_rows))
        labels = np.concatenate([self.labels, other.labels])
        joined = stacked(rows, others.in_form_of(rows, 1))
        return self._with(_rows=joined, labels=labels, sample_weight=weights)

    def changed(
        self, sample_weight: ArrayLike | None = None, scale: str | Scaling | None = None
    ) -> Dataset:
        """Return the data set with other weights or another scaling, where they are given."""
        data = self if scale is None else self.scaled(scale)
        if sample_weight is None:
            return data
        return data._with(sample_weight=as_weights(sample_weight, self.n_rows))  # noqa: SLF001

    def with_labels(self: Own, labels: np.ndarray, sample_weight: np.ndarray | None) -> Own:
        """Return the data set with other labels (n,), as they are, and other weights.

        Unsigned integers are class indices. Raises ValueError.
        """
        weights = None if sample_weight is None else as_weights(sample_weight, self.n_rows)
        return self._with(labels=labels, sample_weight=weights, has_labels=True)

    def _labels_of(self, some: np.ndarray | slice) -> dict[str, np.ndarray | None]:
        weights = self.sample_weight
        weights = None if weights is None else weights[some]
        return {"labels": self.labels[some], "sample_weight": weights}

    def as_floats(self) -> Dataset:
        """Return the data set with dense rows as float32, also where bytes would do."""
        rows = self.rows
        return self._with(_rows=rows.in_storage(Storage.FLOATS) if rows.is_dense else rows)

    def disposable(self) -> Dataset:
        """Return the data set for one training, which may reorder the rows in place.

        It does not keep the rows before scaling. The model shares the rows until it is saved.
        """
        return self.without_source()._with(is_disposable=True)  # noqa: SLF001

    def without_source(self) -> Dataset:
        """Return the data set without the rows before scaling."""
        nothing = PartsInMemory([], self.n_features)
        data = replace(self._data, rows=nothing, labels=None, sample_weight=None)
        return self._with(_rows=self.rows, _data=data)

    def encoded_as(self, other: Encoded) -> Dataset:
        """Return these rows scaled and weighted as others, a data set or a model.

        A range file has no place in a model, so rows that it scaled stay as they are. Raises
        ValueError for other columns of a table, or if the rows before scaling are not kept.
        """
        if self.table is not other.table:
            raise ValueError("the data set has other columns than the training rows: use like=")
        has_ranges = self.scaling is not None and not self.is_scaling_stored
        if self.scaling is other.scaling or (other.scaling is None and has_ranges):
            return self
        self._check_source()
        return self._in_scaling(other.scaling)

    def _with(self: Own, **changes: Any) -> Own:
        """Return a copy with other attributes."""
        other = copy(self)
        vars(other).update(changes)
        return other

    def check_kernel_values(self) -> None:
        """Raise ValueError if the rows cannot be those of a precomputed kernel."""
        if self.scaling is not None:
            raise ValueError("scale needs features, not a precomputed kernel")
        table = self.table
        if table is not None and not (table.are_numbers and table.n_features == len(table.columns)):
            raise ValueError(f"{self.name} has words or gaps, a kernel matrix has neither")

    def check_is_here(self) -> None:
        """Raise TypeError if the rows are on workers."""

    def remote_engine(self, control: Any, test: Dataset | None) -> Any:  # noqa: ARG002 (of RemoteDataset)
        """Return the engine of rows on workers, None for rows in this process."""
        return None

    def model(self, model: AnyModel) -> AnyModel:
        """Add to a model what it needs to predict rows like these: scaling, columns, first index.

        The scaling of a range file is not added.
        """
        model = replace(model, first_index=self.first_index, table=self.table)
        if self.scaling is None or not self.is_scaling_stored:
            return model
        return replace(model, scaling=self.scaling)

    def warnings(self, *, has_classes: bool) -> list[str]:
        """Return a sentence for each thing that is suspicious in training data."""
        return data_warnings(self.rows, self.labels if has_classes else None, self.first_index)


def as_dataset(
    X: ArrayLike | Dataset,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    scale: str | Scaling | None = None,
) -> Dataset:
    """Return the Dataset X, with other weights or another scaling if given, or make one.

    Raises ValueError.
    """
    if not isinstance(X, Dataset):
        return Dataset(X, y, sample_weight=sample_weight, scale=scale)
    if y is not None:
        raise ValueError("the labels of a Dataset are given when it is made: y must be None")
    return X.changed(sample_weight, scale)


def first_pass(rows: Source, work: Callable[[Source], Result]) -> Result:
    """Return work(rows); it is repeated for a text whose first index turns out to be 0."""
    return rows.first_pass(work) if isinstance(rows, SvmlightRows) else work(rows)


def loaded(scale: Any) -> Any:
    """Read a range file; return other values unchanged. Raises DataError."""
    if scale is None or isinstance(scale, Scaling) or scale in OWN_SCALINGS:
        return scale
    from dcsvm.data.scaling import load_scaling

    return load_scaling(scale)
