"""Ask every process of a cluster, or this one alone, what it is and how fast: the findings are made from the answers.

Workers are asked by tasks of their own, all at once: one that is busy, or hangs, is one that did not answer. Links to
the scheduler are measured one after the other.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dkl.engine import examine
from dkl.engine.names import unique_key
from dkl.engine.versions import version_faults

PATIENCE = 30.0
"""Seconds in which a worker must answer."""
SMALL, LARGE = 2**20, 2**24
"""Bytes that measure a link: the large number only where the small one took less than FAST seconds."""
FAST = 0.1
TRIES = 3
"""Times that a fast link is measured; the best one counts, because what disturbs it on a busy machine passes."""
NO_ANSWER = "no answer"


class Somewhere:
    """The workers that can be asked; one without a cluster is this process."""

    def __init__(self, client: Any = None) -> None:
        self.client = client
        info = {} if client is None else client.scheduler_info(n_workers=-1)
        self.workers: dict[str, dict[str, Any]] = info.get("workers", {})
        self.versions = {} if client is None else version_faults(client, list(self.workers))
        self.able = [address for address in self.workers if address not in self.versions]

    @property
    def where(self) -> str:
        """The address of the scheduler, or nothing."""
        return "" if self.client is None else str(self.client.scheduler.address)

    def ask(self, function: Callable[..., Any], *args: Any, each: Sequence[Any] | None = None) -> dict[str, Any]:
        """function(*args), or function(*args, each[i]), by every able worker; a text says why there is no answer."""
        if self.client is None:
            return {}
        more = [()] * len(self.able) if each is None else [(one,) for one in each]
        futures = {
            address: self._submit(function, address, *args, *own) for address, own in zip(self.able, more, strict=True)
        }
        return self._answers(futures)

    def _submit(self, function: Callable[..., Any], address: str, *args: Any) -> Any:
        return self.client.submit(
            function, *args, key=unique_key("doctor"), workers=[address], allow_other_workers=False, retries=0
        )

    def _answers(self, futures: dict[Any, Any]) -> dict[Any, Any]:
        deadline, found = time.monotonic() + PATIENCE, {}
        for name, future in futures.items():
            try:
                found[name] = future.result(timeout=max(0.1, deadline - time.monotonic()))
            except Exception as error:  # of dask, of the worker, or none in time
                found[name] = NO_ANSWER if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
        return found

    def facts(self) -> dict[str, Any]:
        """Of the client, the scheduler and the workers; None of a scheduler that cannot be asked."""
        found: dict[str, Any] = {"client": examine.facts(), "scheduler": None, "workers": {}}
        if self.client is None:
            return found
        if "the scheduler" not in self.versions:
            found["scheduler"] = self._of_scheduler()
        answers = self.ask(examine.facts)
        for address, info in self.workers.items():
            answer = answers.get(address)
            own = answer if isinstance(answer, dict) else {"fault": answer} if answer is not None else {}
            found["workers"][address] = {"threads": info["nthreads"], "memory_limit": info["memory_limit"], **own}
        return found

    def _of_scheduler(self) -> dict[str, Any] | None:
        try:
            facts: dict[str, Any] = self.client.run_on_scheduler(examine.facts)
            times = []
            for _ in range(5):
                begun = time.perf_counter()
                self.client.run_on_scheduler(int)
                times.append(time.perf_counter() - begun)
        except ValueError:  # a managed scheduler that runs no functions
            return None
        return {**facts, "round_trip_seconds": statistics.median(times)}

    def speeds(self) -> dict[str, float]:
        """Flops per second of all threads of a worker at once; nan of one that did not answer."""
        if self.client is None:
            from dkl.engine.threads import thread_count

            with ThreadPoolExecutor(thread_count()) as pool:
                return {"": sum(pool.map(lambda _: examine.speed(), range(thread_count())))}
        futures = {
            (address, i): self._submit(examine.speed, address)
            for address in self.able
            for i in range(self.workers[address]["nthreads"])
        }
        answers = self._answers(futures)
        found = dict.fromkeys(self.able, 0.0)
        for (address, _), rate in answers.items():
            found[address] += rate if isinstance(rate, float) else math.nan
        return found

    def links(self) -> dict[str, float]:
        """Bytes per second from each worker to the scheduler, as sums travel; empty if it cannot be asked."""
        found: dict[str, float] = {}
        if self.client is None or "the scheduler" in self.versions:
            return found
        for address in self.able:
            rate = self._link(address, SMALL)
            again = [self._link(address, LARGE) for _ in range(TRIES)] if rate > SMALL / FAST else []
            found[address] = max((one for one in again if not math.isnan(one)), default=rate)
        return found

    def _link(self, address: str, size: int) -> float:
        from distributed import wait

        future = self._submit(examine.parcel, address, size)
        try:
            wait([future], timeout=PATIENCE)
        except TimeoutError:
            return math.nan
        seconds = self.client.run_on_scheduler(examine.pull, future.key)
        return size / seconds
