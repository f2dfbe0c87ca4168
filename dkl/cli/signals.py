"""Ctrl-C at the command line stops at once; the run folder keeps everything that is needed to resume."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Raise KeyboardInterrupt at once, also while sigma is learned; a process that ignores Ctrl-C still does."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
