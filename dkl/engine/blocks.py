"""Aligned row blocks of several inputs.

A block is one or more whole chunks with enough rows for the pass. So blocks depend on the chunks and on the pass, never
on the number of workers. Even blocks depend on the number of rows alone: they are the same for every container, and may
begin and end inside a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.engine.row_readers import NO_SHARED, DaskColumn, MemoryColumn, Range, ZarrColumn
from dkl.engine.tables import Table, with_known_rows


@dataclass(frozen=True)
class Part:
    """Consecutive blocks of one task: the number of the first, the row range of each, and their readers."""

    first: int
    blocks: list[Range]
    columns: list[Any]

    @property
    def n_rows(self) -> int:
        return sum(stop - start for start, stop in self.blocks)

    @property
    def needs(self) -> set:
        """Keys whose values come from outside, of all columns."""
        return set().union(*(getattr(column, "needs", ()) for column in self.columns))

    def read(self, shared: Mapping = NO_SHARED) -> Iterator[tuple[int, int, tuple]]:
        """(block number, first row, data of each column), one block at a time; shared holds the values of `needs`."""
        for i, (start, stop) in enumerate(self.blocks):
            data = tuple(None if c is None else c.read(start, stop, shared) for c in self.columns)
            sizes = {a.shape[0] for a in data if a is not None}
            if sizes - {stop - start}:
                raise ValueError(
                    f"a block of rows {start}..{stop} has {sorted(sizes)} rows; X, y and sample_weight must agree"
                )
            yield self.first + i, start, data


class Rows:
    """Columns with the same rows. The chunks of the first table decide the blocks.

    `matrix_bytes` are those of the matrices that a model keeps with the recipe of its rows.
    """

    def __init__(self, tables: list[Table | None], names: list[str]) -> None:
        lead = tables[0]
        assert lead is not None
        self.is_lazy = lead.is_lazy
        tables = [None if t is None else with_known_rows(t) for t in tables]
        arrays: list[Any] = [None if t is None else t.array for t in tables]
        self.n_rows = int(arrays[0].shape[0])
        if not self.n_rows:
            raise ValueError(f"{names[0]} has 0 sample(s); a minimum of 1 is required")
        for array, name in zip(arrays, names, strict=True):
            if array is not None and array.shape[0] != self.n_rows:
                raise ValueError(
                    f"{names[0]} has {self.n_rows} rows, {name} has {array.shape[0]}: inconsistent numbers of samples"
                )
        self.matrix_bytes = sum(int(m.nbytes) for t in tables if t is not None for m in t.matrices.values())
        self.columns: list[Any] = []
        for table, array in zip(tables, arrays, strict=True):
            self.columns.append(None if table is None else self._column(table.kind, array))

    def _column(self, kind: str, array: Any) -> Any:
        lead = self.columns[0] if self.columns else None
        if kind == "zarr":
            return ZarrColumn(array)
        if kind == "memory":
            return MemoryColumn(array)
        if lead is None:
            return DaskColumn(array)
        if isinstance(lead, MemoryColumn):
            return MemoryColumn(array.compute())
        return DaskColumn(array.rechunk({0: tuple(np.diff(lead.boundaries()).tolist())}))

    @property
    def reads_zarr(self) -> bool:
        """Whether every worker can read the rows from Zarr by itself."""
        return all(isinstance(column, ZarrColumn) for column in self.columns)

    def blocks(self, rows_wanted: int) -> list[Range]:
        """Row ranges of the blocks."""
        if isinstance(self.columns[0], MemoryColumn):
            return self.even_blocks(rows_wanted)
        cuts, ranges = self.columns[0].boundaries(), []
        start = cuts[0]
        for stop in cuts[1:]:
            if stop - start >= rows_wanted or stop == self.n_rows:
                if stop > start:
                    ranges.append((int(start), int(stop)))
                start = stop
        return ranges

    def even_blocks(self, rows_wanted: int) -> list[Range]:
        """Row ranges of one size, at most `rows_wanted`: the same for every container, whatever its chunks."""
        count = max(1, -(-self.n_rows // rows_wanted))
        return [(i * self.n_rows // count, (i + 1) * self.n_rows // count) for i in range(count)]

    def cuts_chunks(self, blocks: Sequence[Range]) -> bool:
        """Whether a block begins or ends inside a Dask chunk."""
        lead = self.columns[0]
        return isinstance(lead, DaskColumn) and not bool(np.isin(blocks, lead.boundaries()).all())

    def by_chunk(self, groups: list[list[Range]]) -> list[list[Range]]:
        """The same groups, but one for all that begin in the same Dask chunk: a chunk is computed twice at most."""
        if not isinstance(self.columns[0], DaskColumn):
            return groups
        firsts = np.searchsorted(self.columns[0].boundaries(), [group[0][0] for group in groups], "right")
        found: list[list[Range]] = []
        for i, group in enumerate(groups):
            if i and firsts[i] == firsts[i - 1]:
                found[-1].extend(group)
            else:
                found.append(list(group))
        return found

    def largest_block(self, rows_wanted: int) -> int:
        """Rows of the largest block."""
        return max(stop - start for start, stop in self.blocks(rows_wanted))

    def cut(self, groups: list[list[Range]]) -> list[Part]:
        """One part per group of consecutive blocks."""
        ranges = [(g[0][0], g[-1][1]) for g in groups]
        pieces = [[None] * len(groups) if c is None else c.cut(ranges) for c in self.columns]
        firsts = np.cumsum([0, *map(len, groups)])
        return [Part(int(firsts[i]), g, [p[i] for p in pieces]) for i, g in enumerate(groups)]

    def shared(self, parts: list[Part]) -> dict:
        """Delayed values, or futures, of the keys that parts need from outside."""
        values: dict = {}
        for i, column in enumerate(self.columns):
            needs = set().union(*(getattr(p.columns[i], "needs", ()) for p in parts))
            if needs:
                values |= column.shared(needs)
        return values
