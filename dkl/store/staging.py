"""The staging folder of an ingest: parsed batches as files, so that no segment is parsed twice.

part-S-N.rows   the rows of segment N of source S: a line of JSON with names, dtypes and shapes, then the arrays
part-S-N.json   their summary, written after the rows; a part without it is ignored
source-S.json   the number of parts, written when the whole source has been read
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Batch, Coded, Segment, Source, SourceError
from dkl.store.folder import Folder

MOST_LABELS = 5000
"""Distinct targets of a part that are listed; with more, the target is numbers, not classes."""


class Part(NamedTuple):
    """One staged batch and its summary."""

    name: str
    rows: int
    summary: dict


class Staging:
    """Parts of all sources in one folder."""

    def __init__(self, folder: Folder, dtype: np.dtype | None = None, present: Collection[str] | None = None) -> None:
        self.folder, self.dtype = folder, dtype
        self.present = folder.names() if present is None else present

    def stage(self, number: int, source: Source, pool: ThreadPoolExecutor, most: int, progress: Any) -> None:
        """Parse every segment that is not staged yet; at most `most` run at a time."""
        if f"source-{number}.json" in self.present:
            return
        running: set[Future] = set()
        count = 0
        try:
            for segment in source.segments():
                count = segment.number + 1
                if f"part-{number}-{segment.number}.json" not in self.present:
                    running.add(pool.submit(self._parse, number, source, segment))
                if len(running) >= most:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                progress.advance(segment.size)
            for future in running:
                future.result()
        finally:
            for future in running:
                future.cancel()
            wait(running)
        if not count:
            raise SourceError(f"{source.name!r} has no rows; give at least one")
        self.folder.write_json(f"source-{number}.json", {"parts": count})

    def _parse(self, number: int, source: Source, segment: Segment) -> None:
        name = f"part-{number}-{segment.number}"
        self.folder.write_json(f"{name}.json", self.put(name, source.parse(segment)))

    def put(self, name: str, batch: Batch) -> dict:
        """Write the rows of a part; their summary."""
        self.folder.write(f"{name}.rows", _pack(batch, self.dtype))
        return _summary(batch)

    def parts(self, number: int) -> list[Part]:
        """The parts of a source that has been read completely, in order."""
        count = self.folder.read_json(f"source-{number}.json")["parts"]
        names = [f"part-{number}-{i}" for i in range(count)]
        summaries = [self.folder.read_json(f"{name}.json") for name in names]
        return [Part(name, s["rows"], s) for name, s in zip(names, summaries, strict=True) if s["rows"]]

    def load(self, part: Part) -> Batch:
        """The rows of a part."""
        arrays = _unpack(self.folder.read(f"{part.name}.rows"))
        if "X" in arrays:
            X: Any = arrays["X"]
        else:
            from scipy.sparse import csr_array

            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = csr_array(parts, shape=(part.rows, int(arrays["width"])))
        texts = part.summary["text"]
        text = {name: Coded(arrays[f"text{i}"], texts[name]) for i, name in enumerate(texts)}
        y: Any = arrays.get("y")
        if "labels" in arrays:
            y = Coded(arrays["labels"], part.summary["labels"])
        return Batch(X, text, y)


def _pack(batch: Batch, dtype: np.dtype | None) -> bytes:
    """The arrays of a batch as bytes; float64 narrowed to dtype if it is given."""
    X, arrays = batch.X, {}
    if hasattr(X, "indptr"):
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "width": np.array(X.shape[1])}
    else:
        with np.errstate(over="ignore"):
            narrow = X.astype(dtype) if dtype is not None and X.dtype == np.float64 else X
        arrays = {"X": narrow if narrow is X or _same_range(X, narrow) else X}
    arrays |= {f"text{i}": column.codes for i, column in enumerate(batch.text.values())}
    if isinstance(batch.y, Coded):
        arrays["labels"] = batch.y.codes
    elif batch.y is not None:
        arrays["y"] = batch.y
    described = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    head = json.dumps(described).encode()
    head += b" " * (-(len(head) + 1) % 64) + b"\n"  # arrays begin at aligned offsets
    parts = [_padded(np.ascontiguousarray(array)) for array in arrays.values()]
    return b"".join([head, *(piece for part in parts for piece in part)])


def _padded(array: np.ndarray) -> tuple[Any, bytes]:
    """The bytes of an array, and padding to a multiple of 64."""
    return array.reshape(-1).view(np.uint8).data, b" " * (-array.nbytes % 64)


def _unpack(data: bytes) -> dict[str, np.ndarray]:
    """The arrays, as views of the bytes."""
    place = data.index(b"\n") + 1
    arrays = {}
    for name, kind, shape in json.loads(data[:place]):
        array = np.frombuffer(data, kind, math.prod(shape), place).reshape(shape)
        arrays[name] = array
        place += array.nbytes + -array.nbytes % 64
    return arrays


def _same_range(X: np.ndarray, narrow: np.ndarray) -> bool:
    """Whether nothing became infinite; an overflow is refused later, by the final cast."""
    return not (np.isinf(narrow) & np.isfinite(X)).any()


def _summary(batch: Batch) -> dict:
    """What is needed of every part before the first row is written."""
    sparse = hasattr(batch.X, "indptr")
    found: dict[str, Any] = {
        "rows": int(batch.X.shape[0]),
        "dtype": batch.X.dtype.name,
        "sparse": sparse,
        "text": {name: column.names for name, column in batch.text.items()},
    }
    if sparse:
        columns = batch.X.indices
        found["entries"] = int(batch.X.nnz)
        found["lowest"], found["highest"] = (int(columns.min()), int(columns.max())) if len(columns) else (1, 0)
    else:
        found["width"] = int(batch.X.shape[1])
    if isinstance(batch.y, Coded):
        found["labels"] = batch.y.names
    elif batch.y is not None:
        values = np.unique(batch.y[~np.isnan(batch.y)])
        whole = bool((values == np.floor(values)).all())
        found["values"] = values.tolist() if whole and len(values) <= MOST_LABELS else None
        found["largest"] = float(np.abs(values).max(initial=0.0)) if whole else None
    return found


class Aligned:
    """Rows of several channels side by side, however each channel is cut into parts; all of them, or a range.

    The first parts of the channels begin at the rows `firsts`.
    """

    def __init__(
        self, staging: Staging, channels: list[list[Part]], pool: ThreadPoolExecutor,
        firsts: Sequence[int] | None = None, rows: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.staging, self.channels, self.pool = staging, channels, pool
        self.firsts = firsts or [0] * len(channels)
        self.rows = rows or (0, sum(part.rows for part in channels[0]))

    def __iter__(self) -> Iterator[tuple[int, list[Batch]]]:
        """(first row, the rows of each channel), in order; two parts of each channel are in memory at a time."""
        start, last = self.rows
        ends = [(np.cumsum([p.rows for p in parts]) + first).tolist() for first, parts in self._parts()]
        readers = [self._batches(parts) for parts in self.channels]
        held = [next(reader) for reader in readers]
        at = [0] * len(ends)
        for stop in sorted({min(end, last) for end in set().union(*ends)}):
            pieces = []
            for c, parts in enumerate(self.channels):
                end, rows = ends[c][at[c]], parts[at[c]].rows
                first = end - rows
                pieces.append(held[c] if stop - start == rows else rows_of(held[c], slice(start - first, stop - first)))
                if stop == end and at[c] + 1 < len(parts):
                    held[c], at[c] = next(readers[c]), at[c] + 1
            yield start, pieces
            start = stop

    def _parts(self) -> Iterator[tuple[int, list[Part]]]:
        return zip(self.firsts, self.channels, strict=True)

    def cuts(self) -> list[int]:
        """Where the pieces that `__iter__` yields begin, and the end."""
        ends = [np.cumsum([p.rows for p in parts]) + first for first, parts in self._parts()]
        start, last = self.rows
        return [start, *sorted({min(int(end), last) for end in np.concatenate(ends)})]

    def between(self, start: int, stop: int) -> tuple[list[list[Part]], list[int]]:
        """The parts of each channel that hold rows start .. stop-1, and the first row of each channel's first part."""
        channels, firsts = [], []
        for first, parts in self._parts():
            ends = np.cumsum([p.rows for p in parts]) + first
            a, b = int(np.searchsorted(ends, start, "right")), int(np.searchsorted(ends, stop, "left"))
            channels.append(parts[a : b + 1])
            firsts.append(int(ends[a] - parts[a].rows))
        return channels, firsts

    def _batches(self, parts: list[Part]) -> Iterator[Batch]:
        """The batches in order; the next one is prefetched."""
        following = self.pool.submit(self.staging.load, parts[0])
        for part in [*parts[1:], None]:
            batch = following.result()
            if part is not None:
                following = self.pool.submit(self.staging.load, part)
            yield batch


def rows_of(batch: Batch, rows: Any) -> Batch:
    """Some rows of a batch, by slice or mask."""
    text = {name: Coded(column.codes[rows], column.names) for name, column in batch.text.items()}
    y = batch.y
    if y is not None:
        y = Coded(y.codes[rows], y.names) if isinstance(y, Coded) else y[rows]
    return Batch(batch.X[rows], text, y)
