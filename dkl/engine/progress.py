"""Progress of a pass: rows done, rows/s, time left; one line in a terminal or notebook, a line every 30 s elsewhere.

Events also go to listeners (the command line's --log) and to the `logging` module, as dkl.pass, dkl.solve,
dkl.iteration (INFO), dkl.trial and dkl.work (DEBUG).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import isnan
from typing import Any

from dkl.engine.notebook import Notebook
from dkl.engine.run_ids import end_pass, new_pass

DELAY_SECONDS, UPDATE_SECONDS = 0.7, 0.2
"""Seconds before a pass shows a line, and between two updates of it."""
WIDTH = 24
LOG_SECONDS = 30.0
"""Seconds between two lines of a log."""
DETAILS = {"trial", "work"}
"""Events that are logged at DEBUG."""

_listeners: list[Callable[[dict], None]] = []
_silencers: list[Callable[[dict], None]] = []


@contextmanager
def listening(listener: Callable[[dict], None], alone: bool = False) -> Iterator[None]:
    """Send every event inside to the listener, as a dictionary: passes and solves when they end.

    alone: no progress lines meanwhile, as the listener writes to the same stream.
    """
    lists = [_listeners, _silencers] if alone else [_listeners]
    for each in lists:
        each.append(listener)
    try:
        yield
    finally:
        for each in lists:
            each.remove(listener)


def tell(**event: Any) -> None:
    """Send an event to listeners and to the log; NaN, which JSON lacks, becomes None."""
    event = {name: None if isinstance(value, float) and isnan(value) else value for name, value in event.items()}
    for listener in _listeners:
        listener(event)
    logger = logging.getLogger(f"dkl.{event['event']}")
    level = logging.DEBUG if event["event"] in DETAILS else logging.INFO
    if logger.isEnabledFor(level):
        facts = {name: value for name, value in event.items() if name not in ("event", "name")}
        text = ", ".join(f"{name} {_short(value)}" for name, value in facts.items() if value is not None)
        logger.log(level, "%s: %s", event.get("name", event["event"]), text, extra={"dkl": dict(event)})


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def describe(label: str, done: int, total: int, seconds: float, unit: str = "rows") -> str:
    """The progress line."""
    if unit == "bytes":
        done, total, unit = done // 10**6, total // 10**6, "MB"
    if total < done:  # more than expected, as for a compressed file
        return f"{label}: {done:,} {unit}  {done / max(seconds, 1e-9):,.0f} {unit}/s"
    share = done / total if total else 1.0
    bar = "#" * int(WIDTH * share) + "." * (WIDTH - int(WIDTH * share))
    rate = done / seconds if seconds > 0 else 0.0
    spent = f"{_clock(seconds)} {'so far' if done < total else 'in all'}"
    left = f"{_clock((total - done) / rate)} left" if rate and done < total else spent
    return f"{label} [{bar}] {done:,}/{total:,} {unit}  {rate:,.0f} {unit}/s  {left}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class Progress:
    """Shows one pass after another; verbose=0 is silent."""

    def __init__(self, verbose: int = 1, stream: Any = None) -> None:
        self.screen = _screen(stream) if verbose and not _silencers else None
        self.beat: Beat | None = None
        self.label, self.total, self.done, self.unit = "", 0, 0, "rows"
        self.started = self.shown = 0.0
        self.folded, self.said, self.note = False, "", ""
        self.lock = threading.Lock()

    def name(self, label: str) -> Progress:
        """Set the name of the next pass; returns self."""
        self.label = label
        return self

    def begin(self, total: int, unit: str = "rows") -> None:
        """A pass over `total` rows (or bytes) begins."""
        new_pass()
        self.total, self.done, self.unit = total, 0, unit
        self.started = self.shown = time.monotonic()
        self._watch(self._line)

    def _line(self) -> str:
        """The bar; in a log of many passes, what was said last and how far this one is."""
        bar = describe(self.label, self.done, self.total, time.monotonic() - self.started, self.unit)
        if self.said and isinstance(self.screen, Lines):
            return f"{self.said}; {self.done / max(1, self.total):.0%} of the next pass"
        return f"{bar}  {self.note}".rstrip()

    def _watch(self, line: Callable[[], str] | None) -> None:
        """Repeat a line in a log until the next call; None stops."""
        if self.beat is not None:
            self.beat.stop.set()
        self.beat = Beat(self.screen, line) if line is not None and isinstance(self.screen, Lines) else None

    def advance(self, rows: int) -> None:
        """Count rows as done."""
        with self.lock:
            self.done += rows
            now = time.monotonic()
            if self.screen and now - self.started > DELAY_SECONDS and now - self.shown > UPDATE_SECONDS:
                self.shown = now
                self.screen.show(self._line())

    def end(self) -> None:
        """The pass has ended."""
        self._watch(None)
        seconds = time.monotonic() - self.started
        if self.screen and self.shown > self.started:
            bar = describe(self.label, self.done, self.total, seconds, self.unit)
            self.screen.show(self._line() if self.folded else bar)
            if not self.folded:
                self.screen.close()
        tell(event="pass", name=self.label, **{self.unit: self.done}, seconds=seconds)
        end_pass()

    @contextmanager
    def on_one_line(self) -> Iterator[None]:
        """Passes and messages between them share one line, which stays at the end."""
        self.folded = True
        try:
            yield
        finally:
            self.folded, self.said, self.note = False, "", ""
            if self.screen:
                self.screen.close()

    def point(self, value: float) -> None:
        """One more value of the objective, for a screen that draws it."""
        if isinstance(self.screen, Notebook):
            self.screen.point(value)

    def say(self, line: str, note: str = "") -> None:
        """Show a line about several passes, in place of the last one; the note stands after the bars of the next."""
        if self.folded:
            self.said, self.note = line, note
        if self.screen:
            self.screen.show(line)

    @contextmanager
    def waiting(self, label: str) -> Iterator[None]:
        """Work without rows to count: its name is shown if it takes long, and its time at the end."""
        start = time.monotonic()
        timer = threading.Timer(DELAY_SECONDS, lambda: self.screen and self.screen.show(f"{label} ..."))
        timer.daemon = True
        timer.start()
        self._watch(lambda: f"{label} ... {_clock(time.monotonic() - start)}")
        try:
            yield
        finally:
            timer.cancel()
            self._watch(None)
            seconds = time.monotonic() - start
            tell(event="work", name=label, seconds=seconds)
            if self.screen and seconds > DELAY_SECONDS:
                self.screen.show(f"{label}: {_clock(seconds)}")
                self.screen.close()


class Terminal:
    """Rewrites one line."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.width = stream, 0

    def show(self, line: str) -> None:
        """Replace the line."""
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width = len(line)

    def close(self) -> None:
        """Keep the line and start a new one."""
        self.stream.write("\n")
        self.width = 0


