"""A Zarr store that refuses missing chunks of one array, which Zarr would silently fill.

Zarr reads a chunk that is not stored as fill values. If every chunk was written, an absent one is damage: a missing
file, a chunk that a shard's index marks as absent, or truncated bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.storage import WrapperStore

from dkl.sources.damage import Cut, Damaged

ABSENT_CHUNK = np.uint64(2**64 - 1)
"""Offset and length of an absent chunk in a shard's index."""


class WholeStore(WrapperStore):
    """The store of one array that is cut by rows; `place` is its path in messages."""

    def __init__(self, store: Any, path: str, cut: Cut, place: str) -> None:
        super().__init__(store)
        self.path, self.cut, self.place = path, cut, place

    def _with_store(self, store: Any) -> WholeStore:
        return WholeStore(store, self.path, self.cut, self.place)

    def __str__(self) -> str:
        return str(self._store)

    @property
    def plain(self) -> Any:
        """The wrapped store."""
        return self._store

    @property
    def root(self) -> Any:
        """The folder of a local store; None for other stores."""
        return getattr(self._store, "root", None)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """The bytes; Damaged if they are a chunk's and missing."""
        return self._checked(key, await self._store.get(key, prototype, byte_range), byte_range)

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """The same, for Zarr versions that read without an event loop."""
        return self._checked(key, self._store.get_sync(key, prototype=prototype, byte_range=byte_range), byte_range)

    async def get_ranges(self, key: str, byte_ranges: Any, **how: Any) -> AsyncIterator[Any]:
        """The same, for Zarr versions that read several ranges at once."""
        how = {name: value for name, value in how.items() if value is not None}
        async for group in self._store.get_ranges(key, byte_ranges, **how):
            for i, found in group:
                self._checked(key, found, byte_ranges[i])
            yield group

    def _checked(self, key: str, found: Any, asked: Any) -> Any:
        number = self.cut.number_of(key.removeprefix(f"{self.path}/" if self.path else ""))
        if number is None:
            return found
        if found is None:
            raise self._refusal(number, "missing")
        if isinstance(asked, RangeByteRequest):
            if len(found) != asked.end - asked.start:
                raise self._refusal(number, "truncated")
        elif self.cut.inner is not None and (asked is None or isinstance(asked, SuffixByteRequest)):
            self._check_index(number, found.as_numpy_array())
        return found

    def _check_index(self, number: int, stored: np.ndarray) -> None:
        """The index at the end of a shard lists every chunk that has rows; Zarr checks the index's checksum."""
        size = 16 * self.cut.inner_count
        if len(stored) < size + 4:
            raise self._refusal(number, "truncated")
        index = np.frombuffer(stored[-size - 4 : -4].tobytes(), "<u8").reshape(-1, 2)
        start, stop = self.cut.rows_of(number)
        expected = -(-(stop - start) // (self.cut.inner or 1))
        empty = np.flatnonzero((index[:expected] == ABSENT_CHUNK).all(axis=1))
        if len(empty):
            raise self._refusal(number, f"without its inner chunk {int(empty[0])}")

    def _refusal(self, number: int, what: str) -> Damaged:
        return self.cut.refusal(self.place, number, what)
