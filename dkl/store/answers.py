"""Predictions on disk, written block by block: CSV, Parquet or Zarr. The file appears when it is complete."""

from __future__ import annotations

import csv
import math
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from dkl.sources.files import filesystem
from dkl.store.folder import check_parent, exists, is_url, reaching, remove

KINDS = (".csv", ".parquet", ".zarr")
ANSWERS, SUCCESS = "dkl-answers", "_SUCCESS"
PART = re.compile(r"part-\d+\.parquet")


@contextmanager
def open_answers(
    path: str, score_names: list[str], overwrite: bool, share_names: Sequence[str] = (), classes: Sequence[str] = ()
) -> Iterator[Any]:
    """A writer with `add(row numbers, predictions, columns)`; a normal exit moves the file into place.

    Columns are the scores, then the probabilities. `classes` are the names that predictions may be, in their order.
    """
    kind = check_answers(path, overwrite)
    place = path if is_url(path) else f"{path}.writing-{uuid.uuid4().hex[:8]}{kind}"
    writers: dict[str, Any] = {".csv": CsvAnswers, ".parquet": ParquetAnswers, ".zarr": ZarrAnswers}
    parts = _parts_below(path) if overwrite and is_url(path) and kind == ".parquet" else []
    with reaching(path):
        writer = writers[kind](place, score_names, list(share_names))
    if kind == ".zarr":
        writer.classes = {name: i for i, name in enumerate(classes)}
    try:
        yield writer
        with reaching(path):
            writer.close()
            if parts:
                filesystem(path)[0].rm(parts)
        if place != path:
            if os.path.isdir(path):
                remove(path)
            os.replace(place, path)
    except BaseException:
        with suppress(Exception):  # the first error matters
            writer.abandon()
        if not is_url(place):
            remove(place)
        raise


def check_answers(path: str, overwrite: bool) -> str:
    """The kind of a file of answers that can be begun."""
    kind = next((kind for kind in KINDS if path.endswith(kind)), None)
    if kind is None:
        raise ValueError(f"{path!r} must end in .csv, .parquet or .zarr, which sets the format")
    may_begin(path, kind, overwrite)
    if kind == ".parquet":
        check_pyarrow(path)
    return kind


def may_begin(path: str, kind: str, overwrite: bool, form: str = ANSWERS) -> None:
    """Refuse a path where no answers, or no Zarr group of another form, can go."""
    if exists(path):
        if not overwrite:
            raise FileExistsError(f"{path!r} exists; choose another name or use --overwrite")
        if not _may_replace(path, kind, form):
            what = "predictions" if form == ANSWERS else "features"
            raise FileExistsError(
                f"{path!r} is not a {kind} file of {what} and is not overwritten; choose another name"
            )
    check_parent(path)


