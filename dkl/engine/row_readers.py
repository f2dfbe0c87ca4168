"""Readers of one input: rows by range, cut into parts that can be sent to workers.

A part of a Dask array carries the tasks that only it needs; they run inside the worker's own task. A value that several
parts need (a mean, a persisted block, a source chunk of two parts) is computed once, sent to each, and released with
the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dkl.engine.sparse import SparseRows
from dkl.features.refusal import Refusal
from dkl.features.sparse import as_csr
from dkl.sources.damage import read_rows
from dkl.sources.safe_zarr import member, open_in_store
from dkl.sources.shown import clean
from dkl.sources.whole import plain_store, whole

Range = tuple[int, int]
NO_SHARED: Mapping = {}


class MemoryColumn:
    """An array in this process; `first` is the global index of its first row."""

    def __init__(self, array: Any, first: int = 0) -> None:
        self.array, self.first = array, first

    def read(self, start: int, stop: int, shared: Mapping = NO_SHARED) -> Any:
        """Rows start .. stop-1."""
        return self.array[start - self.first : stop - self.first]

    def cut(self, ranges: list[Range]) -> list[MemoryColumn]:
        """One reader per range."""
        return [MemoryColumn(self.read(*r), r[0]) for r in ranges]


class ZarrColumn:
    """A Zarr array, read on the worker. It is pickled as its address and opened by the first read."""

    def __init__(self, array: Any) -> None:
        self.opened, self.store, self.path = array, plain_store(array), array.path

    def __getstate__(self) -> dict:
        return {"opened": None, "store": self.store, "path": self.path}

    @property
    def array(self) -> Any:
        """The opened array; raises on a worker that cannot see it, where Zarr would read zeros."""
        if self.opened is None:
            try:
                self.opened = open_rows(self.store, self.path)
            except (FileNotFoundError, KeyError) as error:
                message = (
                    f"a worker finds no Zarr array at {clean(str(self.store))}; put it where all workers can read it"
                )
                raise FileNotFoundError(message) from error
        return self.opened

    def read(self, start: int, stop: int, shared: Mapping = NO_SHARED) -> Any:
        """Rows start .. stop-1; an error names the damaged or missing chunk."""
        return read_rows(self.array, start, stop)

    def cut(self, ranges: list[Range]) -> list[ZarrColumn]:
        """The same reader for every range."""
        return [self] * len(ranges)

    def boundaries(self) -> np.ndarray:
        """Row numbers at which chunks (or shards) begin, and the end."""
        n, step = self.array.shape[0], (self.array.shards or self.array.chunks)[0]
        return np.append(np.arange(0, n, step), n)


def open_rows(store: Any, path: str) -> Any:
    """The array, or the sparse rows, at a path of a Zarr store."""
    node = open_in_store(store, path)
    return whole(node) if hasattr(node, "shape") else sparse_rows(node, f"{store}/{path}")


def sparse_rows(group: Any, place: str) -> SparseRows:
    """The rows of a csr group; refused if its arrays are not safe to decode."""
    for name in ("data", "indices", "indptr"):
        member(group, name, place)
    return SparseRows(group)


class DaskColumn:
    """A Dask array in row chunks."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.tasks, self.futures = self._graph()

    def boundaries(self) -> np.ndarray:
        """Row numbers at which chunks begin, and the end."""
        return np.cumsum((0, *self.array.chunks[0]))

    def cut(self, ranges: list[Range]) -> list[DaskPart]:
        """One part per range; a chunk of several ranges is computed by each of their parts."""
        from dask.core import get_deps

        graph, held = self.tasks, self.futures
        keys = [_first_key(k) for k in self.array.__dask_keys__()]
        bounds = self.boundaries()
        chunk_of = [_chunks(bounds, r) for r in ranges]
        users_of: dict[Any, frozenset[int]] = {}
        for i, (a, b) in enumerate(chunk_of):
            users_of |= {key: users_of.get(key, frozenset()) | {i} for key in keys[a:b]}
        owner = _owners(graph, get_deps(graph), users_of, held)
        inner: list[dict] = [{} for _ in ranges]
        outer: list[set] = [set() for _ in ranges]
        for key, users in owner.items():
            for i in frozenset().union(*users):
                if key in held or len(users) > 1:
                    outer[i].add(key)
                else:
                    inner[i][key] = graph[key]
        return [
            DaskPart(inner[i], frozenset(outer[i]), keys[a:b], bounds[a : b + 1], ranges[i][1])
            for i, (a, b) in enumerate(chunk_of)
        ]

    def shared(self, keys: Iterable) -> dict:
        """Delayed values, or futures, of keys that parts need from outside."""
        from dask.delayed import Delayed

        held = self.futures
        return {key: held[key] if key in held else Delayed(key, self.tasks) for key in keys}

    def _graph(self) -> tuple[dict, dict]:
        """Tasks by key (optimised if nothing is persisted), and the futures of persisted blocks."""
        import dask

        futures = {future.key: future for future in _futures_of(self.array)}
        array = self.array if futures else dask.optimize(self.array)[0]
        return dict(array.__dask_graph__()), futures


