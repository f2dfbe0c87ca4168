"""Labels in their own file, read in step with the rows: npy, IDX, or text with one label per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dkl.sources.batch import Coded, Reading, SourceError, coded
from dkl.sources.files import filesystem, open_stream, read_head, reading
from dkl.sources.raw import NPY_MAGIC, RawRows, idx_rows, is_idx, npy_rows
from dkl.sources.text import check_text, read_text_head, segments


class ArrayLabels:
    """One number, or one name, per row of an array."""

    def __init__(self, path: str, opener: Callable[[], RawRows]) -> None:
        self.path, self.opener = path, opener
        rows = opener()
        shape, kind = rows.shape, rows.dtype.kind
        rows.close()
        if len(shape) != 1 and shape[1:] != (1,):
            raise SourceError(f"{path!r} has shape {shape}; give one label per row")
        if kind not in "fiubUS":
            raise SourceError(f"{path!r} has dtype {rows.dtype}; labels are numbers or names, so save those")
        self.count: int | None = shape[0]

    def open(self) -> Any:
        """A reader at the first label."""
        return self.opener()


class TextLabels:
    """One label per line: numbers if the first lines are, else names. The count is known at the end only."""

    count: int | None = None

    def __init__(self, path: str, encoding: str) -> None:
        self.path, self.encoding = path, encoding
        head = read_text_head(path, encoding)
        check_text(path, head)
        lines = head.splitlines()[: 1000 if len(head) < 2**16 else -1]
        self.is_text = not all(_is_number(line) for line in lines if line.strip())

    def open(self) -> Any:
        """A reader at the first label."""
        return _LabelLines(self)


class _LabelLines:
    def __init__(self, labels: TextLabels) -> None:
        self.path, self.is_text = labels.path, labels.is_text
        self.pieces: Iterator[Any] = segments(labels.path, labels.encoding, 0)
        self.ready: list[tuple[int, bytes]] = []
        self.position = 0

    def _fill(self, count: int) -> None:
        while len(self.ready) < count and (piece := next(self.pieces, None)):
            lines = enumerate(piece.data.data.splitlines(), piece.data.first)
            self.ready += [(number, line.strip()) for number, line in lines]

    def read(self, count: int) -> np.ndarray:
        """The next labels."""
        self._fill(count)
        found, self.ready = self.ready[:count], self.ready[count:]
        if len(found) < count:
            raise SourceError(
                f"{self.path!r} has {self.position + len(found)} labels, fewer than rows; give one label per row"
            )
        self.position += count
        for number, line in found:
            if not line or (not self.is_text and not _is_number(line)):
                shown = line.decode(errors="replace")
                raise SourceError(
                    f"{self.path!r} line {number} holds {shown!r}, which is not a label like the others; correct it"
                )
        with reading(self.path):
            values: list[Any] = [line.decode() if self.is_text else float(line) for _, line in found]
        return np.array(values, object if self.is_text else np.float64)

    def finish(self) -> None:
        """Refuse labels after the last row; blank lines may follow."""
        self._fill(1)
        while self.ready:
            for number, line in self.ready:
                if line:
                    raise SourceError(
                        f"{self.path!r} has labels after line {number - 1}, where the rows end; give one label per row"
                    )
            self.ready = []
            self._fill(1)

    def close(self) -> None:
        """Close the stream."""
        self.pieces.close()  # type: ignore[attr-defined]


def open_labels(path: str, how: Reading) -> ArrayLabels | TextLabels:
    """The file of labels that a target names, in the format that its content shows."""
    fs, name = filesystem(path)
    with reading(path):
        if not fs.exists(name):
            raise SourceError(
                f"target={path!r} is not a file; give a column's position (-1 is the last), a file of labels, or none"
            )
    head = read_head(path, 16)
    if head.startswith(NPY_MAGIC):
        return ArrayLabels(path, lambda: npy_rows(path, open_stream(path)))
    if is_idx(head):
        return ArrayLabels(path, lambda: idx_rows(path, open_stream(path)))
    return TextLabels(path, how.encoding)


def is_position(target: str) -> bool:
    """Whether a target is a column's position rather than a file."""
    return target.removeprefix("-").isdecimal()


def as_target(values: np.ndarray) -> np.ndarray | Coded:
    """Labels as a batch has them: float64 numbers, or coded names."""
    values = values.reshape(-1)
    if values.dtype.kind in "US":
        values = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
        return coded(values.astype(object))
    return coded(values) if values.dtype.kind == "O" else values.astype(np.float64)


def check_count(path: str, rows: int, labels: Any) -> None:
    """Refuse labels that are not as many as the rows."""
    if labels is not None and labels.count not in (None, rows):
        raise SourceError(
            f"{path!r} has {rows} rows but {labels.path!r} has {labels.count} labels; name the labels of these rows"
        )


def _is_number(line: bytes) -> bool:
    try:
        float(line)
    except ValueError:
        return False
    return b"_" not in line
