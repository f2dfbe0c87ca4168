"""Rows of numbers without column names, from a stream; labels are separate or one of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Batch, Reading, Segment, SourceError
from dkl.sources.columns import Columns, check_many, numbered, refuse_unused
from dkl.sources.descriptors import image_shape
from dkl.sources.files import bare_name, stored_size
from dkl.sources.labels import as_target, check_count, is_position
from dkl.sources.raw import kept_dtype, rows_per_segment
from dkl.sources.stretch import Stretch, stretches


class Rows(NamedTuple):
    """Consecutive rows as stored, their labels, and the number of the first row (from 0)."""

    values: np.ndarray
    labels: np.ndarray | None
    first: int


class DenseRows:
    """An array of rows; axes after the first are flattened. `opener` opens it at its first row."""

    def __init__(self, path: str, how: Reading, opener: Callable[[], Any], labels: Any = None) -> None:
        refuse_unused(path, how, "which holds numbers only", "categorical")
        self.path, self.how, self.opener, self.labels = path, how, opener, labels
        self.name, self.size = bare_name(path), stored_size(path)
        rows = opener()
        rows.close()
        self.shape, self.dtype, self.can_skip = rows.shape, kept_dtype(rows.dtype, path), rows.can_skip
        self.row_bytes = int(np.prod(self.shape[1:], dtype=object)) * rows.dtype.itemsize
        self.step = rows_per_segment(self.row_bytes)
        if not all(self.shape):
            raise SourceError(f"{path!r} has shape {self.shape}, which is empty; give at least one row and one column")
        check_count(path, self.shape[0], labels)
        position = how.target if labels is None and is_position(how.target or "") else None
        width = int(np.prod(self.shape[1:], dtype=object))
        check_many(path, width)
        names = numbered(width)
        self.chosen = Columns(path, names, [False] * len(names), how, named=False, target=position or "none")
        self.columns = self.chosen.inputs
        self.has_target = labels is not None or self.chosen.target is not None
        self.image_shape = image_shape(self.shape[1:]) if len(self.columns) == width else None

    def stretches(self) -> list[Stretch]:
        """Segments, if the stream can skip to each and the labels are in the rows."""
        return stretches(-(-self.shape[0] // self.step)) if self.can_skip and self.labels is None else [Stretch()]

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Rows as they are stored, about 8 MiB at a time (`step`)."""
        rows, labels, stretch = self.opener(), self.labels and self.labels.open(), stretch or Stretch()
        stop = self.shape[0] if stretch.last is None else stretch.last * self.step
        try:
            if stretch.first:
                rows.skip(stretch.first * self.step)
            for number, first in enumerate(range(stretch.first * self.step, stop, self.step)):
                count = min(self.step, self.shape[0] - first)
                data = Rows(rows.read(count), labels.read(count) if labels else None, first)
                yield Segment(number, data, count * self.row_bytes)
            if stretch.last is None:
                rows.finish()
            if labels:
                labels.finish()
        finally:
            rows.close()
            if labels:
                labels.close()

    def parse(self, segment: Segment) -> Batch:
        """The rows as numbers; a bad value is refused with its row, counted from 0."""
        values, labels, first = segment.data
        return dense_batch(self.chosen, values.reshape(len(values), -1), labels, self.dtype, first)


def dense_batch(chosen: Columns, values: np.ndarray, labels: Any, dtype: np.dtype, first: int) -> Batch:
    """The chosen columns of some rows; labels are numbers or names, one per row, or None."""
    X = values if chosen.wanted == list(range(len(chosen.names))) else values[:, chosen.wanted]
    y = None
    if labels is not None:
        y = as_target(labels)
    elif chosen.target is not None:
        y = values[:, chosen.target].astype(np.float64)
    batch = Batch(np.ascontiguousarray(X, dtype), {}, y)
    chosen.check(batch, lambda row: f"row {first + row}", lambda row, column: str(values[row, column]))
    if chosen.target is None:
        check_labels(chosen.path, y, first, chosen.how)
    return batch


def check_labels(path: str, y: Any, first: int, how: Reading) -> None:
    """Refuse infinite labels, and missing ones unless missing='drop'."""
    gaps = np.isnan(y) if isinstance(y, np.ndarray) else np.zeros(0, bool) if y is None else y.codes < 0
    if isinstance(y, np.ndarray) and np.isinf(y).any():
        row = int(np.argmax(np.isinf(y)))
        raise SourceError(f"{path!r} has the label {y[row]} in row {first + row}; correct or remove it")
    if gaps.any() and how.missing != "drop":
        row = first + int(np.argmax(gaps))
        raise SourceError(f"{path!r} has no label in row {row}; use --missing drop (drops such rows)")
