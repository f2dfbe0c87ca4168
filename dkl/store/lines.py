"""A text file that is appended to line by line, on a disk or at a URL.

An object store cannot append. There all lines are kept in memory and the whole object is rewritten, at most every 10 s
and at the end. Existing content stays in front.
"""

from __future__ import annotations

import threading
import time
import warnings
from typing import Any

from dkl.sources.files import filesystem, one_line
from dkl.store.folder import is_url, reaching

WRITE_SECONDS = 10.0
"""Seconds between two writes of a remote object."""


def open_lines(path: str) -> Any:
    """A writer with `write(line)` and `close()`; raises at once if the path is not writable."""
    return RemoteLines(path) if is_url(path) else LocalLines(path)


class LocalLines:
    """A local file, appended to line by line."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed by close)

    def write(self, line: str) -> None:
        """Add a line."""
        print(line, file=self.file, flush=True)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class RemoteLines:
    """A remote object, rewritten every few seconds."""

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
        """Rewrite the object; a failure gives one warning and is retried with the next lines."""
        self.sent = time.monotonic()
        try:
            self.fs.pipe_file(self.name, self.text)
            self.pending = False
        except Exception as error:  # each filesystem raises its own
            if not self.has_failed:
                self.has_failed = True
                warnings.warn(f"{self.url!r} could not be written: {one_line(error)}; retrying", stacklevel=3)

    def close(self) -> None:
        """Write the remaining lines."""
        with self.lock:
            if self.pending:
                self._send()
