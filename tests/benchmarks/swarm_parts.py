"""What the simulated cluster of `swarm` runs: blocks that sleep, sums of the real size, and processes of many workers.

python -m tests.benchmarks.swarm_parts tcp://scheduler:port WORKERS     one process, so many workers of one thread
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass

import numpy as np

from dkl.cost import Cost
from dkl.solvers.factor import factorise
from dkl.sums.symmetric import packed_size, unpack

THREAD_FLOPS = 4e10
"""Float32 operations of one thread in a second, features and products together."""
INPUTS, CLASSES = 1000, 1000


def row_seconds(d: int) -> float:
    """Seconds of one row on one thread: projections to d / 2 frequencies, and half a gram with whole leaves."""
    return (INPUTS * d + d * (d + 512)) / THREAD_FLOPS


@dataclass
class SwarmSums:
    """Rows that were added, half a gram and the cross products, as a ridge fit has them."""

    rows: np.ndarray  # (1,)
    gram: np.ndarray  # (packed half of d x d,)
    cross: np.ndarray  # (c, d)
    last: float = 0.0  # when the last block ended
    refusal: tuple[int, str] | None = None

    def merge(self, other: SwarmSums) -> None:
        """self += other."""
        self.rows += other.rows
        self.gram += other.gram
        self.cross += other.cross
        self.last = max(self.last, other.last)

    def copy(self) -> SwarmSums:
        """A record that can be added to."""
        return SwarmSums(self.rows.copy(), self.gram.copy(), self.cross.copy(), self.last)


@dataclass(frozen=True)
class SwarmProgram:
    """A pass whose blocks sleep for as long as real ones would compute, `slower` times as long."""

    d: int
    slower: float = 1.0
    task = "gram"
    rows_wanted = 1

    def cost(self) -> Cost:
        """Not asked for."""
        raise NotImplementedError

    def start(self) -> SwarmSums:
        """Zero."""
        return SwarmSums(np.zeros(1), np.zeros(packed_size(self.d)), np.zeros((CLASSES, self.d)))

    def workspace(self) -> None:
        """Nothing."""

    def add(self, sums: SwarmSums, workspace: None, block: int, start: int, data: tuple) -> None:
        """Sleep; every memory page of the sums is written to, and every number of rows is counted in each."""
        begun, rows = time.perf_counter(), len(data[0])
        sums.rows += rows
        sums.gram[:: 4096 // 8] += rows
        sums.cross.reshape(-1)[:: 4096 // 8] += rows
        time.sleep(max(0.0, self.slower * rows * row_seconds(self.d) - (time.perf_counter() - begun)))
        sums.last = time.time()


def weights_of(sums: SwarmSums, rows: int) -> tuple[float, float]:
    """The real solve, d x d for all classes, of a system that the sums shift; when the last block ended, and |w|."""
    if sums.rows[0] != rows or sums.gram[0] != rows or sums.cross[0, 0] != rows:
        raise ValueError(f"{sums.rows[0]:g} rows were added, not {rows}: a part was lost or added twice")
    gram = unpack(sums.gram, len(sums.cross[0]))
    gram /= rows
    weights = factorise(gram, 1e4).solve(sums.cross.T / rows)
    return sums.last, float(np.linalg.norm(weights))


async def host(scheduler: str, workers: int) -> None:
    """Workers of one thread each on one event loop, until the scheduler closes them."""
    from distributed import Worker

    many = [Worker(scheduler, nthreads=1, memory_limit=0, dashboard=False) for _ in range(workers)]
    await asyncio.gather(*many)
    await asyncio.gather(*(worker.finished() for worker in many))


if __name__ == "__main__":
    asyncio.run(host(sys.argv[1], int(sys.argv[2])))
