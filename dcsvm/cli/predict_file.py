"""Implementation of dcsvm-predict: read, predict, write, report the accuracy."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dcsvm.cli.files import print_result, print_status, show_beside
from dcsvm.cli.job_data import format_of, scaling_given, telling_warnings
from dcsvm.cli.jobs import PredictJob, ShowJob
from dcsvm.cli.report import Quality, write_report
from dcsvm.data.dataset import Dataset, read_dataset, read_pieces
from dcsvm.data.files import write_beside
from dcsvm.data.range_file import range_file_of
from dcsvm.data.scaling import Interval
from dcsvm.machine import usable_threads
from dcsvm.model.metric_report import ClassMetrics, RegressionMetrics
from dcsvm.model.model import Model
from dcsvm.model.parts import ModelParts
from dcsvm.model.predict import blocks, predicted_from, probabilities_from
from dcsvm.model.reader import load_model
from dcsvm.model.writer import plain

FEW_FEATURES = 0.5  # warn below this share of the features of the model
MIN_DENSE, MIN_SPARSE = 10, 100  # number of rows that usually have most features of the data


def predict_file(job: PredictJob) -> int:
    """Run a prediction job; return the exit status."""
    start, threads = time.perf_counter(), usable_threads(job.threads)
    full_model = load_model(job.model_file, threads=threads)
    check_parts(job, full_model)
    if full_model.exact and not job.early:
        method, model = "exact", replace(full_model, early=None)
    else:
        method, model = "early", replace(full_model, exact=None)
    quality = Quality(model.svm_type, model.labels)
    found = Outcomes(model, is_kept=job.has_metrics or job.report_file is not None)
    data = test_data(job, full_model, threads)
    tally = quality, found
    write_beside(job.output_file, text_parts(job, model, data, method, threads, tally))
    metrics = found.metrics() if found.labels else None
    if not job.quiet:
        for sentence in warnings(job, full_model, quality):
            print_status(f"warning: {sentence}")
        print_line = show_beside(job.output_file, job.report_file)
        for line in [*remarks(model, job.probability), *quality.lines()]:
            print_line(line)
        if job.has_metrics and metrics is not None:
            for line in metrics.lines(plain):
                print_line(line)
    if job.report_file is not None:
        seconds = {"total": time.perf_counter() - start}
        values = {"model": job.model_file, "method": method, "n_rows": found.n_rows}
        measured = None if metrics is None else metrics.as_dict()
        write_report(job.report_file, values | {"metrics": measured, "seconds": seconds})
    return 0


class Outcomes:
    """Labels, predictions and scores of all rows, to measure them; empty unless `is_kept`.

    Decision values are kept for two classes, and probabilities if `add` gets them.
    """

    def __init__(self, model: ModelParts, *, is_kept: bool):
        self.model, self.is_kept, self.n_rows = model, is_kept, 0
        self.labels: list[np.ndarray] = []
        self.predicted: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.probabilities: list[np.ndarray] = []

    def add(
        self, labels: np.ndarray, predicted: np.ndarray, values: np.ndarray, *, probability: bool
    ) -> None:
        if not self.is_kept:
            return
        self.labels.append(labels)
        self.predicted.append(predicted)
        if self.model.is_classifier and self.model.n_pairs == 1:
            self.values.append(values[:, 0])
        if self.model.is_classifier and probability:
            self.probabilities.append(probabilities_from(self.model, values))

    def metrics(self) -> ClassMetrics | RegressionMetrics:
        """Measure the predictions of all rows."""
        labels, predicted = np.concatenate(self.labels), np.concatenate(self.predicted)
        if self.model.is_regression:
            return RegressionMetrics.of(labels, predicted)
        values, probabilities = (
            np.concatenate(one) if one else None for one in (self.values, self.probabilities)
        )
        known = self.model.labels if self.model.is_classifier else np.unique(labels)
        return ClassMetrics.of(labels, predicted, known, values, probabilities)


def warnings(job: PredictJob, model: Model, quality: Quality) -> Iterator[str]:
    """Yield warnings about the test file and the model."""
    part = model.exact or model.early
    assert part is not None  # every model file has one of them
    known, found = part.rows.n_features, quality.n_features
    is_scaled = model.scaling is not None or job.scale_file is not None
    is_libsvm = model.exact is not None and part.row_numbers is None
    # scaling drops constant training features, which test rows may have
    is_more = found > known and not is_libsvm and not is_scaled
    enough = MIN_DENSE if part.rows.is_dense else MIN_SPARSE
    is_less = found < FEW_FEATURES * known and quality.n_rows >= enough
    if (is_more or is_less) and not model.kernel.is_precomputed:
        last = model.first_index - 1
        yield (
            f"{job.test_file} has features up to index {found + last}, the training set of "
            f"{job.model_file} up to {known + last}: are they the same kind of data?"
        )
    status = model.exact.status if model.exact and not job.early else None
    if status is not None and not status.converged:
        hint = "; --early uses the clusters' models" if model.early is not None else ""
        yield f"the exact solution did not converge: violation {status.violation:.3g}{hint}"
    range_file = range_file_of(job.model_file)
    if is_libsvm and job.scale_file is None and os.path.exists(range_file):
        yield (
            f"{range_file} is not used: a model in LIBSVM's format does not record scaling; "
            f"if the training rows were scaled by it, give --scale {range_file}"
        )
    if model.is_classifier and quality.n_rows and not quality.has_known_label:
        labels = ", ".join(map(plain, model.labels))
        yield f"no label in {job.test_file} is one of the model's: {labels}"


def test_data(job: PredictJob, model: Model, threads: int) -> Iterator[Dataset]:
    """Read the test file in pieces, or in one piece for a precomputed kernel."""
    kwargs: dict[str, Any] = {"lenient": job.lenient, "threads": threads}
    kwargs["scaling"] = scaling_given(job) or model.scaling
    format = format_of(job.test_file, job, model.table)
    if format is not None:
        assert model.table is not None
        from dcsvm.data.tables import other_table

        pieces = other_table(job.test_file, format, model.table, job.label, kwargs["scaling"])
        with telling_warnings(quiet=job.quiet):
            return iter([*pieces])
    if model.says_first_index:
        kwargs["first_index"] = model.first_index
    if model.kernel.is_precomputed:
        return iter([read_dataset(job.test_file, serials="any", **kwargs)])
    return read_pieces(job.test_file, **kwargs)


def check_parts(job: PredictJob, model: Model) -> None:
    """Raise ValueError if the model lacks a part that the job needs."""
    for is_lacking, lack in (
        (job.early and model.early is None, "no early level, which --early needs"),
        (job.probability and model.probability is None, "no probabilities, which -b 1 needs"),
    ):
        if is_lacking:
            raise ValueError(f"{job.model_file}: the model has {lack}")


def text_parts(
    job: PredictJob,
    model: ModelParts,
    pieces: Iterable[Dataset],
    method: str,
    threads: int,
    tally: tuple[Quality, Outcomes],
) -> Iterator[bytes]:
    """Predict pieces of the test file, yield the output, and count the predictions in `tally`."""
    quality, found = tally
    is_first, models = True, {model.first_index: model}
    for data in pieces:
        first_index = data.first_index
        quality.n_features = max(quality.n_features, data.n_features)
        model = models.get(first_index) or models[model.first_index].for_first_index(first_index)
        model = models[first_index] = widened(model, data.rows.n_features)
        for block, values in blocks(model, data.rows, method, threads):
            predicted, lines = lines_of(job, model, values)
            if data.has_labels:
                quality.add(predicted, data.labels[block])
                found.add(data.labels[block], predicted, values, probability=job.probability)
            found.n_rows += len(predicted)
            if is_first:
                yield header(job, model)
            yield "\n".join([*lines, ""]).encode()
            is_first = False


def widened(model: ModelParts, n_features: int) -> ModelParts:
    """Return a one-part model with at least `n_features` features."""
    if model.exact is not None:
        n_features = max(n_features, model.exact.rows.n_features)
        return replace(model, exact=model.exact.with_features(n_features))
    assert model.early is not None  # a model has one part
    n_features = max(n_features, model.early.rows.n_features)
    return replace(model, early=model.early.with_features(n_features))


def header(job: PredictJob, model: ModelParts) -> bytes:
    """Format the header, if any: labels for probabilities, or class pairs for decision values."""
    labels = texts_of(model.labels)
    if job.probability and model.is_classifier:
        return f"{' '.join(['labels', *labels])}\n".encode()
    if job.decision_values and model.n_pairs > 1:
        pairs = [f"{a},{b}" for k, a in enumerate(labels) for b in labels[k + 1 :]]
        return f"{' '.join(['pairs', *pairs])}\n".encode()
    return b""


def texts_of(predicted: np.ndarray) -> list[str]:
    """Format predictions."""
    distinct, index = np.unique(predicted, return_inverse=True)
    texts = [plain(label) for label in distinct]
    return [texts[k] for k in index.reshape(-1).tolist()]


def lines_of(
    job: PredictJob, model: ModelParts, values: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Return predictions and output lines, with probabilities or decision values on request."""
    format_value: Callable[[float], str] = repr
    if job.probability and model.is_classifier:
        values, format_value = probabilities_from(model, values), "{:g}".format
        predicted = model.labels[values.argmax(axis=1)]
    else:
        predicted = predicted_from(model, values)
        if not job.decision_values:
            return predicted, texts_of(predicted)
    rows = zip(texts_of(predicted), values.tolist(), strict=True)
    return predicted, [" ".join([label, *map(format_value, row)]) for label, row in rows]


