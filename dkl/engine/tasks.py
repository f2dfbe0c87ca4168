"""The tasks of a worker: one reads blocks, maps them and sums them; another merges finished sums.

All tasks are pure: what is lost with a worker can be recomputed from their arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, cast

from dkl.engine.blocks import Part
from dkl.engine.handles import Handle
from dkl.engine.part_counts import counted
from dkl.engine.protocol import Program, S, W, WalkProgram
from dkl.engine.row_readers import Range
from dkl.engine.threads import one_blas_thread

TASKS_PER_THREAD = 4
MOST_BLOCKS = 16
"""Blocks of one task: bounds what a lost worker loses, and the steps of progress."""
MOST_TASKS = 1024
"""Approximate tasks of one pass with many blocks."""


class Held(Generic[S, W]):
    """A program on a worker, with workspaces that its tasks reuse."""

    def __init__(self, program: Program[S, W]) -> None:
        self.program = program
        self.spaces: list[W] = []

    def __reduce__(self) -> tuple:
        return Held, (self.program,)

    @contextmanager
    def workspace(self) -> Iterator[W]:
        """A workspace that no other task uses."""
        try:
            space = self.spaces.pop()
        except IndexError:
            space = self.program.workspace()
        yield space
        self.spaces.append(space)


def held_from_scheduler(kept: Handle[Program[S, W]]) -> Held[S, W]:
    """A program that the scheduler keeps, fetched by the worker that runs this."""
    from distributed import get_client

    from dkl.engine import place

    return Held(get_client().run_on_scheduler(place.take, kept))


def copy_held(held: Held[S, W]) -> Held[S, W]:
    """The same program on another worker."""
    return held


def sum_part(held: Held[S, W], part: Part, shared: dict[Any, Any]) -> S:
    """The task of a pass: read, map and add the blocks of one part."""
    return _sum(held.program, held, part, shared)


def walk_part(held: Held[S, W], part: Part, shared: dict[Any, Any], ahead: Any) -> S:
    """The task of one pass of a walk; the program remembers the rows of the passes before."""
    return _sum(cast(WalkProgram[S, W], held.program).after(ahead), held, part, shared)


def _sum(program: Program[S, W], held: Held[S, W], part: Part, shared: dict[Any, Any]) -> S:
    sums = program.start()
    with counted(part.n_rows), one_blas_thread(), held.workspace() as workspace:
        for block, start, data in part.read(shared):
            program.add(sums, workspace, block, start, data)
    return sums


def merge_sums(*sums: S) -> S:
    """The sum of finished sums."""
    total = sums[0].copy()
    for other in sums[1:]:
        total.merge(other)
    return total


def share(blocks: Sequence[Range], threads: int) -> list[list[Range]]:
    """Consecutive groups of blocks: about TASKS_PER_THREAD per thread, smaller towards the end.

    The last `threads` groups hold one block, those before them two, then four, so that threads finish together.
    """
    size = min(MOST_BLOCKS, -(-len(blocks) // (TASKS_PER_THREAD * threads)))
    size = max(1, size, len(blocks) // MOST_TASKS)
    sizes, left, step = [], len(blocks), 1
    while left:
        for _ in range(threads):
            take = min(step, left)
            sizes.append(take)
            left -= take
            if not left:
                break
        step = min(size, 2 * step)
    cuts = [0]
    for take in reversed(sizes):
        cuts.append(cuts[-1] + take)
    return [list(blocks[a:b]) for a, b in itertools.pairwise(cuts)]


def consecutive(groups: list[list[Range]]) -> list[list[Range]]:
    """The same groups, cut where a block does not begin at the end of the one before."""
    found: list[list[Range]] = []
    for group in groups:
        for i, block in enumerate(group):
            if i and group[i - 1][1] == block[0]:
                found[-1].append(block)
            else:
                found.append([block])
    return found
