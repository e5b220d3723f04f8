"""The work of dcsvm-compress: read, compress, write, and say what that does to predictions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from dcsvm.cli.files import (
    check_outputs,
    is_stream,
    read_data,
    scaling_given,
    scaling_of,
    show_beside,
)
from dcsvm.cli.jobs import CompressJob
from dcsvm.cli.report import TerminalProgress
from dcsvm.compression.landmarks import CONFIDENCE
from dcsvm.data.range_file import range_file_of
from dcsvm.machine import usable_threads
from dcsvm.model.compress import CompressionReport, compress
from dcsvm.model.file import read_model
from dcsvm.problem.compress_options import CompressOptions


def compress_file(job: CompressJob, options: CompressOptions) -> int:
    """Do the job; returns the exit status."""
    options = replace(options, threads=usable_threads(options.threads))
    ranges = range_file_of(job.model_file)
    inputs = [job.model_file, job.rows_file, job.test_file, job.scale_file, ranges]
    check_outputs(inputs, [job.output_file])
    model = read_model(job.model_file, threads=options.threads)
    if model.range_file_crc32 is not None and is_stream(job.output_file):
        raise ValueError(f"{job.model_file}: its range file needs a plain file for OUTPUT_FILE")
    beside = scaling_of(job.model_file, model)
    how = {"scaling": scaling_given(job) or beside, "first_index": model.first_index}
    rows, test = (
        None if path is None else read_data(job, path, options.threads, **how).rows
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
    (small if beside is None else small.scaled_by(beside)).save(job.output_file)
    if not job.quiet:
        tell = show_beside(job.output_file)
        for line in lines_of(report):
            tell(line)
    return 0


def bar_of(progress: TerminalProgress) -> Callable[[int, int], None]:
    """Return a listener of (steps done, all steps) that shows a bar for each size."""

    def tell(done: int, total: int) -> None:
        if progress.bar is None or done <= progress.bar.n:  # of the next size
            progress.close()
            progress.begin("landmarks", total, unit="step")
        progress.advance(done)

    return tell


def lines_of(report: CompressionReport) -> list[str]:
    """What was done, and what it is worth."""
    ratio = report.values_before / max(report.values, 1)
    lines = [
        f"{report.vectors} vectors of {report.vectors_before}; {report.values:.0f} kernel values "
        f"for a row, {ratio:.3g} times fewer"
    ]
    if report.changed is not None:
        lines.append(
            f"labels changed: {100 * report.changed:.3g} % of {report.n_test} test rows, at most "
            f"{100 * report.changed_at_most:.3g} % with {100 * CONFIDENCE:g} % confidence"
        )
    if report.error is not None:
        lines.append(f"values changed by {report.error:.3g} (root mean square, test rows)")
    return lines