def remarks(model: Model, probability: bool) -> list[str]:
    """Return svm-predict's lines about the probabilities of a model."""
    if model.probability is None:
        return []
    if not probability:
        return ["Model supports probability estimates, but disabled in prediction."]
    if model.is_classifier:
        return []
    return [
        "Prob. model for test data: target value = predicted value + z,",
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.probability.A[0]:g}",
    ]


def describe_file(job: ShowJob) -> int:
    """Print the description of a model file; return the exit status."""
    assert job.described is not None
    for line in description(load_model(job.described)):
        print_result(line)
    return 0


def description(model: Model) -> Iterator[str]:
    """Yield lines on the problem, the parts of the model, the scaling and the feature weights."""
    yield f"type: {model.svm_type}"
    if model.is_classifier:
        yield f"labels: {', '.join(map(plain, model.labels))}"
    yield f"kernel: {model.kernel.describe()}"
    if model.exact is not None:
        yield f"exact: {model.exact.rows.n_samples} support vectors"
    if model.early is not None:
        n_clusters = model.early.partition.n_clusters
        yield f"early: {model.early.rows.n_samples} support vectors in {n_clusters} clusters"
    if model.probability is not None:
        yield "probabilities: yes"
    scaling = model.scaling
    if scaling is None:
        yield "scaling: none"
        return
    is_range, n_columns = isinstance(scaling.features, Interval), len(scaling.columns)
    yield f"scaling: {'ranges' if is_range else 'quantiles'} of {n_columns} features"
    if scaling.weights is None:
        return
    names = model.feature_names
    yield "feature weights, largest first:"
    for k in np.argsort(-scaling.weights, kind="stable"):
        yield f"{names[k]} {scaling.weights[k]:.4g}"
