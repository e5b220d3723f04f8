"""What the values of options are converted to. Their limits are those of the training options."""

from __future__ import annotations

from collections.abc import Callable

import click


class Plain(click.ParamType):
    """What `plain` makes of a text, or raises ValueError; `reason` is what is said then."""

    def __init__(self, name: str, plain: Callable[[str], object], reason: str):
        self.name, self.plain, self.reason = name, plain, reason

    def convert(self, value, param, ctx):
        try:
            return self.plain(value)
        except ValueError:
            self.fail(f"{value!r} {self.reason}", param, ctx)


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


NUMBER = Plain("number", float, "is not a number")
WHOLE = Plain("whole number", int, "is not a whole number")
LEVEL = Plain(
    "level",
    lambda value: value if value == "auto" else int(value),
    "is neither a whole number nor auto",
)
POWERS = PowersOfTwo()
NO_OR_YES = Numbered(False, True)
FILE, FOLDER = FileName(), FileName("dir")
