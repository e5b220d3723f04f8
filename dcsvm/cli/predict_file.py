"""The work of dcsvm-predict: read, predict, write, and say how good it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dcsvm.cli.files import check_outputs, say, scaling_given, scaling_of, show_beside
from dcsvm.cli.jobs import PredictJob
from dcsvm.cli.report import Quality
from dcsvm.data.dataset import Dataset, read_dataset, read_pieces
from dcsvm.data.output_file import write_beside
from dcsvm.data.range_file import range_file_of
from dcsvm.machine import usable_threads
from dcsvm.model.file import read_model
from dcsvm.model.predict import blocks, predicted_from, probabilities_from
from dcsvm.model.writer import plain

FEW_FEATURES = 0.5  # of those that a model knows
FEWEST_DENSE, FEWEST_SPARSE = 10, 100  # rows, in which most of the features are


def predict_file(job: PredictJob) -> int:
    """Do the job; returns the exit status."""
    threads = usable_threads(job.threads)
    inputs = [job.test_file, job.model_file, job.scale_file, range_file_of(job.model_file)]
    check_outputs(inputs, [job.output_file])
    whole = read_model(job.model_file, threads=threads)
    check_parts(job, whole)
    how = "exact" if whole.exact and not job.early else "early"
    model = replace(whole, **{"early" if how == "exact" else "exact": None})
    quality = Quality(model.svm_type, model.labels)
    data = test_data(job, whole, threads)
    parts = text_parts(job, model, data, how, threads, quality)
    write_beside(job.output_file, parts)
    if not job.quiet:
        for sentence in warnings(job, whole, quality):
            say(f"warning: {sentence}")
        tell = show_beside(job.output_file)
        for line in [*remarks(model, job.probability), *quality.lines()]:
            tell(line)
    return 0


def warnings(job: PredictJob, model, quality: Quality) -> Iterator[str]:
    """Yield what looks wrong with the test file or the model."""
    part = model.exact or model.early
    known, found = part.rows.n_features, quality.n_features
    is_scaled = model.range_file_crc32 is not None or job.scale_file is not None
    is_libsvm = model.exact is not None and part.row_numbers is None
    # with a scaling the training set may have had more features, which do not vary
    is_more = found > known and not is_libsvm and not is_scaled
    enough = FEWEST_DENSE if part.rows.is_dense else FEWEST_SPARSE
    is_less = found < FEW_FEATURES * known and quality.n_rows >= enough
    if (is_more or is_less) and not model.kernel.is_precomputed:
        last = model.first_index - 1
        yield (
            f"{job.test_file} has features up to index {found + last}, the training set of "
            f"{job.model_file} up to {known + last}: is it of the same kind?"
        )
    worth = model.exact.worth if model.exact and not job.early else None
    if worth is not None and not worth.converged:
        rest = "; --early uses the clusters' models" if model.early is not None else ""
        yield f"the exact solution did not converge, its violation is {worth.violation:.3g}{rest}"
    range_file = range_file_of(job.model_file)
    if is_libsvm and job.scale_file is None and os.path.exists(range_file):
        yield (
            f"{range_file} is not used: LIBSVM's model format does not say whether "
            f"the rows were scaled by it; if they were, give --scale {range_file}"
        )
    if model.is_classifier and not quality.has_known_label:
        known = ", ".join(map(plain, model.labels))
        yield f"no label in {job.test_file} is one of the model's: {known}"


def test_data(job: PredictJob, model, threads: int) -> Iterator[Dataset]:
    """The rows of the test file, piece by piece; kernel values all at once, as they tell together
    which are missing."""
    how = {"lenient": job.lenient, "threads": threads}
    how["scaling"] = scaling_given(job) or scaling_of(job.model_file, model)
    if model.says_first_index:
        how["first_index"] = model.first_index
    if model.kernel.is_precomputed:
        return iter([read_dataset(job.test_file, serials="any", **how)])
    return read_pieces(job.test_file, **how)


def check_parts(job: PredictJob, model) -> None:
    """Raise ValueError for a model that lacks what the job needs."""
    for is_lacking, lack in (
        (job.early and model.early is None, "no early level, which --early needs"),
        (job.probability and model.probability is None, "no probabilities, which -b 1 needs"),
    ):
        if is_lacking:
            raise ValueError(f"{job.model_file}: the model has {lack}")


def text_parts(job: PredictJob, model, pieces, how: str, threads: int, quality: Quality):
    """The output, in parts, of pieces of the test file; tells `quality` what was predicted."""
    is_first, models = True, {model.first_index: model}
    for data in pieces:
        first_index = data.first_index
        quality.n_features = max(quality.n_features, data.n_features)
        model = models.get(first_index) or models[model.first_index].for_first_index(first_index)
        model = models[first_index] = widened(model, data.rows.n_features)
        for some, values in blocks(model, data.rows, how, threads):
            predicted, lines = lines_of(job, model, values)
            quality.add(predicted, data.labels[some])
            if is_first:
                yield header(job, model)
            yield "\n".join([*lines, ""]).encode()
            is_first = False


def widened(model, n_features: int):
    """The model for rows of so many features, once for all pieces that have no more."""
    part = model.exact or model.early
    part = part.with_features(max(n_features, part.rows.n_features))
    return replace(model, **{"exact" if model.exact else "early": part})


def header(job: PredictJob, model) -> bytes:
    """The first line, where there is one: the labels of probabilities, and which pairs decision
    values are of where there is more than one."""
    labels = shown(model.labels)
    if job.probability and model.is_classifier:
        return f"{' '.join(['labels', *labels])}\n".encode()
    if job.decision_values and model.n_pairs > 1:
        pairs = [f"{a},{b}" for k, a in enumerate(labels) for b in labels[k + 1 :]]
        return f"{' '.join(['pairs', *pairs])}\n".encode()
    return b""


def shown(predicted) -> list[str]:
    """Predictions as text."""
    distinct, number = np.unique(predicted, return_inverse=True)
    texts = [plain(label) for label in distinct]
    return [texts[k] for k in number.reshape(-1).tolist()]


def lines_of(job: PredictJob, model, values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """(predictions, lines), which have the probabilities of the classes, as svm-predict writes
    them, or the decision values, where the job asks for these."""
    if job.probability and model.is_classifier:
        values, form = probabilities_from(model, values), "{:g}".format
        predicted = model.labels[values.argmax(axis=1)]
    else:
        predicted, form = predicted_from(model, values), repr
        if not job.decision_values:
            return predicted, shown(predicted)
    rows = zip(shown(predicted), values.tolist(), strict=True)
    return predicted, [" ".join([label, *map(form, row)]) for label, row in rows]


def remarks(model, probability) -> list[str]:
    """What svm-predict says about the probabilities of a model."""
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
