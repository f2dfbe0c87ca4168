"""Results of row blocks in order, with a few in flight: for results that are written, not summed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dkl.engine.blocks import Part, Rows
from dkl.engine.progress import Progress
from dkl.engine.tasks import Held
from dkl.engine.threads import one_blas_thread
from dkl.features.rows import Refusal

ROWS = 16384
"""Approximate rows of a block."""


def stream_rows(engine: Any, function: Callable[[Any], Any], rows: Rows, progress: Progress) -> Iterator[Any]:
    """function(X) of every block, in order."""
    parts = rows.cut([[block] for block in rows.blocks(ROWS)])
    progress.begin(rows.n_rows)
    start = _on_cluster if engine.name == "cluster" else _embedded
    try:
        for part, result in zip(parts, start(engine, function, rows, parts), strict=True):
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


def call_held(held: Held, part: Part, shared: dict) -> Any:
    """The same with a function that is held on the worker."""
    return call_part(held.program, part, shared)


def _embedded(engine: Any, function: Any, rows: Rows, parts: list[Part]) -> Iterator[Any]:
    import dask

    delayed, running = rows.shared(parts), deque[Any]()

    def work(part: Part) -> Any:
        values = dask.compute(*(delayed[key] for key in part.needs), scheduler="synchronous")
        return call_part(function, part, dict(zip(part.needs, values, strict=True)))

    with ThreadPoolExecutor(engine.threads, thread_name_prefix="dkl") as pool:
        try:
            for part in parts:
                running.append(pool.submit(work, part))
                if len(running) > 2 * engine.threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def _on_cluster(engine: Any, function: Any, rows: Rows, parts: list[Part]) -> Iterator[Any]:
    from dkl.engine.names import unique_key
    from dkl.engine.passes import quiet_about_large_graphs
    from dkl.engine.versions import check_versions

    client, running = engine.client, deque[Any]()
    delayed = rows.shared(parts)
    with quiet_about_large_graphs():
        engine.wait_for_workers()
        held = client.submit(Held, function, key=unique_key("spread"))
        for part in parts:
            needs = dict(zip(part.needs, client.compute([delayed[key] for key in part.needs]), strict=True))
            running.append(client.submit(call_held, held, part, needs, key=unique_key("predict")))
            if len(running) > 2 * max(1, engine.threads):
                yield engine.fetch(running.popleft())
        while running:
            yield engine.fetch(running.popleft())
        check_versions(client)
