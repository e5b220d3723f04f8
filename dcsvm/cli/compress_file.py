"""Implementation of dcsvm-compress: read, compress, write, report changed predictions."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from dcsvm.cli.file_types import check_output
from dcsvm.cli.files import is_stream, show_beside
from dcsvm.cli.job_data import read_data, scaling_given
from dcsvm.cli.jobs import CompressJob
from dcsvm.cli.report import TerminalProgress
from dcsvm.compression.landmarks import CONFIDENCE
from dcsvm.data.files import write_beside
from dcsvm.data.range_file import is_range, range_file_of
from dcsvm.machine import usable_threads
from dcsvm.model.compress import CompressionReport, compress
from dcsvm.model.reader import load_model
from dcsvm.model.writer import model_text
from dcsvm.problem.options import CompressOptions


def compress_file(job: CompressJob, options: CompressOptions) -> int:
    """Run a compression job; return the exit status."""
    threads = usable_threads(options.threads)
    options = replace(options, threads=threads)
    model = load_model(job.model_file, threads=threads)
    if model.scaling and is_range(model.scaling) and not is_stream(job.output_file):
        inputs = (job.model_file, job.rows_file, job.test_file, job.scale_file)
        check_output(range_file_of(job.output_file), [one for one in inputs if one is not None])
    scaling = scaling_given(job) or model.scaling
    rows, test = (
        None
        if path is None
        else read_data(
            job, path, threads, model.table, scaling=scaling, first_index=model.first_index
        ).rows
        for path in (job.rows_file, job.test_file)
    )
    try:
        with closing(TerminalProgress(job.quiet)) as progress:
            parts, report = compress(model, rows, test, options, bar_of(progress))
    except ValueError as error:
        if hasattr(error, "option"):
            raise
        raise ValueError(f"{job.model_file}: {error}") from None
    small = replace(model, exact=parts.exact, early=parts.early)
    if is_stream(job.output_file):  # a stream has no range file
        write_beside(job.output_file, model_text(small))
    else:
        small.save(job.output_file)
    if not job.quiet:
        print_line = show_beside(job.output_file)
        for line in lines_of(report):
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


def lines_of(report: CompressionReport) -> list[str]:
    """Format the size of the new model and the changes of its predictions."""
    ratio = report.values_before / max(report.values, 1)
    lines = [
        f"{report.vectors} of {report.vectors_before} vectors; {report.values:.0f} kernel "
        f"evaluations per row, {ratio:.3g} times fewer"
    ]
    if report.changed is not None and report.changed_at_most is not None:
        lines.append(
            f"labels changed: {100 * report.changed:.3g} % of {report.n_test} test rows, at most "
            f"{100 * report.changed_at_most:.3g} % with {100 * CONFIDENCE:g} % confidence"
        )
    if report.error is not None:
        lines.append(f"root mean squared change of values: {report.error:.3g} (test rows)")
    return lines
