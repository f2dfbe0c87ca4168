"""Ctrl-C while something is learned: the first asks to stop with what there is, the second stops.

A signal's handler may run between any two lines, so it only notes the wish. Passes look at it between blocks, where
nothing is half done, and leave by `Interruption`. Only the main thread hears signals, and only a Ctrl-C that would
have raised KeyboardInterrupt is taken over: whoever ignores it, or has a handler of his own, keeps that.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LOOK = 0.1
"""Seconds between two looks at the wish while others work."""


class Interruption(KeyboardInterrupt):
    """The wish to stop, where nothing is half done."""


class Watch:
    """What has been heard. Until `ready` there is nothing to keep, and Ctrl-C stops at once, as ever."""

    def __init__(self) -> None:
        self.ready = self.asked = False

    def hear(self, number: int, frame: Any) -> None:
        """The handler."""
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
    """Leave, if this thread was asked to."""
    if _watch is not None and _watch.asked and _is_main():
        raise Interruption


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
