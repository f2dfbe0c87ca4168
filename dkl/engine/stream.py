"""Results of row blocks in order, with a few in flight: for results that are written, not summed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

from dkl.engine.blocks import Part, Rows
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.engine.row_readers import Range
from dkl.engine.threads import one_blas_thread
from dkl.features.rows import Refusal

if TYPE_CHECKING:
    from dkl.engine.cluster import Cluster

ROWS = 16384
"""Approximate rows of a block."""


def stream_rows(engine: Engine, function: Callable[[Any], Any], rows: Rows, progress: Progress) -> Iterator[Any]:
    """function(X) of every block, in order."""
    parts = rows.cut([[block] for block in rows.blocks(ROWS)])
    progress.begin(rows.n_rows)
    if engine.name == "cluster":
        results = _on_cluster(cast("Cluster", engine), function, rows, parts)
    else:
        results = _embedded(engine.threads, function, rows, parts)
    try:
        for part, result in zip(parts, results, strict=True):
            yield result
            progress.advance(part.n_rows)
    finally:
        progress.end()


def call_part(function: Callable[[Any], Any], part: Part, shared: dict) -> Any:
    """The task of one block."""
    [(_, start, data)] = part.read(shared)
    with one_blas_thread():
        try:
            return function(data[0])
        except Refusal as refusal:
            raise ValueError(refusal.at(start)[1]) from None


class Carried:
    """A function that a worker holds; it travels once, as the result of a task."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function


def call_carried(carried: Carried, part: Part, shared: dict) -> Any:
    """The same with a function that a worker holds."""
    return call_part(carried.function, part, shared)


class Written:
    """A function that a worker holds, and what it does with the results, which stay there."""

    def __init__(self, function: Callable[[Any], Any], write: Callable[[int, Any], int]) -> None:
        self.function, self.write = function, write


def write_part(held: Written, part: Part, shared: dict) -> int:
    """The task of one block whose result is written where it is computed."""
    return held.write(part.blocks[0][0], call_part(held.function, part, shared))


def write_rows(
    engine: Engine, function: Callable[[Any], Any], rows: Rows, write: Callable[[int, Any], int],
    blocks: Sequence[Range], done: set[int], progress: Progress,
) -> None:  # fmt: skip
    """write(first row, function(X)) for every block that is not done: of Zarr rows by the workers of a cluster, and no
    result comes here; without one by this thread, in order.
    """
    parts = rows.cut([[block] for block in blocks if block[0] not in done])
    progress.begin(rows.n_rows)
    progress.advance(rows.n_rows - sum(part.n_rows for part in parts))
    if engine.name == "cluster":
        counts = _written(cast("Cluster", engine), Written(function, write), parts)
    else:
        results = _embedded(engine.threads, function, rows, parts)
        counts = (write(part.blocks[0][0], found) for part, found in zip(parts, results, strict=True))
    try:
        for count in counts:
            progress.advance(count)
    finally:
        progress.end()


def _written(engine: Cluster, task: Written, parts: list[Part]) -> Iterator[int]:
    """How many rows the workers have written, as they finish."""
    from dkl.engine.crew import Crew

    engine.wait_for_workers()
    crew = Crew(engine.client)
    held = crew.hold(task)
    for _, count in crew.run("write", write_part, [(held, part, {}) for part in parts]):
        yield count


def _embedded(threads: int, function: Callable[[Any], Any], rows: Rows, parts: list[Part]) -> Iterator[Any]:
    import dask

    delayed, running = rows.shared(parts), deque[Any]()

    def work(part: Part) -> Any:
        values = dask.compute(*(delayed[key] for key in part.needs), scheduler="synchronous")
        return call_part(function, part, dict(zip(part.needs, values, strict=True)))

    with ThreadPoolExecutor(threads, thread_name_prefix="dkl") as pool:
        try:
            for part in parts:
                running.append(pool.submit(work, part))
                if len(running) > 2 * threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def _on_cluster(engine: Cluster, function: Callable[[Any], Any], rows: Rows, parts: list[Part]) -> Iterator[Any]:
    from dkl.engine.names import unique_key
    from dkl.engine.passes import quiet_about_large_graphs
    from dkl.engine.versions import check_versions

    client, running = engine.client, deque[Any]()
    delayed = rows.shared(parts)
    with quiet_about_large_graphs():
        engine.wait_for_workers()
        held = client.submit(Carried, function, key=unique_key("spread"))
        for part in parts:
            needs = dict(zip(part.needs, client.compute([delayed[key] for key in part.needs]), strict=True))
            running.append(client.submit(call_carried, held, part, needs, key=unique_key("predict")))
            if len(running) > 2 * max(1, engine.threads):
                yield engine.fetch(running.popleft())
        while running:
            yield engine.fetch(running.popleft())
        check_versions(client)