class DaskPart:
    """Consecutive chunks with the tasks that compute them; `needs` are keys whose values come from outside.

    Rows are read in their order, up to `end`: a chunk that the next range begins in is kept until then.
    """

    def __init__(self, graph: dict, needs: frozenset, keys: list, bounds: np.ndarray, end: int) -> None:
        self.graph, self.needs, self.keys, self.bounds, self.end = graph, needs, keys, bounds, end
        self.kept: dict = {}

    def read(self, start: int, stop: int, shared: Mapping = NO_SHARED) -> Any:
        """Rows start .. stop-1."""
        import dask

        low, high = _chunks(self.bounds, (start, stop))
        keys = self.keys[low:high]
        given = {key: (_Give(shared[key]),) for key in self.needs}
        missing = [key for key in keys if key not in self.kept]
        found = self.kept | dict(zip(missing, dask.get({**self.graph, **given}, missing), strict=True))
        self.kept = {keys[-1]: found[keys[-1]]} if stop < min(self.end, self.bounds[high]) else {}
        blocks = [_rows_of(found[key], start - a, stop - a) for key, a in zip(keys, self.bounds[low:high], strict=True)]
        blocks = [b for b in blocks if b.shape[0]]
        if hasattr(blocks[0], "tocsr"):
            return _stacked(blocks, start)
        if len(blocks) == 1:
            return blocks[0]
        masked = any(isinstance(block, np.ma.MaskedArray) for block in blocks)  # np.concatenate drops masks
        return np.ma.concatenate(blocks) if masked else np.concatenate(blocks)


def _chunks(bounds: np.ndarray, rows: Range) -> tuple[int, int]:
    """Numbers of the chunks that hold a range of rows: the first, and one more than the last."""
    return int(np.searchsorted(bounds, rows[0], "right")) - 1, int(np.searchsorted(bounds, rows[1]))


def _rows_of(chunk: Any, start: int, stop: int) -> Any:
    """Rows start .. stop-1 of a chunk, as far as it has them; the chunk itself, if these are all."""
    if start <= 0 and stop >= chunk.shape[0]:
        return chunk
    return (chunk.tocsr() if hasattr(chunk, "tocsr") else chunk)[max(0, start) : stop]


def _stacked(blocks: list, start: int) -> Any:
    """Sparse blocks as one csr block; `start` is the first row's number."""
    from scipy.sparse import vstack

    checked = []
    for block in blocks:
        try:
            checked.append(as_csr(block))
        except Refusal as refusal:
            raise ValueError(refusal.at(start)[1]) from None
        start += block.shape[0]
    return checked[0] if len(checked) == 1 else vstack(checked, format="csr")


class _Give:
    """A task that returns a value, for values that look like tasks."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


def _first_key(key: Any) -> Any:
    while isinstance(key, list):
        key = key[0]
    return key


def _futures_of(array: Any) -> list:
    """Futures inside a persisted array."""
    import sys

    distributed = sys.modules.get("distributed")
    return distributed.futures_of(array) if distributed is not None else []


def _owners(
    graph: dict, links: tuple[dict, dict], roots: dict[Any, frozenset[int]], held: dict
) -> dict[Any, set[frozenset[int]]]:
    """For each key, the parts that use it other than through a shared key: those of one chunk are one user."""
    dependencies, dependents = links
    owner = {key: {parts} for key, parts in roots.items()}
    waiting = {key: len(users) for key, users in dependents.items()}
    ready = [key for key, count in waiting.items() if not count]
    while ready:
        key = ready.pop()
        users = owner.get(key, set())
        for needed in dependencies[key]:
            if users and len(users) == 1 and key not in held:
                owner.setdefault(needed, set()).update(users)
            waiting[needed] -= 1
            if not waiting[needed]:
                ready.append(needed)
    return owner
