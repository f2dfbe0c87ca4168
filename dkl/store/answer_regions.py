"""Answers written by workers: each its own chunks of the Zarr group, or a part of the Parquet folder, of one request.

The group is that which `ZarrAnswers` writes in order. The parts have the columns of `ParquetAnswers`, and are in the
order of the rows by name. An object store copies them to their place when all are there; `_SUCCESS`, which readers
skip, is last.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkl.sources.files import filesystem
from dkl.store.answers import SUCCESS, check_pyarrow, parquet_table
from dkl.store.folder import Folder, absolute, is_url, reaching, remove
from dkl.store.regions import MOVING, Regions, ZarrRegions, row_numbers


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
class _Answers(Regions):
    """What answers of either kind know."""

    numbers: str | None  # a data set, whose `row` has the numbers of the rows in the source
    names: dict[str, list[str]]  # of the columns of score and of probability
    answered: Answered


@dataclass(frozen=True)
class AnswerRegions(ZarrRegions, _Answers):
    """Chunks of `row`, `prediction`, `score` and `probability`."""

    @property
    def class_names(self) -> list[str]:
        """What stands for the predictions, if they are names."""
        classes = self.answered.classes
        return [] if classes is None or classes.dtype.kind in "fiub" else [str(name) for name in classes]

    def _lay_out(self) -> None:
        group = self.create()
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

    def _put(self, start: int, block: np.ndarray) -> None:
        import zarr

        group, stop = zarr.open_group(self.place, mode="r+"), start + len(block)
        predicted, columns = self._stored(*self.answered(block))
        numbers = row_numbers(self.numbers, start, stop)
        for name, values in {"row": numbers, "prediction": predicted, **columns}.items():
            group[name][start:stop] = values


@dataclass(frozen=True)
class AnswerParts(_Answers):
    """A folder of part-NNN.parquet, one for each block, named by its first row."""

    KIND = ".parquet"

    @property
    def place(self) -> str:
        return self.staged

    def _lay_out(self) -> None:
        check_pyarrow(self.path)
        if not is_url(self.place):
            os.mkdir(self.place)

    def _put(self, start: int, block: np.ndarray) -> None:
        check_pyarrow(self.path)
        import pyarrow.parquet as pq

        numbers = row_numbers(self.numbers, start, start + len(block))
        columns = [*self.names["score"], *self.names["probability"]]
        written = io.BytesIO()
        pq.write_table(parquet_table(columns, numbers, *self.answered(block)), written)
        Folder(self.place).write(f"part-{start:012d}.parquet", written.getvalue())

    def _finish(self) -> None:
        if not is_url(self.path):
            for name in os.listdir(self.place):
                if name.startswith("."):  # a worker that was lost began it
                    os.unlink(os.path.join(self.place, name))
            self.move()
            return
        target = absolute(self.path)
        self.folder.write(MOVING, b"")
        remove(target)
        with reaching(self.path):
            fs, source = filesystem(self.place)
            names = sorted(Folder(self.place).names())
            end = filesystem(target)[1]
            fs.copy([f"{source}/{name}" for name in names], [f"{end}/{name}" for name in names])
        Folder(target).write(SUCCESS, b"")
