"""The event log: one JSON object per line, for machines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click

log_option = click.option(
    "--log", metavar="FILE.jsonl", type=click.Path(), help="Append one JSON object per pass to a file."
)


@contextmanager
def event_log(path: str | None, verb: str, **about: Any) -> Iterator[None]:
    """Every event inside, with its time, in the file; begin, end and error are events too."""
    if path is None:
        yield
        return
    from dkl.engine.progress import listening
    from dkl.sources.shown import cleaned

    start = time.monotonic()
    try:
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed below, after the last event)
    except OSError as error:
        raise click.UsageError(f"--log {path!r} cannot be written: {error.strerror}") from None

    def write(event: dict) -> None:
        about = {"time": datetime.now(UTC).isoformat(), "verb": verb, **cleaned(event)}
        print(json.dumps(about), file=file, flush=True)

    with file, listening(write):
        write({"event": "begin", **about})
        try:
            yield
        except BaseException as error:
            said = " ".join(str(error).split()) or type(error).__name__
            write({"event": "error", "message": said, "seconds": time.monotonic() - start})
            raise
        write({"event": "end", "seconds": time.monotonic() - start})
