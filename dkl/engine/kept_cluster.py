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
from dkl.engine.tasks import merge_sums, sum_part

MERGE = 4
"""Sums of one worker that are added at a time."""


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

    def total(self, held: Any, task: str, parts: Sequence[KeptPart]) -> Any:
        """A future of the sums of all parts: added where their rows are kept, a few at a time, then among workers."""
        by_home: dict[str | None, list[KeptPart]] = {}
        for part in parts:
            by_home.setdefault(part.home, []).append(part)
        sums = [self._total_at(home, held, task, some) for home, some in by_home.items()]
        while len(self.found) > max(self.most, len({part.key for part in parts})):
            self.found.popitem(last=False)
        return sums[0] if len(sums) == 1 else self.client.submit(merge_sums, *sums, key=unique_key("merge"))

    def _total_at(self, home: str | None, held: Any, task: str, parts: list[KeptPart]) -> Any:
        """A future of the sums of parts on one worker; as tasks run in their order, few sums exist at a time."""
        where = _at(home)
        sums: list[Any] = []
        for part in parts:
            needs = {part.key: self._shelf(part.key, home)}
            sums.append(self.client.submit(sum_part, held, part, needs, key=unique_key(task), **where))
            if len(sums) > MERGE or (part is parts[-1] and len(sums) > 1):
                sums = [self.client.submit(merge_sums, *sums, key=unique_key("merge"), **where)]
        return sums[0]

    def _shelf(self, number: int, home: str | None) -> Any:
        """The future of a shelf: kept, or submitted now."""
        if number in self.found and self.found[number].status not in ("lost", "cancelled", "error"):
            self.found.move_to_end(number)
            return self.found[number]
        reader = self.readers[number]
        keys = list(reader.needs)
        needs = dict(zip(keys, self.client.compute([self.delayed[key] for key in keys]), strict=True))
        shelf = self.client.submit(read_shelf, reader, self.preparation, needs, key=unique_key("rows"), **_at(home))
        self.found[number] = shelf
        return shelf


def _at(home: str | None) -> dict[str, Any]:
    """Where a task should run; anywhere, if that worker is gone."""
    return {} if home is None else {"workers": [home], "allow_other_workers": True}
