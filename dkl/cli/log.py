"""The event log: one JSON object per line, in a file, at a URL, or (-) on stderr.

stdout holds the output of the verb (--json); on stderr the lines that begin with { are events.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import click

log_option = click.option(
    "--log",
    metavar="FILE.jsonl",
    type=click.Path(),
    help="Append one JSON object per pass (- is stderr).",
)


@contextmanager
def json_logs(wanted: bool) -> Iterator[None]:
    """Log lines of this process on stderr as JSON, without progress lines; its workers inherit the wish."""
    if not wanted:
        yield
        return
    from dkl.engine import logs
    from dkl.engine.progress import listening

    before = os.environ.get(logs.FORM)
    os.environ[logs.FORM] = "json"
    try:
        logs.begin("json", os.environ.get(logs.LEVEL, "") or "INFO")
        with listening(lambda event: None, alone=True):
            yield
    finally:
        logs.end()
        os.environ.pop(logs.FORM)
        if before is not None:
            os.environ[logs.FORM] = before


@contextmanager
def event_log(path: str | None, verb: str, **about: Any) -> Iterator[None]:
    """Write every event of the block with its time; begin, end and error are events too."""
    if path is None:
        yield
        return
    from dkl.engine.progress import listening
    from dkl.sources.secrets import values_without_secrets

    start, lines = time.monotonic(), _open(path)

    def write(event: dict) -> None:
        lines.write(json.dumps({"time": datetime.now(UTC).isoformat(), "verb": verb, **values_without_secrets(event)}))

    with closing(lines), listening(write, alone=path == "-"):
        write({"event": "begin", **about})
        try:
            yield
        except BaseException as error:
            said = " ".join(str(error).split()) or type(error).__name__
            write({"event": "error", "message": said, "seconds": time.monotonic() - start})
            raise
        write({"event": "end", "seconds": time.monotonic() - start})


class _Stderr:
    """Lines on stderr."""

    def write(self, line: str) -> None:
        """One line."""
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """It stays open."""


def _open(path: str) -> Any:
    from dkl.store.lines import open_lines

    if path == "-":
        return _Stderr()
    try:
        return open_lines(path)
    except (OSError, ValueError) as error:  # of a disk, and of a store
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise click.UsageError(f"--log {path!r} cannot be written: {why}") from None
