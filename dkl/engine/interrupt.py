"""Ctrl-C during learning: the first ends learning with the current result, the second stops at once.

A signal handler may run between any two lines, so it only sets a flag. Passes check the flag between blocks, where the
state is consistent, and raise `Interruption`. Only the main thread receives signals. Only Python's default handler is
replaced: a process that ignores SIGINT, or has its own handler, keeps that.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOOK = 0.1
"""Seconds between two checks of the flag while other threads work."""


class Interruption(KeyboardInterrupt):
    """Ctrl-C, raised between blocks, where the state is consistent."""


class Watch:
    """The flag. Before `ready` there is no result to end with, and Ctrl-C raises KeyboardInterrupt at once."""

    def __init__(self) -> None:
        self.ready = self.asked = False

    def hear(self, number: int, frame: Any) -> None:
        """The handler of SIGINT."""
        if self.asked or not self.ready:
            signal.default_int_handler(number, frame)
        self.asked = True


_watch: Watch | None = None


@contextmanager
def watching() -> Iterator[Watch]:
    """The first Ctrl-C inside, once `ready`, becomes an `Interruption` of the next pass."""
    global _watch
    watch = Watch()
    if not _is_main() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield watch
        return
    signal.signal(signal.SIGINT, watch.hear)
    _watch, before = watch, _watch
    try:
        yield watch
    finally:
        _watch = before
        signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """Raise Interruption if Ctrl-C was pressed and this is the main thread."""
    if _watch is not None and _watch.asked and _is_main():
        raise Interruption


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
