"""What a cluster should be like, checked: no value can end the line or the quotation that it is written into."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import click

MIB = 2**20
LEAST = 512 * MIB
"""Of a worker: Python, dask and the libraries take half of it."""
SHARE = 870 / 1024  # MiB of each GiB, as in deploy/helm
"""Of its memory that a worker uses before its nanny ends it, so that the system does not end it first."""
NAME = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"
PATTERNS = {
    "name": (NAME, "use lower-case letters, digits and -, as in dkl-fit"),
    "image": (r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}", "use repository/name:tag"),
    "queue": (r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", "use its name, as in normal"),
    "account": (r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", "use its name, as in project1"),
    "interface": (r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}", "use its name, as in ib0"),
    "time": (r"([0-9]{1,3}-)?[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]", "use hours:minutes:seconds, as in 4:00:00"),
    "worker_time": (r"([0-9]{1,3}-)?[0-9]{1,3}:[0-5][0-9]:[0-5][0-9]", "use hours:minutes:seconds, as in 1:00:00"),
}


@dataclass(frozen=True)
class Request:
    """A cluster; bytes of memory are those that its platform gives to a process."""

    platform: str
    workers: int
    cpus: int
    memory: int
    scheduler_memory: int
    name: str = "dkl"
    image: str | None = None
    time: str = "4:00:00"
    worker_time: str | None = None
    queue: str | None = None
    account: str | None = None
    interface: str | None = None
    array: int | None = None
    elastic: bool = False
    folder: str = "."
    python: str = "python"
    tls: str | None = None
    fit: tuple[str, ...] = ()  # words of `dkl fit`
    why: str | None = None

    @property
    def limit(self) -> int:
        """MiB for --memory-limit of a worker."""
        return int(SHARE * self.memory) // MIB


def check(values: dict[str, Any]) -> None:
    """Refuse a value that its place in a script cannot hold."""
    for name, (pattern, instead) in PATTERNS.items():
        value = values.get(name)
        if value is not None and not re.fullmatch(pattern, value):
            raise click.UsageError(f"--{name.replace('_', '-')} {value!r} is not possible; {instead}")
    for name in ("folder", "python", "tls", "data", "model", "config", "split"):
        value = values.get(name)
        if value is not None and (not value or not value.isprintable()):
            raise click.UsageError(f"{name} {value!r} is not possible; use printable characters")


def memory_of(text: str, flag: str) -> int:
    """Bytes of 16GiB, 16GB or 800MiB."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?B)\s*", text)
    if not found:
        raise click.UsageError(f"{flag} {text!r} is not possible; write a number and a unit, as in 16GiB")
    number, unit = found.groups()
    size = int(float(number) * (1024 if "i" in unit else 1000) ** ("KMGT".index(unit[0]) + 1))
    if not LEAST <= size < 2**50:
        raise click.UsageError(f"{flag} {text!r} is not possible; a process needs from 512MiB to 1000TiB")
    return size


def seconds_of(time: str) -> int:
    """Of days-hours:minutes:seconds."""
    days, _, rest = time.rpartition("-")
    hours, minutes, seconds = (int(part) for part in rest.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def everywhere(path: str) -> str:
    """A path that means the same in any folder; a URL as it is."""
    return path if "://" in path else os.path.abspath(path)
