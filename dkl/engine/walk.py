"""Many passes of one program over a cluster, which remembers rows where it has summed them.

The program stays on every worker from pass to pass, as the result of a task, with what it remembers. So a part goes to
the worker that had it before; if that is gone, to another one, which computes what was remembered from the steps alone.
Nothing depends on the results of an earlier pass, so nothing else is lost with a worker, and no chain of tasks grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, cast

from dkl.engine.blocks import Part, Rows
from dkl.engine.names import unique_key
from dkl.engine.passes import Pass, near, quiet_about_large_graphs
from dkl.engine.progress import Progress
from dkl.engine.protocol import Pending, S
from dkl.engine.tasks import walk_part


class ClusterWalk(Generic[S]):
    """The parts, the copies of the program by worker, and the worker of each part."""

    def __init__(
        self, client: Any, held: Any, task: str, parts: list[Part], rows: Rows,
        reached: Callable[[], AbstractContextManager[None]],
    ) -> None:  # fmt: skip
        self.client, self.held, self.task, self.parts = client, held, task, parts
        self.rows, self.reached = rows, reached
        self.copies: dict[str, Any] = {}
        self.homes: dict[int, str] = {}

    def sum(self, ahead: Any, progress: Progress) -> Pending[S]:
        """A future of the sums after these steps."""
        with self.reached(), quiet_about_large_graphs():
            steps = self.client.submit(_itself, ahead, key=unique_key("spread"))
            one = WalkPass(self.client, self.held, self.task, list(self.parts), self.rows.shared(self.parts), progress)
            one.copies, one.homes, one.steps = self.copies, self.homes, steps
            return cast(Pending[S], one.total())


class WalkPass(Pass):
    """One of its passes."""

    homes: dict[int, str]
    steps: Any

    def _take(self, address: str) -> Part | None:
        """A part that the worker had before, or one that has no worker, or of another worker if its share is small."""
        mine = [part for part in self.waiting if self.homes.get(part.first) == address]
        free = [part for part in self.waiting if self.homes.get(part.first) not in self.workers]
        found = next(iter(mine or free or self._surplus(address)), None)
        if found is not None:
            self.waiting.remove(found)
            self.homes[found.first] = address
        return found

    def _surplus(self, address: str) -> list[Part]:
        """Parts of the worker that has most, for one that has less than half its share: it has joined later."""
        owned = Counter(self.homes.values())
        share = sum(owned.values()) * self.workers[address] / sum(self.workers.values())
        if 2 * owned[address] >= share:
            return []
        most = max(self.workers, key=lambda other: owned[other] / self.workers[other])
        return [part for part in self.waiting if self.homes[part.first] == most]

    def _begin(self, part: Part, address: str) -> None:
        arguments = self.copies[address], part, self._needs(part), self.steps
        self._start(self.task, walk_part, arguments, part.n_rows, address, **near(address))


def _itself(value: Any) -> Any:
    return value
