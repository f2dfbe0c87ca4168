"""Log lines of every process: one JSON object each, or plain text, on stderr, without secrets.

    DKL_LOG=json dask worker ...     DKL_LOG_LEVEL=DEBUG     dkl fit ... --json-logs

A line has time, level, logger, message, fit, pass, process, host and pid; an event of dkl adds its facts. The loggers
are `dkl` and, so that a container's log is of one kind, `distributed`. Workers of a running cluster are asked to do the
same by a plugin; those that join later too.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from datetime import UTC, datetime
from typing import Any

from dkl.engine.run_ids import Ids, fit_here, ids_of
from dkl.sources.secrets import values_without_secrets, without_secrets

FORM, LEVEL = "DKL_LOG", "DKL_LOG_LEVEL"
FORMS = ("json", "text")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
OURS = "dkl"
THEIRS = ("distributed", "distributed.client")
"""Loggers of dask that have handlers of their own."""

process = "client"
"""What this process is called in its lines."""


class Lines(logging.Formatter):
    """One line for each record."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        message, (who, ids) = record.getMessage(), _here()
        facts = dict(getattr(record, "dkl", {}))
        fit = facts.pop("fit", "") or (ids.fit if ids is not None else fit_here())
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        if self.form == "text":
            text = f"{when} {record.levelname} {record.name}{f' fit {fit}' * bool(fit)}: {message}"
            return without_secrets(text + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""))
        line: dict[str, Any] = {
            "time": when,
            "level": record.levelname,
            "logger": record.name,
            "message": message,
            "fit": fit or None,
        }
        line |= {"pass": ids.run or None if ids is not None else None, "process": who}
        line |= {"host": socket.gethostname(), "pid": os.getpid()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        more = {name: value for name, value in facts.items() if name not in line}
        return json.dumps(values_without_secrets({**line, **more}), default=str)


def _here() -> tuple[str, Ids | None]:
    """What this process is, and the task that this thread runs, if it is one of dkl's."""
    distributed = sys.modules.get("distributed")
    try:
        worker = distributed.get_worker() if distributed is not None else None
    except ValueError:
        worker = None
    if worker is None:
        return process, None
    try:
        return worker.address, ids_of(worker.get_current_task())
    except (KeyError, AttributeError, ValueError):  # a thread of the worker that runs no task
        return worker.address, None


class Handler(logging.StreamHandler):
    """Writes to what stderr is at the time."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.setFormatter(Lines(form))

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self.stream = sys.stderr
        if self.stream is not None:
            super().emit(record)


def begin(form: str, level: str = "INFO") -> None:
    """Write the lines of this process; a second call changes the form. Other handlers of `dkl` stay."""
    if form not in FORMS:
        raise ValueError(f"{FORM}={form!r} is no form of log lines; use {' or '.join(FORMS)}")
    if level.upper() not in LEVELS:
        raise ValueError(f"{LEVEL}={level!r} is no level; use {', '.join(LEVELS)}")
    end()
    ours = logging.getLogger(OURS)
    ours.addHandler(Handler(form))
    ours.setLevel(level.upper())


def adopt(name_of_process: str) -> None:
    """This process is a worker or the scheduler: what dask logs is formatted by ours too, if `begin` was called."""
    global process
    process = name_of_process
    handler = next((one for one in logging.getLogger(OURS).handlers if isinstance(one, Handler)), None)
    if handler is not None:
        for other in [one for name in THEIRS for one in logging.getLogger(name).handlers]:
            other.setFormatter(handler.formatter)
            logging.getLogger(OURS).removeHandler(other)  # it would write dkl's lines twice


def end() -> None:
    """Stop; what `begin` has set is undone for dkl."""
    ours = logging.getLogger(OURS)
    for handler in [one for one in ours.handlers if isinstance(one, Handler)]:
        ours.removeHandler(handler)
        ours.setLevel(logging.NOTSET)


def begin_as_asked() -> None:
    """As the environment says; nothing, if it says nothing. A word that is no form or level is said, not raised."""
    form = os.environ.get(FORM, "")
    if not form:
        return
    try:
        begin(form, os.environ.get(LEVEL, "") or "INFO")
    except ValueError as error:
        print(f"dkl: {error}", file=sys.stderr)
