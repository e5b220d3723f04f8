"""Dataset: rows, labels, sample weights, columns of a table and scaling, from any kind of data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dcsvm.data.arrays import (
    as_labels,
    as_weights,
    complete_labels,
    has_label,
    slices,
    unmasked,
)
from dcsvm.data.columns import TableEncoding
from dcsvm.data.files import DataError, first_lines, read_text, text_pieces
from dcsvm.data.frames import frame_of, frame_of_matrix, is_frame
from dcsvm.data.reading import (
    Buffer,
    Encoded,
    FileOptions,
    Source,
    SvmlightRows,
    TableRows,
    check_lines,
    is_comment,
    kind_of,
    read_values,
    text_rows,
)
from dcsvm.data.rows import Rows, Storage, of_columns, stacked
from dcsvm.data.scaling import Scaling, shift_of
from dcsvm.data.used_columns import data_warnings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OWN_SCALINGS = ("auto", "quantile")  # computed from the data
PIECE_ROWS = 2**17  # rows of a piece of a table
AnyModel = TypeVar("AnyModel", bound=Any)
Own = TypeVar("Own", bound="Dataset")


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
    unmasked, complete_labels = staticmethod(unmasked), staticmethod(complete_labels)

    def __init__(
        self,
        X: ArrayLike | Rows | Source,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        scale: str | Scaling | None = None,
        feature_weights: ArrayLike | None = None,
        like: Encoded | None = None,
    ):
        self.is_scaling_stored, self.is_disposable, self.first_index = True, False, 1
        self._source: Source | None = None
        self._rows: Rows | None = None
        self.labels: np.ndarray
        self.name, self.table, self.description = "X", None, ""
        if isinstance(X, Rows):  # of other modules of dcsvm
            self._rows = X
        else:
            self._source = source = X if isinstance(X, Source) else read_values(X, like)
            self.name, self.table, self.description = source.name, source.table, source.description
        self.scaling = self._scaling_of(scale, like)
        self._check_width()
        if isinstance(X, Rows):
            self._n_features = X.n_features
            # class indices are not converted
            self._set_labels(None if y is None else np.asarray(y), sample_weight)
        else:
            self._take_labels(source, y, sample_weight)
            self._n_features = source.n_features
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
        source = self._known_source
        scaling = source.scaling(scale)
        is_text = isinstance(source, SvmlightRows)
        return replace(scaling, n_features=None if is_text else source.n_features)

    @property
    def _known_source(self) -> Source:
        """The rows before scaling. Raises ValueError if they are not kept."""
        if self._source is None:
            raise ValueError(f"{self.name}: the rows before scaling are not kept")
        return self._source

    def _check_width(self) -> None:
        """Raise ValueError if the scaling was made of another number of features."""
        n_known, source = None if self.scaling is None else self.scaling.n_features, self._source
        if n_known is not None and source is not None and not source.fits(n_known):
            raise ValueError(
                f"rows have {source.n_features} features, the scaling was made of {n_known}: give "
                "the same features"
            )

    def _take_labels(
        self, source: Source, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> None:
        """Set labels and weights: the given ones, or those of the source. Raises ValueError."""
        if not isinstance(source, SvmlightRows):
            labels = source.labels if y is None else as_labels(y)
            given = source.sample_weight if sample_weight is None else sample_weight
            self._set_labels(labels, given)
            return
        if not source.n_rows:
            self._make_rows()  # a pass over the text finds its labels
        self._set_labels(source.labels, sample_weight)
        self.first_index = source.first_index
        if self.scaling is not None:
            self.scaling = self.scaling.with_first_index(self.first_index)
            self.labels = self.scaling.scaled_labels(self.labels, self.name)

    def _set_labels(self, labels: np.ndarray | None, sample_weight: ArrayLike | None) -> None:
        """Set labels and sample weights. Raises ValueError."""
        n_rows, self.has_labels = self.n_rows, labels is not None
        if labels is not None and len(labels):  # an empty column of a file is no label
            self.has_labels = bool(has_label(labels).any())
        self.labels = np.zeros(n_rows) if labels is None else labels
        if len(self.labels) != n_rows:
            raise ValueError(f"{n_rows} rows have {len(self.labels)} labels")
        self.sample_weight: np.ndarray | None = None
        if sample_weight is not None:
            self.sample_weight = as_weights(sample_weight, n_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self._rows is not None:
            return self._rows.n_samples
        return self._known_source.n_rows

    @property
    def n_features(self) -> int:
        """Number of features before scaling, which may drop some."""
        return self._n_features

    def __repr__(self) -> str:
        labels = "labels" if self.has_labels else "no labels"
        return f"Dataset({self.n_rows} rows of {self.n_features} features, {labels})"

    @property
    def rows(self) -> Rows:
        """The rows as they are trained: encoded, scaled and weighted. Raises ValueError."""
        return self._make_rows()

    def _make_rows(self) -> Rows:
        """Make the rows, once."""
        if self._rows is None:
            source, scaling = self._known_source, self.scaling
            if scaling is None:
                self._rows = source.unscaled()
            else:
                make = source.shifted if scaling.is_shift else source.scaled
                self._rows = make(scaling)
        return self._rows

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
            A format of the option --format, such as "csv" or "libsvm". By default, the name of the
            file ends in its format.
        header : bool, optional
            Whether the first line of CSV or TSV contains the column names. By default, this is
            decided by the content.
        label : str, optional
            Label column of a table, by name or number; the default is the last one. Rows to predict
            may lack labels, which are then nan or "".
        is_labelled : bool, default True
            False for a training set without a label column, for one-class.
        drop : sequence of str, optional
            Columns of a table to ignore: names or numbers, or comma-separated lists of them.
        category : sequence of str, optional
            Columns of a table whose numbers name categories, given as in `drop`.
        weight : str, optional
            Column of a table with sample weights.
        lenient : bool, default False
            Accept malformed lines of LIBSVM text that svm-train accepts.
        kernel_values : bool, default False
            The file is LIBSVM text of a precomputed kernel.
        threads : int, optional
            Number of threads; the default is all available cores.

        Returns
        -------
        Dataset
            The rows and labels.

        Raises
        ------
        DataError
            If the file cannot be opened or parsed.
        TypeError
            For an unknown option.
        """
        scaling = loaded(scale)
        source = _source_of(os.fspath(path), like, FileOptions(**options))
        if is_lazy and isinstance(source, SvmlightRows):
            source.check()
        data = Dataset(source, scale=scaling, like=like)
        if not is_lazy:
            data._make_rows()
        data.is_scaling_stored = scaling is scale
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
        data = Dataset(rows, scale=scale, like=like)
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
        """Read a file piece by piece.

        The generator does not hold pieces that it has yielded. Rows of a precomputed kernel are one
        piece.

        Parameters
        ----------
        path, like, scale, **options : as for `read`
            The file and how to read it.

        Yields
        ------
        Dataset
            The next rows. Each piece of a LIBSVM text has its own number of features.

        Raises
        ------
        DataError
            If the file cannot be opened or parsed.
        """
        name, scaling, reading = os.fspath(path), loaded(scale), FileOptions(**options)
        if reading.kernel_values:
            yield Dataset.read(name, like=like, scale=scaling, **options)
            return
        if kind_of(name, reading, like) is not None:
            table = Dataset.read(name, like=like, scale=scaling, is_lazy=True, **options)
            for piece in slices(table.n_rows, PIECE_ROWS):
                yield table.take(np.arange(piece.start, piece.stop))
            return
        # LIBSVM text is read piece by piece, and errors name lines of the whole file
        first_line, n_rows = 1, 0
        for text in text_pieces(name):
            if not (reading.lenient and is_comment(text)):
                data = Dataset.of_text(
                    text, name, first_line=first_line, like=like, scale=scaling, **options
                )
                n_rows += data.n_rows
                yield data
                del data  # before the next piece is parsed
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
        reading = FileOptions(**options)
        kind = kind_of(path, reading, like)
        if kind is None:
            text, first_index = first_lines(path), like.first_index
            check_lines(text, path, lenient=reading.lenient, first_index=first_index)
            return
        from dcsvm.data.tables import other_table

        for _ in other_table(path, kind, like, reading, is_head=True):
            pass

    @staticmethod
    def table_of(X: Any) -> TableEncoding:
        """Find the encoding of a data frame or an array, also if it has only numbers and no gaps.

        Raises DataError.
        """
        return TableEncoding.of(frame_of(X) if is_frame(X) else frame_of_matrix(np.asarray(X)))

    def scaled(self, scale: str | Scaling | None) -> Dataset:
        """Return the data set in a scaling, without weights.

        Parameters
        ----------
        scale : {"auto", "quantile"}, Scaling or None
            The scaling, as for the constructor.

        Returns
        -------
        Dataset
            The scaled rows, with the same labels.
        """
        return self._in_scaling(self._scaling_of(scale, None), is_scaling_stored=True)

    def shifted(
        self, kernel_type: Any, tell: Callable[[str], None], like: Encoded | None = None
    ) -> Dataset:
        """Return the rows for a KernelType, with columns shifted that float32 rounds too much.

        Only kernels of differences allow it; for others a sentence about such a column is told. The
        shift of `like`, a model to start from, is kept. Scaled rows, and rows whose source is not
        kept, stay as they are. Raises ValueError.
        """
        scaling = self.scaling
        if not self._has_source or not (scaling is None or scaling.has_only_weights):
            return self
        shift = None if like is None else like.scaling
        if shift is None or not shift.is_shift:
            columns, rounding = self._rounded_away()
            if len(columns) == 0:
                return self
            if not kernel_type.is_of_distance:
                tell(self._rounding_sentence(columns, rounding, kernel_type))
                return self
            shift = shift_of(columns, rounding, self.name, self.first_index)
        data = self._in_scaling(shift)
        if scaling is None or scaling.weights is None:
            return data
        return data.weighted(scaling.weights, scaling.columns)

    @property
    def _has_source(self) -> bool:
        return self._source is not None

    def _rounded_away(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns that float32 rounds too much, see `Source.rounded_away`."""
        return self._known_source.rounded_away(self.rows)

    def _rounding_sentence(
        self, columns: np.ndarray, rounding: np.ndarray, kernel_type: Any
    ) -> str:
        """Tell by how much float32 rounds the first of some columns, and what to do."""
        column, (lowest, highest, error) = int(columns[0]), rounding[:, 0].tolist()
        name = f"feature {column + (self.first_index if self._counts_in_file else 0)}"
        if self.table is not None:
            name = f"column {self.table.feature_names[column]}"
        others = f" ({len(columns) - 1} more alike)" if len(columns) > 1 else ""
        advice = f"subtract its smallest value, {-lowest:.17g}, or scale the features"
        advice += " (--scale auto)"
        if kernel_type.is_precomputed:
            advice = "compute the kernel of features less their smallest values"
        return (
            f"{name}{others} is rounded to float32 by up to {error:.2g}, and its values differ by "
            f"at most {lowest + highest:.3g}: {advice}"
        )

    @property
    def _counts_in_file(self) -> bool:
        """Whether users count the columns from `first_index`, as in a text, not from 0."""
        return isinstance(self._source, SvmlightRows)

    def _in_scaling(self, scaling: Scaling | None, **changes: Any) -> Dataset:
        """Return the data set in a scaling of the same features. Raises ValueError."""
        data = self._with(scaling=scaling, _source=self._known_source, _rows=None, **changes)
        data._check_width()  # noqa: SLF001
        return data

    def weighted(self, weights: ArrayLike, columns: np.ndarray | None = None) -> Dataset:
        """Multiply the scaled features by weights.

        Parameters
        ----------
        weights : array of shape (n_features,)
            The weights, at least 0.
        columns : int array, ascending, optional
            The columns of the weights if they are not all; the others have weight 0.

        Returns
        -------
        Dataset
            The weighted rows, with the same labels.

        Raises
        ------
        ValueError
            For invalid weights, or products beyond float32.
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
        scaling = scaling.with_all(used) if scaling.is_shift else scaling
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
        return self._source.warnings() if isinstance(self._source, TableRows) else []

    def take(self, row_numbers: np.ndarray) -> Dataset:
        """Copy the rows with the given indices, which ascend."""
        source, weights = self._known_source.take(row_numbers), self.sample_weight
        return self._with(
            _source=source,
            _rows=None,
            labels=self.labels[row_numbers],
            sample_weight=None if weights is None else weights[row_numbers],
        )

    def followed_by(self, other: Dataset) -> Dataset:
        """Return these rows and then those of another data set, whose rows have weight 1."""
        n_features = max(self.rows.n_features, other.rows.n_features)
        rows, others = (data.rows.with_features(n_features) for data in (self, other))
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
        return self._with(_rows=self.rows, _source=None)

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


def _source_of(path: str, like: Encoded | None, options: FileOptions) -> Source:
    """Read a file, with the options of `Dataset.read`. Raises DataError."""
    kind = kind_of(path, options, like)
    if kind is None:
        return text_rows(read_text(path), path, like, options)
    from dcsvm.data.tables import other_table, training_table

    if like is None:
        return training_table(path, kind, options)
    rows = other_table(path, kind, like, options)
    for sentence in rows.warnings():
        warnings.warn(f"{path}: {sentence}", stacklevel=2)
    return rows


def loaded(scale: Any) -> Any:
    """Read a range file; return other values unchanged. Raises DataError."""
    if scale is None or isinstance(scale, Scaling) or scale in OWN_SCALINGS:
        return scale
    from dcsvm.data.scaling import load_scaling

    return load_scaling(scale)