def check_pyarrow(path: str) -> None:
    """Refuse Parquet where it cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ValueError(
            f"{path!r}: writing Parquet needs pyarrow; pip install 'dkl[parquet]', or write .csv"
        ) from None


def _may_replace(path: str, kind: str, form: str) -> bool:
    """Whether the path is a file, or a group of that form."""
    if kind == ".parquet":
        return _is_parts(path) if is_url(path) or not os.path.isfile(path) else True
    if kind != ".zarr":
        return is_url(path) or os.path.isfile(path)
    import zarr

    try:
        return zarr.open_group(path, mode="r").attrs.get("format") == form
    except (OSError, ValueError, KeyError):
        return False


def _is_parts(path: str) -> bool:
    """Whether the path is a folder of parts, which workers wrote, and nothing else; a remote one may be a file."""
    if is_url(path):
        below = {part.rsplit("/", 1)[-1] for part in _parts_below(path)} - {SUCCESS}
        return not below or all(map(PART.fullmatch, below))
    names = os.listdir(path) if os.path.isdir(path) else []
    return bool(names) and all(PART.fullmatch(name) for name in names)


def _parts_below(path: str) -> list[str]:
    """What is below the name of a remote file that takes the place of a folder of parts."""
    with reaching(path):
        fs, name = filesystem(path)
        fs.invalidate_cache()
        return [part for part in fs.find(name) if part.startswith(f"{name}/")]


def _drop(path: str, opened: Any, stream: Any) -> None:
    """Close and leave nothing: an object store discards the upload; the caller removes a local file."""
    if is_url(path):
        stream.discard()
        stream.closed = True
    else:
        opened.close()


def _columns(predicted: np.ndarray) -> tuple[list[str], list[np.ndarray]]:
    """One column `prediction`, or one per output."""
    if predicted.ndim == 1:
        return ["prediction"], [predicted]
    return [f"prediction {i}" for i in range(predicted.shape[1])], list(predicted.T)


def _flat(scores: np.ndarray) -> np.ndarray:
    """Scores (rows, columns), also of a block without rows."""
    return scores.reshape(len(scores), math.prod(scores.shape[1:]))


class CsvAnswers:
    """Columns row, prediction, scores, probabilities; numbers in the shortest form that reads back bit for bit."""

    def __init__(self, path: str, score_names: list[str], share_names: list[str]) -> None:
        import fsspec

        self.path, self.names, self.header = path, [*score_names, *share_names], False
        self.opened = fsspec.open(path, "w", encoding="utf-8", newline="", auto_mkdir=False)
        self.file = self.opened.open()
        self.writer = csv.writer(self.file, lineterminator="\n")

    def add(self, numbers: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None) -> None:
        """Append rows."""
        names, columns = _columns(predicted)
        if not self.header:
            self.writer.writerow(["row", *names, *self.names])
            self.header = True
        columns += [] if scores is None else list(_flat(scores).T)
        self.writer.writerows(zip(numbers.tolist(), *(column.tolist() for column in columns), strict=True))

    def close(self) -> None:
        """Complete the file."""
        self.opened.close()

    def abandon(self) -> None:
        """Discard the file."""
        _drop(self.path, self.opened, self.file.buffer)


def parquet_table(names: list[str], numbers: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None) -> Any:
    """Columns row, prediction, scores, probabilities; `names` are those of the scores and the probabilities."""
    import pyarrow as pa

    firsts, columns = _columns(predicted)
    columns += [] if scores is None else list(_flat(scores).T)
    return pa.table({"row": numbers, **dict(zip([*firsts, *names], map(_contiguous, columns), strict=True))})


class ParquetAnswers:
    """The same columns as Parquet."""

    def __init__(self, path: str, score_names: list[str], share_names: list[str]) -> None:
        import fsspec

        self.path, self.names = path, [*score_names, *share_names]
        self.opened = fsspec.open(path, "wb", auto_mkdir=False)
        self.file = self.opened.open()
        self.writer: Any = None

    def add(self, numbers: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None) -> None:
        """Append rows."""
        import pyarrow.parquet as pq

        table = parquet_table(self.names, numbers, predicted, scores)
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.file, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        """Complete the file."""
        if self.writer is not None:
            self.writer.close()
        self.opened.close()

    def abandon(self) -> None:
        """Discard the file."""
        _drop(self.path, self.opened, self.file)


def _contiguous(column: np.ndarray) -> Any:
    return np.ascontiguousarray(column) if column.dtype.kind in "fiub" else column.tolist()


class ZarrAnswers:
    """A group of `row`, `prediction`, `score` and `probability`; class names are an attribute, as in a data set."""

    def __init__(self, path: str, score_names: list[str], share_names: list[str]) -> None:
        import zarr

        self.names, self.path = {"score": score_names, "probability": share_names}, path
        self.group = zarr.open_group(path, mode="w", zarr_format=3)
        self.group.attrs.put({"format": ANSWERS, "complete": False})
        self.arrays: dict[str, Any] = {}
        self.classes: dict[str, int] = {}

    def add(self, numbers: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None) -> None:
        """Append rows."""
        if predicted.dtype.kind not in "fiub":
            names, codes = np.unique(predicted.astype(str), return_inverse=True)
            known = [self.classes.setdefault(str(name), len(self.classes)) for name in names]
            predicted = np.array(known, np.int32)[codes]
        self._append("row", numbers, ["row"])
        self._append("prediction", predicted, ["row", "output"][: predicted.ndim])
        if scores is not None:
            columns, cut = _flat(scores), len(self.names["score"])
            parts = {"score": columns[:, :cut], "probability": columns[:, cut:]}
            for name, part in parts.items() if self.names["probability"] else [("score", columns)]:
                if part.shape[1]:
                    self._append(name, part, ["row", name])

    def _append(self, name: str, block: np.ndarray, dimensions: list[str]) -> None:
        if name not in self.arrays:
            self.arrays[name] = self.group.create_array(
                name, shape=(0, *block.shape[1:]), dtype=block.dtype, dimension_names=dimensions,
                chunks=(max(1, len(block)), *block.shape[1:]),
            )  # fmt: skip
        array = self.arrays[name]
        start = array.shape[0]
        array.resize((start + len(block), *block.shape[1:]))
        array[start:] = block

    def close(self) -> None:
        """Complete the group."""
        if self.classes:
            self.arrays["prediction"].attrs["classes"] = list(self.classes)
        for name, columns in self.names.items():
            if columns:
                self.arrays[name].attrs["names"] = columns
        self.group.attrs.put({"format": "dkl-answers", "complete": True})

    def abandon(self) -> None:
        """Discard the file."""
        remove(self.path)
