"""What the values of options are converted to. Their limits are those of the training options."""

from __future__ import annotations

import click


class NumberType(click.ParamType):
    name = "number"

    def convert(self, value, param, ctx) -> float:
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)


class WholeNumber(click.ParamType):
    name = "whole number"

    def convert(self, value, param, ctx) -> int:
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number", param, ctx)


class Level(click.ParamType):
    name = "level"

    def convert(self, value, param, ctx) -> int | str:
        if value == "auto":
            return value
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor auto", param, ctx)


class Numbered(click.ParamType):
    """LIBSVM's number of a name, from 0, or the name."""

    name = "number of a name"

    def __init__(self, *values):
        self.values = values

    def convert(self, value, param, ctx):
        name = str(value).replace("-", "_")
        if name in self.values:
            return name
        try:
            number = int(value)
        except ValueError:
            number = -1
        if not 0 <= number < len(self.values):
            *others, last = map(str, range(len(self.values)))
            self.fail(f"{value!r} is not {', '.join(others)} or {last}", param, ctx)
        return self.values[number]

    def shell_complete(self, ctx, param, incomplete):
        from click.shell_completion import CompletionItem

        found = [CompletionItem(str(k), help=str(one)) for k, one in enumerate(self.values)]
        return [item for item in found if item.value.startswith(incomplete)]


class PowersOfTwo(click.ParamType):
    """svm-grid's begin,end,step of an exponent, as the exponents; none of null."""

    name = "begin,end,step"
    most = 1000

    def convert(self, value, param, ctx) -> tuple[float, ...]:
        if not isinstance(value, str) or value == "null":
            return () if value == "null" else value
        try:
            begin, end, step = (float(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is neither begin,end,step nor null", param, ctx)
        if not all(abs(number) <= self.most for number in (begin, end, step)):
            self.fail(f"{value!r} has an exponent beyond {self.most}", param, ctx)
        if step == 0 or (end - begin) / step < 0:
            self.fail(f"{value!r} does not lead from {begin:g} to {end:g}", param, ctx)
        n_steps = int((end - begin) / step * (1 + 1e-12) + 1e-12)
        if n_steps >= self.most:
            self.fail(f"{value!r} has more than {self.most} values", param, ctx)
        return tuple(sorted(begin + k * step for k in range(n_steps + 1)))


class FileName(click.ParamType):
    """A name as it is given; whether the file is there is seen when it is opened."""

    name = "file"

    def __init__(self, kind: str = "file"):
        self.kind = kind

    def convert(self, value, param, ctx) -> str:
        return value

    def shell_complete(self, ctx, param, incomplete):
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.kind)]


NUMBER, WHOLE, LEVEL, POWERS = NumberType(), WholeNumber(), Level(), PowersOfTwo()
NO_OR_YES = Numbered(False, True)
FILE, FOLDER = FileName(), FileName("dir")
