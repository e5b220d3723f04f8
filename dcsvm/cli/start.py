"""Where the commands start: an interrupt while modules are imported ends them as one that comes
later does."""

from __future__ import annotations

import os

INTERRUPTED = 130


def train() -> None:
    try:
        from dcsvm.cli.train import main
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    main()


def predict() -> None:
    try:
        from dcsvm.cli.predict import main
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    main()


def grid() -> None:
    try:
        from dcsvm.cli.grid import main
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    main()


def compress() -> None:
    try:
        from dcsvm.cli.compress import main
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    main()
