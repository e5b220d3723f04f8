"""Implementation of dcsvm-compress: read, compress, write, report changed predictions."""

from collections.abc import Callable
from contextlib import closing

from dcsvm.cli.compress import CompressJob
from dcsvm.cli.file_types import check_output
from dcsvm.cli.files import show_beside
from dcsvm.cli.reading import read_other_set
from dcsvm.cli.report import TerminalProgress
from dcsvm.model.reader import load_model
from dcsvm.problem.options import CompressOptions


def compress_file(job: CompressJob, options: CompressOptions) -> int:
    """Run a compression job; return the exit status."""
    assert job.output_file is not None
    model = load_model(job.model_file, threads=options.threads)
    range_file = model.range_file(job.output_file)
    if range_file is not None:
        inputs = (job.model_file, job.rows_file, job.test_file, job.scale)
        check_output(range_file, [one for one in inputs if one is not None])
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
    small.save(job.output_file)
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