class Lines:
    """Whole lines, at most one every 30 s, for the log of a job."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.due, self.lock = stream, time.monotonic() + LOG_SECONDS, threading.Lock()

    def show(self, line: str) -> None:
        """Write the line if one is due."""
        with self.lock:
            now = time.monotonic()
            if now < self.due:
                return
            self.due = now + LOG_SECONDS
        with suppress(OSError, ValueError):  # a closed or full log must not stop the fit
            self.stream.write(line.rstrip() + "\n")
            self.stream.flush()

    def close(self) -> None:
        """Nothing to close."""


class Beat:
    """A thread that shows a line whenever one is due, even if no block ends."""

    def __init__(self, screen: Lines, line: Callable[[], str]) -> None:
        self.screen, self.line, self.stop = screen, line, threading.Event()
        threading.Thread(target=self._run, name="dkl-progress", daemon=True).start()

    def _run(self) -> None:
        while not self.stop.wait(max(0.01, self.screen.due - time.monotonic())):
            self.screen.show(self.line())


def _screen(stream: Any) -> Any:
    """The display: notebook, terminal or log; None without a stream."""
    stream = stream or sys.stderr
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "kernel"):
        return Notebook()
    if stream is None:  # a process without stderr
        return None
    return Terminal(stream) if getattr(stream, "isatty", lambda: False)() else Lines(stream)
