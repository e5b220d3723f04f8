"""What a job says of the workers of a Dask cluster."""

from __future__ import annotations

import click

from dcsvm.cli.streams import STANDARD_INPUT
from dcsvm.problem.option_rules import integer, optional
from dcsvm.problem.options import TrainOptions

PROCESSES = optional(integer(1, 1024))


class WithWorkers:
    """A job that may be done by workers, which read its files."""

    training_set_file: str
    test_file: str | None
    scheduler: str | None
    scheduler_file: str | None
    n_workers: int | None

    @property
    def is_remote(self) -> bool:
        """Whether workers of Dask do it."""
        return any(self.workers_named)

    @property
    def workers_named(self) -> tuple[str | int | None, ...]:
        return self.scheduler, self.scheduler_file, self.n_workers

    def check_workers(self, options: TrainOptions) -> None:
        """Raise UsageError, or OptionError, for what does not go together."""
        PROCESSES.check("n_workers", self.n_workers)
        if sum(one is not None for one in self.workers_named) > 1:
            raise click.UsageError("give one of --scheduler, --scheduler-file and --workers")
        if not self.is_remote:
            return
        if self.training_set_file in STANDARD_INPUT:
            raise click.UsageError("workers cannot read standard input: the training set is a file")
        if options.kernel == "precomputed":
            raise click.UsageError("a precomputed kernel (-t 4) is not for workers")
