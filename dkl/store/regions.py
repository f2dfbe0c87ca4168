"""Results written by workers, each its own region of the output, which is complete or absent.

OUT.writing holds a note for each region that is written, and the output until it is complete. Asked again, the same
request goes on; another one starts over. A kind of output says where it is meanwhile, how it is laid out and written.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dkl.sources.damage import read_rows
from dkl.store.answers import ANSWERS, may_begin
from dkl.store.dataset import open_node
from dkl.store.folder import Folder, absolute, exists, is_url, remove

BEGUN = "begun.json"
MOVING = "moving"
TRIES = 100


@dataclass(frozen=True)
class Regions(ABC):
    """Where the results of one request go."""

    KIND: ClassVar[str]
    FORMAT: ClassVar[str] = ANSWERS
    """What a group says that it is."""

    path: str
    identity: str
    rows: int
    block: int  # rows of a region

    @property
    def folder(self) -> Folder:
        """The notes."""
        return Folder(f"{absolute(self.path)}.writing")

    @property
    def staged(self) -> str:
        """The output beside the notes."""
        return f"{self.folder.path}/result{self.KIND}"

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the output is while it is written."""

    @abstractmethod
    def _lay_out(self) -> None:
        """Make an empty output at `place`."""

    @abstractmethod
    def _put(self, start: int, block: Any) -> None:
        """Write the rows from `start` on."""

    @abstractmethod
    def _finish(self) -> None:
        """Complete the output, at `path`."""

    def begin(self, overwrite: bool) -> set[int]:
        """Lay the output out; the first rows of regions that an interrupted run of the same request has written."""
        folder = self.folder
        goes_on = folder.read_json(BEGUN) == {"identity": self.identity} and exists(self.place)
        notes = folder.names() if goes_on else set()
        if not (goes_on and (self.place == absolute(self.path) or MOVING in notes)):  # what is there is not this output
            may_begin(self.path, self.KIND, overwrite, self.FORMAT)
        if goes_on:
            return {int(name.split("-")[1]) for name in notes if name.startswith("wrote-")}
        _clear(folder)
        folder.create()
        self._lay_out()
        folder.write_json(BEGUN, {"identity": self.identity})
        return set()

    def write(self, start: int, block: Any) -> int:
        """The task of a worker: the results for rows from `start` on."""
        if self.folder.read_json(BEGUN) != {"identity": self.identity}:
            raise ValueError(
                f"a worker does not find {self.folder.path!r}; give a path that all workers share, or leave the "
                "cluster out"
            )
        self._put(start, block)
        self.folder.write(f"wrote-{start}", b"")
        return len(block)

    def end(self) -> None:
        """Complete the output, in its place."""
        self._finish()
        remove(self.folder.path)

    def move(self) -> None:
        """Put what is staged in its place: a shared folder can rename."""
        remove(absolute(self.path))
        os.replace(self.place, absolute(self.path))

    def abandon(self) -> None:
        """Leave nothing: the same request would fail again."""
        remove(self.place)
        remove(self.folder.path)


class ZarrRegions(Regions):
    """A Zarr group: an object store cannot rename, so there it is written in its place, and `complete` last."""

    KIND = ".zarr"

    @property
    def place(self) -> str:
        return absolute(self.path) if is_url(self.path) else self.staged

    def create(self) -> Any:
        """An empty group, which says that it is not complete."""
        import zarr

        remove(self.place)
        group = zarr.open_group(self.place, mode="w", zarr_format=3)
        group.attrs.put({"format": self.FORMAT, "complete": False})
        return group

    def _finish(self) -> None:
        import zarr

        zarr.open_group(self.place, mode="r+").attrs.put({"format": self.FORMAT, "complete": True})
        if not is_url(self.path):
            self.move()


def row_numbers(source: str | None, start: int, stop: int) -> np.ndarray:
    """The numbers of rows in the source of a data set; their own without one."""
    return np.arange(start, stop) if source is None else read_rows(open_node(source)["row"], start, stop)


def _clear(folder: Folder) -> None:
    """Remove the folder of another request; a task of it that still runs may write one more note meanwhile."""
    for _ in range(TRIES):
        remove(folder.path)
        if not exists(folder.path):
            return
        time.sleep(0.05)
    raise FileExistsError(f"{folder.path!r} is in use; wait for the other process that writes it, or remove it")
