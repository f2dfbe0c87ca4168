"""The workers of a cluster as an ingest sees them, and what each of its tasks has to know.

Tasks read sources and staged parts, write staged parts and whole chunks, and return summaries and sums, never rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from dkl.sources.batch import Source
from dkl.sources.files import forget_listings
from dkl.store.folder import Folder
from dkl.store.opened import Named, check_alike, open_file
from dkl.store.request import Request
from dkl.store.staging import Staging
from dkl.store.write import staging_dtype

JOURNAL = "ingest.json"


class Crew(Protocol):
    """Runs tasks; what a lost worker had not finished is run again by another."""

    def hold(self, value: Any) -> Any:
        """A value that workers share: what a task gets in its place."""

    def run(self, task: str, function: Callable[..., Any], calls: Sequence[tuple]) -> Iterator[tuple[int, Any]]:
        """(number of the call, its result) of each, as they finish."""

    def fold(self, task: str, function: Callable[..., Any], merge: Callable[..., Any], calls: Sequence[tuple]) -> Any:
        """merge(... merge(merge(None, first), second) ..., last) of the results, in order."""


class Unseen(ValueError):
    """A worker does not find the staging folder of its ingest."""


@dataclass(frozen=True)
class Job:
    """One ingest: its staging folder, what it was asked, and its files."""

    path: str
    origin: Any
    request: Request
    files: list[Named]
    columns: dict[int, Any]  # of the first file of each channel

    def staging(self) -> Staging:
        """The staging folder; refused if this process does not see it, or sees that of another ingest."""
        folder = Folder(self.path)
        journal = folder.read_json(JOURNAL)
        if not isinstance(journal, dict) or journal.get("origin") != self.origin:
            import socket

            raise Unseen(
                f"the worker on {socket.gethostname()} does not find this ingest in {self.path!r}; give a destination "
                "that all workers share (a shared folder, or an object store), or ingest without a cluster"
            )
        return Staging(folder, staging_dtype(self.request), ())

    def source(self, number: int) -> Source:
        """A file, opened; its columns are those of the first of its channel."""
        file = self.files[number]
        with _opening:  # a folder of images is listed once
            source = _open(str(self.origin), file)
        first = next(i for i, other in enumerate(self.files) if other.channel == file.channel)
        if number != first:
            check_alike(file.path, source, self.files[first].path, self.columns[file.channel])
        return source


_opening = threading.Lock()


@lru_cache(maxsize=8)
def _open(origin: str, file: Named) -> Source:
    forget_listings([file.path])
    return open_file(file)
