"""What dkl doctor says of answers that are made up here: each fault alone is found, and a good cluster has none."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest

from dkl.engine.findings import Finding, findings

GIB = 2**30
ONE = {
    "threads": 2, "memory_limit": 6 * GIB, "host": "a", "cores": 4, "machine_bytes": 64 * GIB,
    "container_bytes": 16 * GIB, "ulimit_bytes": None,
    "blas": [{"library": "openblas", "version": "0.3", "cpu": "Haswell", "threads": 1}],
}  # fmt: skip
A, B, C = "tls://10.0.0.1:1", "tls://10.0.0.2:1", "tls://10.0.0.3:1"


def good() -> dict[str, Any]:
    """Three workers, each on a machine of its own."""
    return {
        "scheduler_address": "tls://10.0.0.9:8786",
        "version_faults": {},
        "client": copy.deepcopy(ONE),
        "scheduler": {"round_trip_seconds": 0.001},
        "workers": {address: {**copy.deepcopy(ONE), "host": address} for address in (A, B, C)},
        "flops": {A: 40e9, B: 42e9, C: 38e9},
        "bytes_per_second": {A: 1e9, B: 9e8, C: 1.1e9},
        "places": [
            {
                "path": "s3://b/d.zarr",
                "is_written": False,
                "unreadable": {},
                "differs": [],
                "unwritable": {},
                "unseen": {},
            }
        ],
    }


def written(facts: dict) -> dict:
    """Its place is a checkpoint."""
    facts["places"][0]["is_written"] = True
    return facts["places"][0]


def test_a_good_cluster_has_none() -> None:
    """Nor has one without anything to compare."""
    assert findings(good()) == []
    alone = {**good(), "scheduler_address": "", "scheduler": None, "workers": {}, "flops": {"": 1e9}}
    assert findings({**alone, "bytes_per_second": {}}) == []


WRONG: dict[str, tuple[Callable[[dict], Any], str, tuple[str, ...]]] = {
    "version": (lambda f: f["version_faults"].update({A: "dkl 9.9"}), A, ("dkl 9.9", "install dkl")),
    "no workers": (lambda f: f.update(workers={}), "the cluster", ("no workers", "dask worker tls://10.0.0.9:8786")),
    "no answer": (lambda f: f["workers"].update({B: {"threads": 1, "fault": "no answer"}}), B, ("its log",)),
    "threads": (lambda f: [f["workers"][B].update(threads=8), f["flops"].update({B: 160e9})], B, ("--nthreads 4",)),
    "blas threads": (lambda f: f["workers"][B]["blas"][0].update(threads=4), B, ("OMP_NUM_THREADS=1",)),
    "no limit": (lambda f: f["workers"][B].update(memory_limit=0), B, ("no memory limit", "--memory-limit")),
    "limit of the container": (lambda f: f["workers"][B].update(memory_limit=16 * GIB), B, ("killed", "13.60 GiB")),
    "ulimit": (lambda f: f["workers"][B].update(ulimit_bytes=GIB), B, ("1.00 GiB", "ulimit -v unlimited")),
    "shared cores": (
        lambda f: [f["workers"][w].update(host="a", threads=3) for w in (A, B)], "a", ("6 threads on 4 cores",),
    ),
    "shared memory": (
        lambda f: [f["workers"][w].update(host="a", memory_limit=9 * GIB) for w in (A, B)], "a", ("18.00 GiB of",),
    ),
    "slow": (lambda f: f["flops"].update({C: 12e9}), C, ("6.0 GFLOP/s", "20.0 or more")),
    "slower by its threads": (lambda f: f["workers"][C].update(threads=4), C, ("9.5 GFLOP/s",)),
    "hangs": (lambda f: f["flops"].update({C: math.nan}), C, ("did not end",)),
    "link": (lambda f: f["bytes_per_second"].update({A: 1e8}), A, ("100 MB/s", "900 or more")),
    "unreadable": (lambda f: f["places"][0]["unreadable"].update({A: "403"}), A, ("read 's3://b/d.zarr'", "403")),
    "differs": (lambda f: f["places"][0]["differs"].append(B), B, ("other data lies at 's3://b/d.zarr'",)),
    "unwritable": (lambda f: written(f)["unwritable"].update({C: "read-only"}), C, ("cannot write", "read-only")),
    "unseen": (lambda f: written(f)["unseen"].update({C: 2}), C, ("does not see what 2 others", "shared disk")),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_each_fault_is_found_alone(name: str) -> None:
    """Who, what, and what to type; nobody else is blamed."""
    change, who, words = WRONG[name]
    facts = good()
    change(facts)
    (found,) = findings(facts)
    assert (found.level, found.who) == ("wrong", who)
    for word in words:
        assert word in found.what, found


NOTES: dict[str, tuple[Callable[[dict], Any], str]] = {
    "plain": (lambda f: f.update(scheduler_address="tcp://10.0.0.9:8786"), "TLS"),
    "far": (lambda f: f["scheduler"].update(round_trip_seconds=0.05), "50 ms away"),
    "another cpu": (lambda f: f["workers"][A]["blas"][0].update(cpu="Zen"), "2 with openblas 0.3 for Haswell; 1 with"),
    "a slow network": (lambda f: f.update(bytes_per_second=dict.fromkeys((A, B, C), 8e6)), "8.0 MB/s"),
    "data that is only read": (lambda f: f["places"][0]["unwritable"].update({C: "read-only"}), "a fit only reads it"),
}


@pytest.mark.parametrize("name", NOTES)
def test_what_is_only_worth_a_note(name: str) -> None:
    """Slower, or less safe; the exit code stays 0."""
    change, words = NOTES[name]
    facts = good()
    change(facts)
    found = findings(facts)
    assert {one.level for one in found} == {"note"}
    assert words in found[0].what


def test_loopback_needs_no_tls_and_wrong_comes_first() -> None:
    """A local cluster is nobody else's; notes stand last."""
    facts = good()
    facts["scheduler_address"] = "tcp://127.0.0.1:5"
    assert findings(facts) == []
    NOTES["far"][0](facts)
    WRONG["slow"][0](facts)
    assert [one.level for one in findings(facts)] == ["wrong", "note"]
    assert isinstance(findings(facts)[0], Finding)
