"""What is damaged or missing in stored rows, by name: the array, the chunk, its rows.

An array that says `every_chunk_written` is opened through `whole`, and none of its chunks may be absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

EVERY = "every_chunk_written"
"""Attribute of an array in which a chunk that is not stored is a chunk that was lost."""


class Damaged(ValueError):
    """Stored rows that cannot be had any more."""


@dataclass(frozen=True)
class Cut:
    """How an array is cut by rows: rows of a file (a chunk, or a shard), rows of a chunk in a shard, and file names."""

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
        """The number of the file of that name; None of other names."""
        parts = key.split("/")
        is_chunk = len(parts) == 1 + self.names and parts[0] == self.first and parts[1].isdecimal()
        return int(parts[1]) if is_chunk else None

    def rows_of(self, number: int) -> tuple[int, int]:
        """First row of a file, and past its last."""
        return number * self.unit, min(self.rows, (number + 1) * self.unit)

    def refusal(self, place: str, number: int, what: str) -> Damaged:
        """The sentence for one file."""
        start, stop = self.rows_of(number)
        return Damaged(
            f"chunk {self.key(number)} of {place} (entries {start} to {stop - 1}) is {what}; copy it again, or ingest "
            "the source again"
        )


def cut_of(array: Any) -> Cut | None:
    """How an array of dkl is cut; None of one that is cut in another way, or has other names."""
    encoding = getattr(array.metadata, "chunk_key_encoding", None)
    files = array.shards or array.chunks
    if encoding is None or encoding.name != "default" or encoding.separator != "/":
        return None
    if any(file < size for file, size in zip(files[1:], array.shape[1:], strict=True)):
        return None
    inner = None if array.shards is None else int(array.chunks[0])
    return Cut(int(array.shape[0]), int(files[0]), inner, "c", array.ndim)


def place_of(array: Any) -> str:
    """Where an array lies, for people."""
    store = getattr(array.store, "plain", array.store)
    fs = getattr(store, "fs", None)
    root = str(store).removeprefix("file://") if fs is None else fs.unstrip_protocol(store.path)
    return f"{root.rstrip('/')}/{array.path}".rstrip("/")


def read_rows(array: Any, start: int, stop: int) -> Any:
    """array[start:stop]; Damaged, with the chunk's name, if that cannot be read."""
    try:
        return array[start:stop]
    except Damaged:
        raise
    except (RuntimeError, ValueError, TypeError) as error:  # what codecs say
        raise _named(array, start, stop, error) from error


def _named(array: Any, start: int, stop: int, error: Exception) -> Damaged:
    """The first chunk of a range that cannot be read."""
    cut = cut_of(array) if hasattr(array, "metadata") else None
    for number in () if cut is None else range(start // cut.unit, min(cut.count, -(-stop // cut.unit))):
        first, last = cut.rows_of(number)  # type: ignore[union-attr]
        try:
            array[max(first, start) : min(last, stop)]
        except Exception as found:
            return cut.refusal(place_of(array), number, f"damaged ({_line(found)})")  # type: ignore[union-attr]
    return Damaged(f"rows {start} to {stop} of {place_of(array)} cannot be read: {_line(error)}; make it again")


def _line(error: Exception) -> str:
    text = str(error).split("\n")[0].rstrip(".")
    return "its checksum does not fit" if "checksum do not match" in text else text or type(error).__name__
