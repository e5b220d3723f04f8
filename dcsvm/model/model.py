"""Provide Model, a trained model that predicts, compresses and saves itself."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcsvm.data.arrays import as_labels
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import write_beside
from dcsvm.data.rows import Rows
from dcsvm.data.scaling import (
    Interval,
    Offsets,
    Quantiles,
    is_range,
    range_file_of,
    range_text,
)
from dcsvm.machine import default_threads, threads_that_pay, usable_threads
from dcsvm.model.metrics import Measurement, Outcome, table_html
from dcsvm.model.parts import ExactModel, ModelParts, Probability
from dcsvm.model.writer import label_text, model_text, with_label_order
from dcsvm.problem.options import TrainOptions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dcsvm.model.compress import Tell


@dataclass(frozen=True, eq=False, repr=False)
class Model(ModelParts):
    """A trained model: the exact solution, the early level, or both.

    With many rows, rbf kernel values beyond a cutoff are skipped. This changes no label. It changes
    a decision value by at most 2^-24 times the largest coefficient. Kernel values are float32, or
    float64 if the coefficients are so large that rounding would matter.

    Attributes
    ----------
    labels : float64 or str (k,)
        Labels of the classes; empty for one-class and regression.
    exact : ExactModel or None
        The exact solution.
    early : EarlyModel or None
        The early level.
    report : TrainReport, CompressionReport or None
        Report of the training or the compression; None for a loaded model.
    scaling : Scaling or None
        Scaling of the training rows. The methods apply it to X. The model file contains it.
    table : TableEncoding or None
        Encoding of the columns of a table, if the training set was a table or a data frame.
    """

    report: Any = None

    def __repr__(self) -> str:
        described = [
            f"{name}: {value}" if name in ("exact", "early") else str(value)
            for name, value in self._described()
        ]
        return f"Model({', '.join(described)})"

    def _repr_html_(self) -> str:
        return table_html("dcsvm.Model", self._described())

    def _described(self) -> Iterator[tuple[str, str]]:
        """Yield names and values that describe the model."""
        yield "type", self.svm_type
        yield "kernel", self.kernel.describe()
        if self.is_classifier:
            yield "labels", f"{len(self.labels)} classes"
        if self.exact is not None:
            yield "exact", f"{self.exact.rows.n_samples} support vectors"
        if self.early is not None:
            n_clusters = self.early.partition.n_clusters
            yield "early", f"{self.early.rows.n_samples} support vectors in {n_clusters} clusters"
        if self.scaling is not None and self.is_scaled:
            yield "scaling", f"rows are scaled by {self.scaling.name}"

    def decision_function(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Compute decision values.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame (n, n_features) or Dataset
            Rows. For a precomputed kernel, kernel values (n, n_training_rows).
        method : {"exact", "early"}, optional
            The part of the model to use. The default is the exact solution, or the early level if
            the model has no exact solution.
        threads : int, optional
            Number of threads; the default is the same as for the commands.

        Returns
        -------
        float64 (n,) or (n, n_pairs)
            With two classes, a value is positive for the first. More classes have one column per
            pair (0, 1), (0, 2), ..., (k - 2, k - 1), positive for the first class of the pair. A
            value is nan if the row's cluster has neither class of the pair.

        Raises
        ------
        ValueError
            If X does not fit the model, or the model lacks the part that `method` names.
        """
        values = self._few_values(X, method, threads)
        if values is None:
            rows, threads = self._arguments(X, threads)
            values = self.pair_values(rows, method, threads)
        return values[:, 0] if self.n_pairs == 1 else values

    def predict(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Predict labels or values.

        Parameters
        ----------
        X, method, threads : as for `decision_function`
            The rows, the part of the model to use, and the number of threads.

        Returns
        -------
        float64 or str (n,)
            For a classifier the label with the most pair votes; ties go to the first. For one-class
            +1, or -1 for an outlier. For regression the value.

        Raises
        ------
        ValueError
            As for `decision_function`.
        """
        values = self._few_values(X, method, threads)
        if values is not None:
            return self.predicted_from(values)
        rows, threads = self._arguments(X, threads)
        return self.predictions(rows, method, threads)

    def predict_probability(
        self, X: ArrayLike | Rows, *, method: str | None = None, threads: int | None = None
    ) -> np.ndarray:
        """Estimate class probabilities.

        Parameters
        ----------
        X, method, threads : as for `decision_function`
            The rows, the part of the model to use, and the number of threads.

        Returns
        -------
        float64 (n, k)
            Probabilities of the classes, in the order of `labels`. For one-class (n, 2): of a
            normal row, and of an outlier.

        Raises
        ------
        ValueError
            If the model has no probabilities, and as for `decision_function`.
        """
        if not self.is_regression and self.probability is not None:
            values = self._few_values(X, method, threads)
            if values is not None:
                return self.probabilities_from(values)
        rows, threads = self._arguments(X, threads)
        return self.class_probabilities(rows, method, threads)

    def predict_pieces(
        self,
        pieces: Iterable[Dataset],
        *,
        method: str | None = None,
        probability: bool = False,
        threads: int | None = None,
    ) -> Iterator[Outcome]:
        """Predict data sets one by one, such as the pieces of a file, in blocks of rows.

        With `probability` the label of a classifier is the most probable one. Raises ValueError as
        `decision_function`.
        """
        model = self.with_only(self.part(method))
        models, threads = {model.first_index: model}, usable_threads(threads)
        for data in pieces:
            first_index = data.first_index
            model = models.get(first_index) or model.for_first_index(first_index)
            # kept, as later pieces are rarely wider: the support vectors are prepared once
            model = models[first_index] = _widened(model, data.rows.n_features)
            for block, values in model.predictor(method).blocks(data.rows, threads):
                probabilities, predicted = None, model.predicted_from(values)
                if probability and not self.is_regression:
                    probabilities = model.probabilities_from(values)
                if probabilities is not None and self.is_classifier:
                    predicted = model.labels[probabilities.argmax(axis=1)]
                labels = data.labels[block] if data.has_labels else np.empty(0)
                yield Outcome(labels, predicted, values, probabilities, n_features=data.n_features)
            del data  # its memory is free for the next one

    def measurement(self, *, is_kept: bool = False) -> Measurement:
        """Return what measures predictions of this model; metrics need that they `is_kept`."""
        return Measurement(self.svm_type, self.labels, is_kept=is_kept)

    def description(self) -> Iterator[str]:
        """Yield lines on the problem, the parts, the scaling and the feature weights."""
        yield f"type: {self.svm_type}"
        if self.is_classifier:
            yield f"labels: {', '.join(map(_shown, self.labels))}"
        yield f"kernel: {self.kernel.describe()}"
        if self.exact is not None:
            yield f"exact: {self.exact.rows.n_samples} support vectors"
        if self.early is not None:
            n_clusters = self.early.partition.n_clusters
            yield f"early: {self.early.rows.n_samples} support vectors in {n_clusters} clusters"
        if self.probability is not None:
            yield "probabilities: yes"
        # the scaling, and the weights if it has them
        scaling = self.scaling
        if scaling is None:
            yield "scaling: none"
            return
        kinds = {Interval: "ranges", Quantiles: "quantiles", Offsets: "smallest values"}
        yield f"scaling: {kinds[type(scaling.features)]} of {len(scaling.columns)} features"
        if scaling.weights is not None:
            names = self.feature_names
            yield "feature weights, largest first:"
            for k in np.argsort(-scaling.weights, kind="stable"):
                yield f"{names[k]} {scaling.weights[k]:.4g}"

    @property
    def weights_by_index(self) -> dict[int, float]:
        """The weight of each feature index in files; features of weight 0 are absent."""
        scaling = self.scaling
        if scaling is None or scaling.weights is None:
            return {}
        return dict(zip(scaling.indices.tolist(), scaling.weights.tolist(), strict=True))

    @staticmethod
    def text_of(label: float | str) -> str:
        """Format a label or a value as in files: integers without a decimal point."""
        return label_text(label)

    @staticmethod
    def texts_of(labels: np.ndarray, form: Callable[[str], str] = str) -> list[str]:
        """Format labels or values (n,), see `text_of`; `form` changes each text."""
        different, index = np.unique(labels, return_inverse=True)
        texts = [form(label_text(label)) for label in different]
        return [texts[k] for k in index.reshape(-1).tolist()]

    def _few_values(
        self, X: ArrayLike | Rows, method: str | None, threads: int | None
    ) -> np.ndarray | None:
        """Compute `few_values` after a check of the threads."""
        TrainOptions.check("threads", threads)
        return self.few_values(X, method)

    def with_labels(self, classes: np.ndarray) -> Model:
        """Name the classes anew (k,); other values than numbers and text become indices."""
        try:
            labels = as_labels(classes)
        except ValueError:
            labels = np.zeros(0)
        are_distinct = len(np.unique(labels)) == len(classes)
        return replace(self, labels=labels if are_distinct else np.arange(float(len(classes))))

    def in_label_order(self, labels: np.ndarray) -> Model:
        """Return the model with its classes in the order of `labels` (k,). Raises ValueError."""
        return with_label_order(self, labels)

    @staticmethod
    def of_vectors(
        options: TrainOptions,
        vectors: ArrayLike | None,
        dual_coef: np.ndarray,
        rho: np.ndarray,
        *,
        row_numbers: np.ndarray,
        n_rows: int,
        n_sv: np.ndarray | None = None,
        sigmoids: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Model:
        """Make an exact model of support vectors; `n_sv` (k,) counts those of each class.

        A precomputed kernel has no `vectors` but `row_numbers` among `n_rows` training rows. The
        arrays are those of an ExactModel, and A and B of Probability. The labels are the indices of
        the classes. Raises ValueError for values beyond float32.
        """
        scaling = None
        if vectors is None:
            rows = Rows(len(row_numbers), n_rows, columns=row_numbers.astype(np.int32))
        else:
            data = Dataset(vectors).shifted(options.kernel_type, warnings.warn)
            rows, scaling = data.rows, data.scaling
        return Model(
            options.kernel_on(rows.n_features),
            np.arange(0.0 if n_sv is None else float(len(n_sv))),
            ExactModel(rows, dual_coef, rho, n_sv, row_numbers.astype(np.int64)),
            None,
            svm_type=options.svm_type,
            probability=None if sigmoids is None else Probability(*sigmoids),
            scaling=scaling,
        )

    def _arguments(self, X: ArrayLike | Rows, threads: int | None) -> tuple[Rows, int]:
        rows = X if isinstance(X, Rows) else self.rows_of(X)
        if TrainOptions.check("threads", threads) is None:
            n_vectors = self.part().rows.n_samples
            return rows, threads_that_pay(default_threads(), rows.work_with(n_vectors))
        return rows, usable_threads(threads)

    def rows_of(self, X: ArrayLike) -> Rows:
        """Convert rows to predict as the training rows were: encoded, scaled and weighted.

        Dense rows must have as many features as the training rows; sparse rows may have fewer. More
        features are allowed for a LIBSVM model, which does not store their number, and for a model
        with a scaling, which ignores features without a range.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame (n, n_features), or Dataset
            Rows, or kernel values for a precomputed kernel. A Dataset with encoded columns is made
            with `like=model`, or is the one that was trained.

        Returns
        -------
        Rows
            The rows as float32 or bytes.

        Raises
        ------
        ValueError
            If X does not fit the model.
        """
        part = self.part()
        data = X.encoded_as(self) if isinstance(X, Dataset) else Dataset(X, like=self)
        for sentence in data.unknown_categories:
            warnings.warn(sentence, stacklevel=4)
        rows, n_trained = data.rows, part.rows.n_features
        if self.table is not None:
            return rows.with_features(n_trained)
        is_longer_allowed = part.row_numbers is None or self.is_scaled
        is_sparse = hasattr(X, "tocsr") or isinstance(X, Dataset)  # of a file, for example
        too_few = data.n_features < n_trained and not is_sparse
        too_many = data.n_features > n_trained and not is_longer_allowed
        if (too_few and not self.kernel.is_precomputed) or too_many:
            name = "kernel values" if self.kernel.is_precomputed else "features"
            raise ValueError(
                f"rows have {data.n_features} {name}, the model was trained on {n_trained}"
            )
        return rows

    def compress(
        self,
        X: ArrayLike | Rows | Dataset | None = None,
        *,
        test: ArrayLike | Rows | Dataset | None = None,
        tell: Tell = None,
        **options: float | str | None,
    ) -> Model:
        """Replace the support vectors of one part by fewer landmarks, and drop the other part.

        Landmarks are fitted to the decision values. One of the options vectors, times and loss is
        required.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame (n, n_features) or Dataset, optional
            Rows to fit, such as the training rows. The default is the support vectors. A Dataset
            is made with `like=model`.
        test : array-like, sparse matrix, data frame (m, n_features) or Dataset, optional
            Rows to measure the changes on. The model must not have been trained on them, and they
            must not be among the rows to fit.
        tell : callable, optional
            Called as tell(steps done, all steps).
        vectors : int, optional
            Largest number of landmarks.
        times : float, optional
            Approximate reduction factor of the kernel evaluations per row.
        loss : float, optional
            Percentage of labels that may change, with 95 % confidence. It requires test rows.
        method : {"exact", "early"}, optional
            As for `decision_function`.
        steps : int, optional
            Optimization steps: per cluster of an early model, in total for an exact model. More
            steps fit better. The default is at most 6000.
        seed : int, default 0
            Random seed.
        threads : int, optional
            As for `decision_function`. The result does not depend on it.

        Returns
        -------
        Model
            The compressed model; its `report` is a CompressionReport.

        Raises
        ------
        ValueError
            If the model cannot be compressed, the test rows cannot measure the loss, or no tried
            size meets it.
        TypeError
            For an unknown option.
        """
        from dcsvm.model.compress import compress
        from dcsvm.problem.options import CompressOptions

        checked = CompressOptions.of(**options)
        rows, test_rows = (None if given is None else self._taken(given) for given in (X, test))
        parts, report = compress(self, rows, test_rows, checked, tell)
        return replace(self, exact=parts.exact, early=parts.early, report=report)

    def to_onnx(self, *, method: str | None = None) -> bytes:
        """Convert the model to ONNX, with operators of ai.onnx and ai.onnx.ml; requires onnx.

        The inputs are a float tensor X (rows, features), of double where float32 would round the
        features away; or for a model of a table a tensor (rows, 1) for each training column, with
        its name: of text for categories, and of float or double for others, nan where missing.
        Dates are days since 1970, times are hours. The outputs are `label` (rows,), as of
        `predict`; `values` (rows, n_pairs), the decision values; and `probabilities` (rows, k) if
        the model has them.

        Parameters
        ----------
        method : {"exact", "early"}, optional
            As for `decision_function`.

        Returns
        -------
        bytes
            The contents of an .onnx file.

        Raises
        ------
        ImportError
            If onnx is not installed.
        ValueError
            For a precomputed kernel, or if the model lacks the part that `method` names.
        """
        _check_onnx()
        from dcsvm.model.onnx_graph import model_bytes

        return model_bytes(self, method)

    def onnx_nodes(
        self,
        name_of: Callable[[str], str],
        given: dict[str, tuple[str, bool]],
        labels: np.ndarray,
        **how: Any,
    ) -> Any:
        """Return `EstimatorNodes` for a graph of skl2onnx.

        `name_of` makes a word a new name. `given` are the columns by name, or one matrix of all:
        their tensor, and whether it is of text. `labels` (k,) are those of the classes; for `how`
        see `predict_nodes`. Raises ImportError and ValueError as `to_onnx`.
        """
        _check_onnx()
        from dcsvm.model.onnx_graph import estimator_nodes

        return estimator_nodes(self, name_of, given, labels, **how)

    def _taken(self, given: Any) -> Rows:
        if isinstance(given, Dataset):
            return given.encoded_as(self).rows
        return given if isinstance(given, Rows) else self.rows_of(given)

    def to_c(self, *, method: str | None = None) -> str:
        """Convert the model to a file of C99 that needs only libm; its top describes its functions.

        A row is an array of the features, or for a model of a table of its columns, in the order
        of the training file without the label. Text is the number that `dcsvm_code` returns, dates
        are days since 1970, times are hours, and a missing value is NAN.

        Parameters
        ----------
        method : {"exact", "early"}, optional
            As for `decision_function`.

        Returns
        -------
        str
            The contents of a .c file, ASCII.

        Raises
        ------
        ValueError
            For a precomputed kernel, or if the model lacks the part that `method` names.
        """
        from dcsvm.model.c_file import c_text

        return c_text(self, method)

    def range_file(self, path: str | os.PathLike[str]) -> str | None:
        """Return the path of the range file that `save` writes beside `path`, if it writes one."""
        is_file = os.fspath(path) != "-" and (os.path.isfile(path) or not os.path.exists(path))
        has_ranges = self.scaling is not None and is_range(self.scaling)
        return range_file_of(path) if has_ranges and is_file else None

    def save(
        self,
        path: str | os.PathLike[str],
        format: str = "dcsvm",
        *,
        has_range_file: bool = True,
        threads: int | None = None,
    ) -> None:
        """Write the model file; an interrupted save leaves an existing file unchanged.

        Parameters
        ----------
        path : str or path-like
            The model file.
        format : {"dcsvm", "libsvm"}, default "dcsvm"
            "libsvm" writes the format of svm-train, without early level and row numbers.
        has_range_file : bool, default True
            Write the ranges of the features, if they were scaled by ranges, beside a regular file
            for svm-scale. The model file has them, too.
        threads : int, optional
            The number of threads; the default is all cores.

        Raises
        ------
        ValueError
            If the format cannot hold the model, for example because labels are strings.
        OSError
            If the file cannot be written.
        """
        range_file = self.range_file(path)
        if has_range_file and range_file is not None and self.scaling is not None:
            write_beside(range_file, [range_text(self.scaling)])
        write_beside(path, model_text(self, format, threads))


def _check_onnx() -> None:
    """Raise ImportError if onnx is not installed."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError("ONNX requires the package onnx: pip install 'dcsvm[onnx]'") from error


def _shown(label: float | str) -> str:
    """Return a label in a list with commas: as JSON if it has a comma, a quote or a line end."""
    text = label_text(label)
    is_plain = text.isprintable() and "," not in text and '"' not in text
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _widened(model: ModelParts, n_features: int) -> ModelParts:
    """Return a one-part model with at least `n_features` features."""
    part = model.part()
    if n_features <= part.rows.n_features:
        return model
    return model.with_only(part.with_features(n_features))
