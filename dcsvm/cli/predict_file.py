"""The work of dcsvm-predict and dcsvm-compress: read, predict or compress, write, report."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

from dcsvm.cli.compress import CompressJob
from dcsvm.cli.options import check_output, print_result, print_status, show_beside
from dcsvm.cli.predict import PredictJob
from dcsvm.cli.reading import TerminalProgress, read_other_set, telling_warnings, write_report
from dcsvm.data.dataset import Dataset
from dcsvm.data.files import write_beside
from dcsvm.model.reader import load_model
from dcsvm.problem.options import CompressOptions

FEW_FEATURES = 0.5  # warn below this share of the features of the model
QUOTE = '"'
MIN_DENSE, MIN_SPARSE = 10, 100  # number of rows that usually have most features of the data


def predict_file(job: PredictJob, threads: int | None) -> int:
    """Run a prediction job; return the exit status."""
    start = time.perf_counter()
    model = load_model(job.model_file, threads=threads)
    check_parts(job, model)
    # blocks of rows are read, predicted, measured and written in turn
    method = "exact" if model.exact and not job.early else "early"
    measured = model.measurement(is_kept=job.has_metrics or job.report_file is not None)
    pieces = Dataset.pieces(
        job.test_file, like=model, scale=job.scale, threads=threads,
        kernel_values=model.kernel.is_precomputed, **job.reading,
    )  # fmt: skip
    predicted = model.predict_pieces(
        pieces, method=method, probability=job.probability, threads=threads
    )
    with telling_warnings(quiet=job.quiet):
        write_beside(job.output_file, text_parts(job, model, predicted, measured))
    if not job.quiet:
        for sentence in warnings(job, model, measured):
            print_status(f"warning: {sentence}")
        print_line = show_beside(job.output_file, job.report_file)
        for line in [*remarks(model, job.probability), *measured.lines()]:
            print_line(line)
        if job.has_metrics:
            for line in measured.lines_of_metrics(lambda label: word_of(model.text_of(label))):
                print_line(line)
    if job.report_file is not None:
        seconds = {"total": time.perf_counter() - start}
        values = {"model": job.model_file, "method": method, "n_rows": measured.n_rows}
        values |= {"metrics": measured.metrics(), "seconds": seconds}
        write_report(job.report_file, values)
    return 0


def text_parts(
    job: PredictJob, model: Any, predicted: Iterable[Any], measured: Any
) -> Iterator[bytes]:
    """Yield the output of predicted blocks, and measure them."""
    is_first = True
    for block in predicted:
        measured.add(block)
        if is_first:
            yield header(job, model)
        is_first = False
        has_numbers = block.probabilities is not None or job.decision_values
        lines = model.texts_of(block.predicted, word_of if has_numbers else line_of)
        if block.probabilities is not None:
            lines = with_numbers(lines, block.probabilities, "{:g}".format)
        elif job.decision_values:
            lines = with_numbers(lines, block.values, repr)
        yield "\n".join([*lines, ""]).encode()


def with_numbers(
    labels: list[str], numbers: Any, format_number: Callable[[float], str]
) -> list[str]:
    """Append the numbers of each row to its label."""
    rows = zip(labels, numbers.tolist(), strict=True)
    return [" ".join([label, *map(format_number, row)]) for label, row in rows]


CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\]")
ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}


def word_of(label: str) -> str:
    """Return a label as one word of a line, plain or quoted.

    Words are separated by spaces. Labels with spaces, commas, quotes or line ends are quoted.
    """
    is_plain = label.split() == [label] and not re.search("[,\"']", label)
    return label if is_plain else quoted(label)


def line_of(label: str) -> str:
    """Return a label as a line: as it is, or quoted where lines could not be told apart."""
    is_plain = label.splitlines() in ([label], []) and not label.startswith('"')
    return label if is_plain else quoted(label)


def quoted(text: str) -> str:
    """Return a text in quotation marks, each in it doubled, as CSV does, with line ends escaped."""
    escaped = CONTROLS.sub(lambda c: ESCAPES.get(c[0], f"\\u{ord(c[0]):04x}"), text)
    return f'"{escaped.replace(QUOTE, 2 * QUOTE)}"'


def word_of_pair(first: str, second: str) -> str:
    """Return first,second as one word; if it is quoted, it has CSV of two columns in the quotes."""
    if word_of(first) == first and word_of(second) == second:
        return f"{first},{second}"
    columns = (
        f'"{label.replace(QUOTE, 2 * QUOTE)}"' if re.search('[,"\r\n]', label) else label
        for label in (first, second)
    )
    return quoted(",".join(columns))


def header(job: PredictJob, model: Any) -> bytes:
    """Format the header, if any: labels for probabilities, or class pairs for decision values."""
    labels = list(map(model.text_of, model.labels))
    if job.probability and not model.is_regression:
        words = map(word_of, labels) if model.is_classifier else ["normal", "outlier"]
        name = "labels" if model.is_classifier else "label"
        return f"{' '.join([name, *words])}\n".encode()
    if job.decision_values and model.n_pairs > 1:
        pairs = [word_of_pair(a, b) for k, a in enumerate(labels) for b in labels[k + 1 :]]
        return f"{' '.join(['pairs', *pairs])}\n".encode()
    return b""


def warnings(job: PredictJob, model: Any, measured: Any) -> Iterator[str]:
    """Yield warnings about the test file and the model."""
    is_libsvm = model.exact is not None and model.exact.row_numbers is None
    if has_other_features(job, model, measured, is_libsvm=is_libsvm):
        last, known = model.first_index - 1, (model.exact or model.early).rows.n_features
        yield (
            f"{job.test_file} has features up to index {measured.n_features + last}, the training "
            f"set of {job.model_file} up to {known + last}: are they the same kind of data?"
        )
    status = model.exact.status if model.exact and not job.early else None
    if status is not None and not status.converged:
        hint = "; --early uses the clusters' models" if model.early is not None else ""
        yield f"the exact solution did not converge: violation {status.violation:.3g}{hint}"
    # what svm-scale needs by hand, and labels that nobody can predict
    range_file = f"{job.model_file}.range"
    if is_libsvm and job.scale is None and os.path.exists(range_file):
        yield (
            f"{range_file} is not used: a model in LIBSVM's format does not record scaling; "
            f"if the training rows were scaled by it, give --scale {range_file}"
        )
    if model.is_classifier and measured.n_measured and not measured.has_known_label:
        labels = ", ".join(word_of(model.text_of(label)) for label in model.labels)
        yield f"no label in {job.test_file} is one of the model's: {labels}"


def has_other_features(job: PredictJob, model: Any, measured: Any, *, is_libsvm: bool) -> bool:
    """Return whether the test rows have more features than the model, or few of them."""
    if model.kernel.is_precomputed:
        return False
    rows = (model.exact or model.early).rows
    # scaling drops constant training features, which test rows may have
    is_scaled = model.is_scaled or job.scale is not None
    # LIBSVM's format does not record features beyond the last one of the support vectors
    if measured.n_features > rows.n_features and not is_libsvm and not is_scaled:
        return True
    is_enough = measured.n_measured >= (MIN_DENSE if rows.is_dense else MIN_SPARSE)
    return is_enough and measured.n_features < FEW_FEATURES * rows.n_features


def check_parts(job: PredictJob, model: Any) -> None:
    """Raise ValueError if the model lacks a part that the job needs."""
    for is_lacking, lack in (
        (job.early and model.early is None, "no early level, which --early needs"),
        (job.probability and model.probability is None, "no probabilities, which -b 1 needs"),
    ):
        if is_lacking:
            raise ValueError(f"{job.model_file}: the model has {lack}")


def remarks(model: Any, probability: bool) -> list[str]:
    """Return svm-predict's lines about the probabilities of a model."""
    if model.probability is None:
        return []
    if not probability:
        return ["Model supports probability estimates, but disabled in prediction."]
    if not model.is_regression:
        return []
    return [
        "Prob. model for test data: target value = predicted value + z,",
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={model.probability.A[0]:g}",
    ]


