"""Workers and the scheduler of a running cluster write the log lines that this process was asked for."""

from __future__ import annotations

import logging
import os
from typing import Any
from weakref import WeakSet

from distributed import SchedulerPlugin, WorkerPlugin, default_client

from dkl.engine import logs
from dkl.engine.stamp import STAMP

NAME = "dkl-logs"
_told: WeakSet[Any] = WeakSet()


class WorkerLogs(WorkerPlugin):
    """Set up on every worker, also on those that join later."""

    name = NAME
    idempotent = True

    def __init__(self, form: str, level: str) -> None:
        self.form, self.level = form, level

    def setup(self, worker: Any) -> None:
        """Called on the worker."""
        begin_server(worker.address, self.form, self.level)


class SchedulerLogs(SchedulerPlugin):
    """The same on the scheduler."""

    name = NAME
    idempotent = True

    def __init__(self, form: str, level: str) -> None:
        self.form, self.level = form, level

    async def start(self, scheduler: Any) -> None:
        """Called on the scheduler."""
        begin_server("scheduler", self.form, self.level)


def begin_server(name: str, form: str, level: str) -> None:
    """Lines of a worker or scheduler process; one that is a client too keeps its own name."""
    logs.begin(form, level)
    try:
        default_client()
    except ValueError:
        logs.adopt(name)
        versions = ", ".join(f"{package} {version}" for package, version in STAMP.items())
        logging.getLogger("dkl.begin").info("%s", versions)


def spread(client: Any) -> None:
    """Workers and the scheduler write as this process was asked to (by DKL_LOG, or dkl --json-logs); else nothing."""
    form = os.environ.get(logs.FORM, "")
    if not form or client in _told:
        return
    _told.add(client)
    level = os.environ.get(logs.LEVEL, "") or "INFO"
    client.register_plugin(WorkerLogs(form, level))
    try:
        client.register_plugin(SchedulerLogs(form, level))
    except ValueError as error:  # a managed scheduler that takes no plugins
        logging.getLogger("dkl.begin").info("the scheduler keeps its own log: %s", error)
