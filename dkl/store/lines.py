"""Lines of text that are added to a file one by one, on a disk or at a URL.

An object store cannot append: there the lines so far are kept here and written again, whole, at most every 10 s and at
the end. What lies there already is kept in front.
"""

from __future__ import annotations

import threading
import time
import warnings
from typing import Any

from dkl.sources.files import filesystem, one_line
from dkl.store.folder import is_url, reaching

WRITE_SECONDS = 10.0
"""Seconds between two writes of the whole."""


def open_lines(path: str) -> Any:
    """Something with `write(line)` and `close()`; refused at once if nothing can be written there."""
    return RemoteLines(path) if is_url(path) else LocalLines(path)


class LocalLines:
    """A file that is appended to, line by line."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed by close)

    def write(self, line: str) -> None:
        """Add a line."""
        print(line, file=self.file, flush=True)

    def close(self) -> None:
        """No more lines."""
        self.file.close()


class RemoteLines:
    """An object that is written again with every few lines."""

    def __init__(self, url: str) -> None:
        self.url, self.lock = url, threading.Lock()
        with reaching(url):
            self.fs, self.name = filesystem(url)
            self.fs.invalidate_cache()
            self.text = bytes(self.fs.cat_file(self.name)) if self.fs.exists(self.name) else b""
            if self.text and not self.text.endswith(b"\n"):
                self.text += b"\n"
            self.fs.pipe_file(self.name, self.text)
        self.sent, self.pending, self.has_failed = time.monotonic(), False, False

    def write(self, line: str) -> None:
        """Add a line."""
        with self.lock:
            self.text += line.encode() + b"\n"
            self.pending = True
            if time.monotonic() - self.sent >= WRITE_SECONDS:
                self._send()

    def _send(self) -> None:
        """Write the whole; a store that fails now and then is tried again, and does not stop the work."""
        self.sent = time.monotonic()
        try:
            self.fs.pipe_file(self.name, self.text)
            self.pending = False
        except Exception as error:  # every filesystem raises its own
            if not self.has_failed:
                self.has_failed = True
                warnings.warn(f"{self.url!r} could not be written: {one_line(error)}; trying again", stacklevel=3)

    def close(self) -> None:
        """Write what is left."""
        with self.lock:
            if self.pending:
                self._send()