def describe_file(job: PredictJob) -> int:
    """Print the description of a model file; return the exit status."""
    assert job.described is not None
    for line in load_model(job.described).description():
        print_result(line)
    return 0


def compress_file(job: CompressJob, options: CompressOptions) -> int:
    """Run a compression job; return the exit status."""
    assert job.output_file is not None
    model = load_model(job.model_file, threads=options.threads)
    # the range file depends on the model, so it is not among the files checked before
    range_file = model.range_file(job.output_file)
    if range_file is not None:
        inputs = (job.model_file, job.rows_file, job.test_file, job.scale)
        check_output(range_file, [path for path in inputs if path is not None])
    rows, test = (
        None
        if path is None
        else read_other_set(path, job, model, scale=job.scale, threads=options.threads)
        for path in (job.rows_file, job.test_file)
    )
    try:
        with closing(TerminalProgress(job.quiet)) as progress:
            small = model.compress(rows, test=test, tell=bar_of(progress), **options.values)
    except ValueError as error:
        if hasattr(error, "option"):
            raise
        raise ValueError(f"{job.model_file}: {error}") from None
    small.save(job.output_file, threads=options.threads)
    if not job.quiet:
        print_line = show_beside(job.output_file)
        for line in small.report.lines():
            print_line(line)
    return 0


def bar_of(progress: TerminalProgress) -> Callable[[int, int], None]:
    """Return a callback (steps done, total steps) that shows a bar for each model size."""

    def advance(done: int, total: int) -> None:
        if progress.bar is None or done <= progress.bar.n:  # the next size begins
            progress.close()
            progress.begin("landmarks", total, unit="step")
        progress.advance(done)

    return advance
