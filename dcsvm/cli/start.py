"""Where the commands start: an interrupt while modules are imported ends them as one that comes
later does."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

INTERRUPTED = 130


def start_of(command: str) -> Callable[[], None]:
    def start() -> None:
        try:
            main = import_module(f"dcsvm.cli.{command}").main
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)
        main()

    return start


train, predict, grid, compress = map(start_of, ("train", "predict", "grid", "compress"))
