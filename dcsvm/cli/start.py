"""Entry points of the commands. An interrupt during imports ends them without a traceback."""

import os
from collections.abc import Callable
from importlib import import_module

INTERRUPTED = 130


def start_of(command: str) -> Callable[[], None]:
    """Return the entry point of a command."""

    def start() -> None:
        try:
            main = import_module(f"dcsvm.cli.{command}").main
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)
        main()

    return start


train, predict, grid, compress, easy, export = map(
    start_of, ("train", "predict", "grid", "compress", "easy", "export")
)
