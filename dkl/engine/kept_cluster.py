"""Prepared rows in the memory of the workers (engine/kept.py): each shelf is a future, read by a worker of its own.

What a lost worker kept is read again by another one, as the scheduler knows the task that made it. If not all shelves
fit, those that have not been used for the longest time are let go of.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from dkl.engine.blocks import Rows
from dkl.engine.kept import KeptPart, Piece, Preparation, read_shelf
from dkl.engine.names import unique_key
from dkl.engine.row_readers import Range


class ClusterRows:
    """The shelves of some rows on the workers of a client; `most` of them stay."""

    def __init__(
        self, client: Any, rows: Rows, shelves: Sequence[Range], preparation: Preparation, most: int
    ) -> None:  # fmt: skip
        self.client, self.ranges, self.preparation, self.most = client, list(shelves), preparation, max(1, most)
        self.n_rows = rows.n_rows
        self.readers = rows.cut([[one] for one in self.ranges])
        self.delayed = rows.shared(self.readers)
        self.found: OrderedDict[int, Any] = OrderedDict()
        self.homes: dict[int, str] = {}

    @property
    def stays(self) -> bool:
        """Whether all of them are kept."""
        return self.most >= len(self.ranges)

    def parts(self, pieces: Sequence[Piece], workers: Mapping[str, Any]) -> list[KeptPart]:
        """Pieces of one shelf are a part; if that are fewer parts than threads, every piece is."""
        by_shelf: dict[int, list[tuple[int, Piece]]] = {}
        for number, piece in enumerate(pieces):
            by_shelf.setdefault(piece.shelf, []).append((number, piece))
        threads = sum(worker["nthreads"] for worker in workers.values())
        groups = list(by_shelf.values())
        if len(groups) < threads:
            groups = [[one] for group in groups for one in group]
        return [self._part(group, workers) for group in groups]

    def _part(self, pieces: list[tuple[int, Piece]], workers: Mapping[str, Any]) -> KeptPart:
        shelf = pieces[0][1].shelf
        start, stop = self.ranges[shelf]
        if self.homes.get(shelf) not in workers:
            self.homes[shelf] = self._emptiest(workers)
        rows = sum((stop - start) // piece.of for _, piece in pieces)
        return KeptPart(pieces, shelf, rows, self.homes[shelf] or None)

    def _emptiest(self, workers: Mapping[str, Any]) -> str:
        """The worker that keeps the fewest shelves for each of its threads; "" if there is none."""
        held = Counter(self.homes.values())
        return min(sorted(workers), key=lambda address: held[address] / workers[address]["nthreads"], default="")

    def shared(self, parts: Sequence[KeptPart]) -> dict:
        """The futures of the shelves of some parts."""
        found = {part.key: self._shelf(part.key, part.home) for part in parts}
        while len(self.found) > max(self.most, len(found)):
            self.found.popitem(last=False)
        return found

    def _shelf(self, number: int, home: str | None) -> Any:
        """The future of a shelf: kept, or submitted now."""
        if number in self.found and self.found[number].status not in ("lost", "cancelled", "error"):
            self.found.move_to_end(number)
            return self.found[number]
        reader = self.readers[number]
        keys = list(reader.needs)
        needs = dict(zip(keys, self.client.compute([self.delayed[key] for key in keys]), strict=True))
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        self.found[number] = self.client.submit(
            read_shelf, reader, self.preparation, needs, key=unique_key("rows"), **where
        )  # fmt: skip
        return self.found[number]
