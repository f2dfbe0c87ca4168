"""Damaged or missing chunks of stored rows, named by array, chunk and rows.

An array with the attribute `every_chunk_written` is opened through `whole`; none of its chunks may be absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ALL_WRITTEN = "every_chunk_written"
"""Attribute of an array whose every chunk was written: an absent chunk is a lost one."""


class Damaged(ValueError):
    """Stored rows that are lost."""


@dataclass(frozen=True)
class Cut:
    """How an array is cut by rows: rows per file (a chunk or a shard), rows per chunk within a shard, file names."""

    rows: int
    unit: int
    inner: int | None
    first: str
    names: int

    @property
    def count(self) -> int:
        """Files of the array."""
        return -(-self.rows // self.unit)

    @property
    def inner_count(self) -> int:
        """Chunks in a shard."""
        return self.unit // (self.inner or self.unit)

    def key(self, number: int) -> str:
        """The name of a file, below the array's own."""
        return "/".join([self.first, str(number), *["0"] * (self.names - 1)])

    def number_of(self, key: str) -> int | None:
        """The number of the file with that name; None if it is not a chunk."""
        parts = key.split("/")
        is_chunk = len(parts) == 1 + self.names and parts[0] == self.first and parts[1].isdecimal()
        return int(parts[1]) if is_chunk else None

    def rows_of(self, number: int) -> tuple[int, int]:
        """(first, last + 1) row of a file."""
        return number * self.unit, min(self.rows, (number + 1) * self.unit)

    def refusal(self, place: str, number: int, what: str) -> Damaged:
        """The error of one file."""
        start, stop = self.rows_of(number)
        return Damaged(
            f"chunk {self.key(number)} of {place} (entries {start} to {stop - 1}) is {what}; copy it again, or ingest "
            "the source again"
        )


def cut_of(array: Any) -> Cut | None:
    """How an array of dkl is cut; None if it is cut otherwise, or its files have other names."""
    encoding = getattr(array.metadata, "chunk_key_encoding", None)
    files = array.shards or array.chunks
    if encoding is None or encoding.name != "default" or encoding.separator != "/":
        return None
    if any(file < size for file, size in zip(files[1:], array.shape[1:], strict=True)):
        return None
    inner = None if array.shards is None else int(array.chunks[0])
    return Cut(int(array.shape[0]), int(files[0]), inner, "c", array.ndim)


def place_of(array: Any) -> str:
    """The path or URL of an array, for messages."""
    store = getattr(array.store, "plain", array.store)
    fs = getattr(store, "fs", None)
    root = str(store).removeprefix("file://") if fs is None else fs.unstrip_protocol(store.path)
    return f"{root.rstrip('/')}/{array.path}".rstrip("/")


def read_rows(array: Any, start: int, stop: int) -> Any:
    """array[start:stop]; raises Damaged, with the chunk's name, if it cannot be read."""
    try:
        return array[start:stop]
    except Damaged:
        raise
    except (RuntimeError, ValueError, TypeError) as error:  # raised by codecs
        raise _named(array, start, stop, error) from error


def _named(array: Any, start: int, stop: int, error: Exception) -> Damaged:
    """The error of the first chunk in a range that cannot be read."""
    cut = cut_of(array) if hasattr(array, "metadata") else None
    for number in () if cut is None else range(start // cut.unit, min(cut.count, -(-stop // cut.unit))):
        first, last = cut.rows_of(number)  # type: ignore[union-attr]
        try:
            array[max(first, start) : min(last, stop)]
        except Exception as found:
            return cut.refusal(place_of(array), number, f"damaged ({_line(found)})")  # type: ignore[union-attr]
    return Damaged(f"rows {start} to {stop} of {place_of(array)} cannot be read: {_line(error)}; copy it again")


def _line(error: Exception) -> str:
    text = str(error).split("\n")[0].rstrip(".")
    return "its checksum does not match" if "checksum do not match" in text else text or type(error).__name__
