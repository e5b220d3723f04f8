"""dcsvm-predict: predict a LIBSVM file with a model, as svm-predict does, exactly or early."""

from __future__ import annotations

import click

from dcsvm.cli.libsvm_syntax import LibsvmCommand
from dcsvm.cli.options import (
    CONTEXT,
    check_writable,
    guarded,
    lenient_option,
    read_data,
    scale_option,
    threads_option,
    version_option,
)
from dcsvm.cli.streams import say, show_beside


@click.command(cls=LibsvmCommand, context_settings=CONTEXT)
@click.argument("test_file")
@click.argument("model_file")
@click.argument("output_file")
@click.option(
    "-b",
    "probability",
    type=click.IntRange(0, 1),
    default=0,
    metavar="0|1",
    help="Write the label and the probabilities of the classes; the first line is their labels.",
)
@click.option(
    "--early", "method", flag_value="early", help="Use the model of the nearest cluster only."
)
@click.option(
    "--naive",
    "method",
    flag_value="naive",
    help="Sum the models of all clusters of the early level (for comparison).",
)
@click.option(
    "--bcm",
    "method",
    flag_value="bcm",
    help="Combine the models of all clusters of the early level as a Bayesian committee machine, "
    "each by how well its support vectors determine the row (for comparison). Not for precomputed "
    "and indefinite kernels.",
)
@click.option(
    "--decision-values",
    is_flag=True,
    help="Write the prediction and the decision value, positive for the model's first label; of "
    "more than two classes one value for each pair, and the pairs in the first line.",
)
@click.option("-q", "quiet", is_flag=True, help="Do not print the accuracy or error.")
@scale_option
@lenient_option
@threads_option
@version_option
def main(test_file, model_file, output_file, **options) -> None:
    """Predict the labels of TEST_FILE with MODEL_FILE and write them to OUTPUT_FILE, one a line.

    "-" is standard input for TEST_FILE and standard output for OUTPUT_FILE; the accuracy is then
    printed on standard error. Without --early, --naive or --bcm the exact solution predicts, or the
    early level where the model has nothing else.
    """
    if options["probability"] and options["decision_values"]:
        raise click.UsageError("-b 1 and --decision-values cannot be used together")
    guarded(lambda: predict_file(test_file, model_file, output_file, **options))


def predict_file(
    test_file,
    model_file,
    output_file,
    *,
    probability,
    method,
    decision_values,
    quiet,
    lenient,
    scale_file,
    threads,
) -> int:
    """Read, predict, write; returns the exit status."""
    from dataclasses import replace

    import numpy as np

    from dcsvm.data.output_file import write_beside
    from dcsvm.machine import default_threads
    from dcsvm.model.file import load_model
    from dcsvm.model.predict import blocks

    threads = threads or default_threads()
    check_writable(output_file, test_file, model_file, scale_file)
    model = load_model(model_file, threads=threads)
    if method is not None and model.early is None:
        raise ValueError(f"{model_file}: the model has no early level, which --{method} needs")
    if probability and model.probability is None:
        raise ValueError(f"{model_file}: the model has no probabilities, which -b 1 needs")
    how = method or ("exact" if model.exact else "early")
    warnings = warnings_of_worth(model) if method is None and model.exact else []
    model = replace(model, **{"early" if how == "exact" else "exact": None})
    data = read_data(
        test_file,
        lenient=lenient,
        scale_file=scale_file,
        threads=threads,
        serials="any" if model.kernel.is_precomputed else None,
    )
    if probability and model.is_classifier:
        lines_of = with_probabilities
    else:
        lines_of = with_decision_values if decision_values else predictions_alone
    predicted = np.empty(data.rows.n_samples)
    parts = text_parts(lines_of, model, blocks(model, data.rows, how, threads), predicted)
    write_beside(output_file, parts)
    for sentence in [] if quiet else warnings:
        say(f"warning: {sentence}")
    if not quiet:
        tell = show_beside(output_file)
        for line in [*remarks(model, probability), *quality(model, predicted, data.labels)]:
            tell(line)
    return 0


def text_parts(lines_of, model, blocks, predicted):
    """The output, in parts, from the decision values of blocks of rows; fills `predicted`."""
    for some, values in blocks:
        predicted[some], lines = lines_of(model, values)
        if some.start == 0:
            yield header(lines_of, model)
        yield "\n".join([*lines, ""]).encode()


def header(lines_of, model) -> bytes:
    """The first line, where there is one: the labels of probabilities, and which pairs decision
    values are of where there is more than one."""
    labels = shown(model.labels)
    if lines_of is with_probabilities:
        return f"{' '.join(['labels', *labels])}\n".encode()
    if lines_of is with_decision_values and model.n_pairs > 1:
        pairs = [f"{a},{b}" for k, a in enumerate(labels) for b in labels[k + 1 :]]
        return f"{' '.join(['pairs', *pairs])}\n".encode()
    return b""


def shown(predicted) -> list[str]:
    """Predictions as text."""
    import numpy as np

    from dcsvm.model.writer import plain

    distinct, number = np.unique(predicted, return_inverse=True)
    texts = [plain(label) for label in distinct]
    return [texts[k] for k in number.reshape(-1).tolist()]


def predictions_alone(model, values):
    """(predictions, lines)."""
    from dcsvm.model.predict import predicted_from

    predicted = predicted_from(model, values)
    return predicted, shown(predicted)


def with_probabilities(model, values):
    """(predictions, lines) with the probabilities of the classes, as svm-predict writes them."""
    from dcsvm.model.predict import probabilities_from

    probabilities = probabilities_from(model, values)
    predicted = model.labels[probabilities.argmax(axis=1)]
    lines = [
        " ".join([label, *(f"{value:g}" for value in row)])
        for label, row in zip(shown(predicted), probabilities.tolist(), strict=True)
    ]
    return predicted, lines


def with_decision_values(model, values):
    """(predictions, lines) with decision values."""
    predicted, labels = predictions_alone(model, values)
    lines = [
        " ".join([label, *map(repr, row)])
        for label, row in zip(labels, values.tolist(), strict=True)
    ]
    return predicted, lines


def warnings_of_worth(model) -> list[str]:
    """That an exact solution did not converge."""
    worth = model.exact.worth
    if worth is None or worth.converged:
        return []
    sentence = f"the exact solution did not converge, its violation is {worth.violation:.3g}"
    if model.early is not None:
        sentence += "; --early uses the clusters' models"
    return [sentence]


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


def quality(model, predicted, labels) -> list[str]:
    """svm-predict's lines on how good the predictions are."""
    import numpy as np

    if model.svm_type in ("epsilon_svr", "nu_svr"):
        a, b = predicted - predicted.mean(), labels - labels.mean()
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.dot(a, b) ** 2 / (np.dot(a, a) * np.dot(b, b))
        return [
            f"Mean squared error = {np.mean((predicted - labels) ** 2):g} (regression)",
            f"Squared correlation coefficient = {correlation:g} (regression)",
        ]
    correct, total = int(np.count_nonzero(predicted == labels)), len(predicted)
    share = f"{100 * correct / total:g}% ({correct}/{total})"
    return [f"Accuracy = {share} (classification)"]
