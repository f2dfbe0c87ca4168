"""Answers written by workers, each its own chunks of a Zarr group: the group that `ZarrAnswers` writes in order.

OUT.writing holds a note for each block that is written, and on a shared folder the group until it is complete; an
object store cannot rename, so there the attribute `complete` is written last. Asked again, the same request goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkl.sources.damage import read_rows
from dkl.store.answers import may_begin
from dkl.store.dataset import open_node
from dkl.store.folder import Folder, absolute, exists, is_url, remove

BEGUN, GROUP = "answers.json", "result.zarr"
TRIES = 100


@dataclass(frozen=True)
class Answered:
    """Some rows from scores: predictions, and columns of scores and of probabilities."""

    outputs: int
    is_flat: bool
    classes: np.ndarray | None
    choose: Callable[[np.ndarray], np.ndarray]
    scores: bool
    proba: bool

    def __call__(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        found = block[:, : self.outputs]
        values = found[:, 0] if self.is_flat else found
        predicted = values if self.classes is None else self.classes[self.choose(found)]
        columns = block[:, 0 if self.scores else self.outputs :] if self.scores or self.proba else None
        return predicted, columns


@dataclass(frozen=True)
class AnswerRegions:
    """Where the answers of one request go."""

    path: str
    identity: str
    rows: int
    block: int  # rows of a chunk
    numbers: str | None  # a data set, whose `row` has the numbers of the rows in the source
    names: dict[str, list[str]]  # of the columns of score and of probability
    answered: Answered

    @property
    def folder(self) -> Folder:
        """The notes."""
        return Folder(f"{absolute(self.path)}.writing")

    @property
    def place(self) -> str:
        """Where the group is while it is written."""
        return absolute(self.path) if is_url(self.path) else os.path.join(self.folder.path, GROUP)

    @property
    def class_names(self) -> list[str]:
        """What stands for the predictions, if they are names."""
        classes = self.answered.classes
        return [] if classes is None or classes.dtype.kind in "fiub" else [str(name) for name in classes]

    def begin(self, overwrite: bool) -> set[int]:
        """Lay the group out; the first rows of blocks that an interrupted run of the same request has written."""
        folder = self.folder
        goes_on = folder.read_json(BEGUN) == {"identity": self.identity} and exists(self.place)
        if not (goes_on and is_url(self.path)):  # on an object store the path holds what is being written
            may_begin(self.path, ".zarr", overwrite)
        if goes_on:
            return {int(name.split("-")[1]) for name in folder.names() if name.startswith("wrote-")}
        _clear(folder)
        folder.create()
        self._lay_out()
        folder.write_json(BEGUN, {"identity": self.identity})
        return set()

    def _lay_out(self) -> None:
        import zarr

        remove(self.place)
        group = zarr.open_group(self.place, mode="w", zarr_format=3)
        group.attrs.put({"format": "dkl-answers", "complete": False})
        predicted, columns = self._stored(*self.answered(np.zeros((1, self._width))))
        arrays = {"row": np.zeros(1, np.int64), "prediction": predicted, **columns}
        for name, like in arrays.items():
            dims = ["row", "output" if name == "prediction" else name][: like.ndim]
            array = group.create_array(
                name, shape=(self.rows, *like.shape[1:]), dtype=like.dtype, dimension_names=dims,
                chunks=(self.block, *like.shape[1:]),
            )  # fmt: skip
            if name == "prediction" and self.class_names:
                array.attrs["classes"] = self.class_names
            if name in columns:
                array.attrs["names"] = self.names[name]

    @property
    def _width(self) -> int:
        return self.answered.outputs + len(self.names["probability"])

    def _stored(
        self, predicted: np.ndarray, columns: np.ndarray | None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:  # fmt: skip
        """Predictions as they are stored, and scores and probabilities."""
        if self.class_names:
            codes = {name: i for i, name in enumerate(self.class_names)}
            predicted = np.array([codes[str(name)] for name in predicted], np.int32)
        if columns is None:
            return predicted, {}
        cut = len(self.names["score"])
        parts = {"score": columns[:, :cut], "probability": columns[:, cut:]}
        return predicted, {name: part for name, part in parts.items() if part.shape[1]}

    def write(self, start: int, block: np.ndarray) -> int:
        """The task of a worker: the answers for rows from `start` on."""
        import zarr

        if self.folder.read_json(BEGUN) != {"identity": self.identity}:
            raise ValueError(
                f"a worker does not find {self.folder.path!r}; give a path that all workers share, or leave the "
                "cluster out"
            )
        group, stop = zarr.open_group(self.place, mode="r+"), start + len(block)
        predicted, columns = self._stored(*self.answered(block))
        if self.numbers is None:
            numbers = np.arange(start, stop)
        else:
            numbers = read_rows(open_node(self.numbers)["row"], start, stop)
        for name, values in {"row": numbers, "prediction": predicted, **columns}.items():
            group[name][start:stop] = values
        self.folder.write(f"wrote-{start}", b"")
        return len(block)

    def end(self) -> None:
        """Complete the group, in its place."""
        import zarr

        zarr.open_group(self.place, mode="r+").attrs.put({"format": "dkl-answers", "complete": True})
        if not is_url(self.path):
            remove(absolute(self.path))
            os.replace(self.place, absolute(self.path))
        remove(self.folder.path)

    def abandon(self) -> None:
        """Leave nothing: the same request would fail again."""
        remove(self.place)
        remove(self.folder.path)


def _clear(folder: Folder) -> None:
    """Remove the folder of another request; a task of it that still runs may write one more note meanwhile."""
    for _ in range(TRIES):
        remove(folder.path)
        if not exists(folder.path):
            return
        time.sleep(0.05)
    raise FileExistsError(f"{folder.path!r} is in use; wait for the other dkl predict, or remove it")
