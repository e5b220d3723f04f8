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


@click.command(cls=LibsvmCommand, context_settings=CONTEXT)
@click.argument("test_file")
@click.argument("model_file")
@click.argument("output_file")
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
    "--decision-values",
    is_flag=True,
    help="Write the label and the decision value, positive for the model's first label.",
)
@click.option("-q", "quiet", is_flag=True, help="Do not print the accuracy.")
@scale_option
@lenient_option
@threads_option
@version_option
def main(test_file, model_file, output_file, **options) -> None:
    """Predict the labels of TEST_FILE with MODEL_FILE and write them to OUTPUT_FILE, one a line.

    "-" is standard input for TEST_FILE and standard output for OUTPUT_FILE; the accuracy is then
    printed on standard error. Without --early or --naive the exact solution predicts, or the early
    level where the model has nothing else.
    """
    guarded(lambda: predict_file(test_file, model_file, output_file, **options))


def predict_file(
    test_file,
    model_file,
    output_file,
    *,
    method,
    decision_values,
    quiet,
    lenient,
    scale_file,
    threads,
) -> int:
    """Read, predict, write; returns the exit status."""
    import numpy as np

    from dcsvm.model_file import load_model, plain, write_beside
    from dcsvm.plan import default_threads

    threads = threads or default_threads()
    check_writable(output_file)
    model = load_model(model_file, threads=threads)
    if method is not None and model.early is None:
        raise ValueError(f"{model_file}: the model has no early level, which --{method} needs")
    data = read_data(
        test_file,
        lenient=lenient,
        scale_file=scale_file,
        threads=threads,
        serials="any" if model.kernel.is_precomputed else None,
    )
    values = model.decision_function(data.rows, method=method, threads=threads)
    predicted = model.labels_of(values)
    names = [plain(label) for label in model.labels]
    lines = [names[0] if label == model.labels[0] else names[1] for label in predicted.tolist()]
    if decision_values:
        lines = [f"{label} {value!r}" for label, value in zip(lines, values.tolist(), strict=True)]
    write_beside(output_file, ["\n".join([*lines, ""]).encode()])
    correct = int(np.count_nonzero(predicted == data.labels))
    if not quiet:
        total = len(predicted)
        click.echo(
            f"Accuracy = {100 * correct / total:g}% ({correct}/{total}) (classification)",
            err=output_file in ("-", "/dev/stdout"),
        )
    return 0
