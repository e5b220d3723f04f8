"""What a call of dcsvm-grid asks for, besides the options of training."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

import click

from dcsvm.cli.files import AUTO
from dcsvm.cli.jobs import FOLDS, SECONDS
from dcsvm.cli.streams import STANDARD_INPUT
from dcsvm.kernel.kernels import WITH_GAMMA
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid import Grid

NONE = "null"


@dataclass(frozen=True)
class GridJob:
    """The files of dcsvm-grid and how to go about them; the exponents are () where they are not
    sought. `resume_file` is "" for that of -out."""

    training_set_file: str
    model_file: str | None
    log2c: tuple[float, ...]
    log2g: tuple[float, ...]
    log2p: tuple[float, ...]
    n_folds: int
    test_file: str | None
    refine: bool
    every: bool
    out_file: str | None
    resume_file: str | None
    png_file: str | None
    quiet: bool
    lenient: bool
    scale_file: str | None
    report_file: str | None
    time_limit: float | None

    @staticmethod
    def of(given: dict) -> GridJob:
        """What was given beside the training options. Raises UsageError."""
        found = {field.name: given[field.name] for field in fields(GridJob)}
        training_set = found["training_set_file"]
        if found["out_file"] is None:
            name = "stdin" if training_set in STANDARD_INPUT else os.path.basename(training_set)
            found["out_file"] = f"{name}.out"
        if found["out_file"] == NONE:
            found["out_file"] = None
        if found["resume_file"] == "":
            found["resume_file"] = found["out_file"]
            if found["out_file"] is None:
                raise click.UsageError("-resume needs a file: -out null writes none")
        return GridJob(**found)

    @property
    def finds_scaling(self) -> bool:
        return self.scale_file == AUTO

    def check(self, options: TrainOptions) -> None:
        """Raise UsageError, or OptionError, for what does not go together."""
        FOLDS.check("n_folds", self.n_folds)
        SECONDS.check("time_limit", self.time_limit)
        if options.svm_type == "one_class":
            raise click.UsageError("one-class (-s 2) has no C, and nothing to choose it by")
        if options.svm_type == "nu_svc" and self.log2c:
            raise click.UsageError(
                "nu-SVC (-s 1) has no C: give -log2c null, and gamma alone is chosen"
            )
        if self.log2p and options.svm_type != "epsilon_svr":
            raise click.UsageError("-log2p is for eps-SVR (-s 3)")
        if self.test_file == self.training_set_file == "-":
            raise click.UsageError("the training set and --test cannot both be standard input")
        if options.kernel == "precomputed" and (self.scale_file or self.test_file):
            raise click.UsageError("a precomputed kernel goes with neither --scale nor --test")
        if not (self.log2c or self.log2p or (self.log2g and options.kernel in WITH_GAMMA)):
            raise click.UsageError("there is nothing to choose: -log2c and -log2g are null")
        try:
            self.grid(options)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    def grid(self, options: TrainOptions) -> Grid:
        """The settings to score. Raises ValueError."""

        def powers(exponents: tuple[float, ...]) -> list[float] | None:
            return [2.0**exponent for exponent in exponents] or None

        gammas = powers(self.log2g) if options.kernel in WITH_GAMMA else None
        Cs = powers(self.log2c) or [options.C]
        return Grid.of(options, Cs, gammas, powers(self.log2p))
