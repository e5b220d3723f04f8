"""Loaded by the workers that a command starts: a key that stops the command is none of theirs. They
end with it, since they lose their nanny. What tasks import they import before there are any.
"""

from __future__ import annotations

import contextlib
import signal

import dcsvm.distributed.on_worker  # noqa: F401


def dask_setup(_worker) -> None:
    """Called by Dask when a worker starts."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(getattr(signal, name), signal.SIG_IGN)
