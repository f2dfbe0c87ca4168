"""What is wrong with a cluster, and what to change: made from the answers of its processes alone.

A finding is `wrong` if a fit would fail, stall or be killed, and a `note` if it would only be slower or less safe.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from dkl.engine.examine import blas_threads
from dkl.engine.memory import gib
from dkl.engine.preload import worker_faults
from dkl.engine.stamp import STAMP

SLOW = 0.6
"""Share of the median speed of a thread below which a worker is slow."""
SLOW_LINK = 0.25
"""Share of the median of the links below which one is slow."""
LEAST_LINK = 10e6
"""Bytes per second to the scheduler below which sums of some thousand features take minutes."""
FAR_SECONDS = 0.02
"""Round trip above which a client is far from its scheduler."""
LOOPBACK = ("127.", "localhost", "[::1]", "inproc")


class Finding(NamedTuple):
    """wrong or note; who; what, and what to type."""

    level: str
    who: str
    what: str


def findings(facts: Mapping[str, Any]) -> list[Finding]:
    """Everything that is wrong, then everything worth a note, of what dkl doctor has collected."""
    found = [*_versions(facts), *_workers(facts), *_hosts(facts), *_blas(facts), *_safety(facts)]
    found += [*_speeds(facts), *_links(facts), *_places(facts)]
    return sorted(found, key=lambda one: one.level != "wrong")


def _versions(facts: Mapping[str, Any]) -> list[Finding]:
    """The same dkl everywhere."""
    remedy = f"install dkl {STAMP['dkl']} and the versions of this client there, and restart it"
    return [Finding("wrong", who, f"it has {fault}; {remedy}") for who, fault in facts["version_faults"].items()]


def _workers(facts: Mapping[str, Any]) -> list[Finding]:
    """Each worker: that it answers, its threads, its memory."""
    if facts["scheduler_address"] and not facts["workers"]:
        start = f"dask worker {facts['scheduler_address']} --preload dkl.engine.preload"
        return [Finding("wrong", "the cluster", f"it has no workers; start some: {start}")]
    found = []
    for address, one in facts["workers"].items():
        if one.get("fault"):
            found.append(Finding("wrong", address, f"{one['fault']}: it is busy, or hangs; look at its log"))
        if "cores" not in one:
            continue
        around = one["cores"], blas_threads(one), one["container_bytes"], one["machine_bytes"]
        found += [
            Finding("wrong", address, fault) for fault in worker_faults(one["threads"], one["memory_limit"], *around)
        ]
        ulimit = one["ulimit_bytes"]
        if ulimit is not None and ulimit < (one["memory_limit"] or one["container_bytes"]):
            what = f"ulimit -v allows it {gib(ulimit)}, less than its memory limit; start it with ulimit -v unlimited"
            found.append(Finding("wrong", address, what))
    return found


def _hosts(facts: Mapping[str, Any]) -> list[Finding]:
    """Workers that share a machine share its cores and its memory."""
    by_host = defaultdict(list)
    for one in facts["workers"].values():
        if "host" in one:
            by_host[one["host"]].append(one)
    found = []
    for host, some in by_host.items():
        threads, cores = sum(one["threads"] for one in some), some[0]["cores"]
        limits, memory = sum(one["memory_limit"] or 0 for one in some), some[0]["container_bytes"]
        if len(some) > 1 and threads > cores:
            what = f"{len(some)} workers have {threads} threads on {cores} cores; start fewer, or with fewer threads"
            found.append(Finding("wrong", host, what))
        if len(some) > 1 and limits > memory:
            what = f"its {len(some)} workers may take {gib(limits)} of {gib(memory)}; lower --memory-limit"
            found.append(Finding("wrong", host, what))
    return found


def _blas(facts: Mapping[str, Any]) -> list[Finding]:
    """Another BLAS, or another kind of CPU, gives other bits."""
    kinds = Counter(
        ", ".join(sorted({f"{b['library']} {b['version']} for {b['cpu']}" for b in one["blas"]}))
        for one in facts["workers"].values()
        if "blas" in one
    )
    if len(kinds) < 2:
        return []
    said = "; ".join(f"{count} with {kind}" for kind, count in kinds.most_common())
    return [Finding("note", "the workers", f"their BLAS differs, so a second fit may differ in the last bits: {said}")]


def _safety(facts: Mapping[str, Any]) -> list[Finding]:
    """Whoever reaches a plain port can run code; and how far the client is."""
    address, found = facts["scheduler_address"], []
    host = address.partition("://")[2]
    if address and not address.startswith(("tls://", "wss://")) and not host.startswith(LOOPBACK):
        what = (
            "it speaks without TLS, so whoever reaches its port can run code; use dkl certificates, or a closed network"
        )
        found.append(Finding("note", address, what))
    trip = (facts["scheduler"] or {}).get("round_trip_seconds", 0.0)
    if trip > FAR_SECONDS:
        what = f"it is {1000 * trip:.0f} ms away, and every pass waits for some round trips; run dkl near the cluster"
        found.append(Finding("note", "the client", what))
    return found


def _speeds(facts: Mapping[str, Any]) -> list[Finding]:
    """A slow worker holds up every pass."""
    each = {a: rate / facts["workers"][a]["threads"] for a, rate in facts["flops"].items() if a in facts["workers"]}
    found = [
        Finding("wrong", address, "it did not end the calibration: it is busy, or hangs; try again when it is idle")
        for address, rate in each.items()
        if math.isnan(rate)
    ]
    known = {address: rate for address, rate in each.items() if not math.isnan(rate)}
    if len(known) < 2:
        return found
    middle = statistics.median(known.values())
    for address, rate in known.items():
        if rate < SLOW * middle:
            what = f"a thread has {rate / 1e9:.1f} GFLOP/s, where half of the workers have {middle / 1e9:.1f} or more; "
            found.append(Finding("wrong", address, what + "see what else runs on its machine, or stop it"))
    return found


def _links(facts: Mapping[str, Any]) -> list[Finding]:
    """Sums of every pass go to the scheduler."""
    known = {address: rate for address, rate in facts["bytes_per_second"].items() if not math.isnan(rate)}
    middle, found = statistics.median(known.values()) if known else 0.0, []
    for address, rate in known.items():
        if rate < SLOW_LINK * middle:
            what = f"{rate / 1e6:.0f} MB/s to the scheduler, where half of the workers have {middle / 1e6:.0f} or more"
            found.append(Finding("wrong", address, f"{what}; see its network, or stop it"))
        elif rate < LEAST_LINK:
            what = f"{rate / 1e6:.1f} MB/s to the scheduler: sums of 3,000 features take {72e6 / rate:.0f} s of it"
            found.append(Finding("note", address, what))
    return found


def _places(facts: Mapping[str, Any]) -> list[Finding]:
    """The data must be the same for all, and the checkpoint one place that all can write to."""
    found = []
    for place in facts["places"]:
        path, needed = place["path"], place["is_written"]
        for who, fault in place["unreadable"].items():
            found.append(Finding("wrong", who or "this process", f"it cannot read {path!r}: {fault}"))
        if place["differs"]:
            others = ", ".join(who or "this process" for who in place["differs"])
            what = (
                f"other data lies at {path!r} than for most workers; use a path or URL that means the same everywhere"
            )
            found.append(Finding("wrong", others, what))
        for who, fault in place["unwritable"].items():
            why = "a checkpoint is written there" if needed else "a fit only reads it; models and answers go elsewhere"
            what = f"it cannot write at {path!r} ({why}): {fault}"
            found.append(Finding("wrong" if needed else "note", who or "this process", what))
        for who, count in place["unseen"].items():
            what = f"it does not see what {count} others wrote at {path!r}; give all of them one shared disk or a URL"
            found.append(Finding("wrong" if needed else "note", who, what))
    return found
