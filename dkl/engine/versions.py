"""The same dkl everywhere: client, scheduler and workers are compared before the first pass, new workers as they join.

Each process is asked for `dkl.engine.stamp:STAMP` through a function of the standard library, so that one without dkl,
or with another Python, can answer. Each is asked once. A pass is valid if every worker present at its end was asked.
"""

from __future__ import annotations

import pkgutil
from typing import Any
from weakref import WeakKeyDictionary

from dkl.engine.stamp import PACKAGES, STAMP

WHERE = "dkl.engine.stamp:STAMP"
MOST_SHOWN = 3
"""Processes that the error names."""

_asked: WeakKeyDictionary[Any, set] = WeakKeyDictionary()
_seen: WeakKeyDictionary[Any, set] = WeakKeyDictionary()


class VersionSkew(RuntimeError):
    """A process of the cluster has no dkl, another dkl, or another version that could change the result."""


def check_versions(client: Any) -> dict[str, Any]:
    """Refuse a cluster whose processes differ from this one; returns the scheduler's info of its workers by address."""
    info = client.scheduler_info(n_workers=-1)
    workers, asked = info.get("workers", {}), _asked.setdefault(client, set())
    faults: dict[str, str] = {}
    if info.get("id") not in asked:
        faults["the scheduler"] = _fault_of_scheduler(client)
    new = {address: (address, w.get("local_directory")) for address, w in workers.items()}
    new = {address: name for address, name in new.items() if name not in asked}
    if new:
        faults |= {f"the worker {address}": fault for address, fault in _fault_of(client, list(new)).items()}
    wrong = {who: fault for who, fault in faults.items() if fault}
    if wrong:
        raise VersionSkew(_sentence(wrong))
    asked.add(info.get("id"))
    asked.update(name for address, name in new.items() if f"the worker {address}" in faults)
    return workers


def threads_of(client: Any) -> dict[str, int]:
    """Threads of each worker by address; newcomers are asked for their versions. Cheap enough for every second.

    The scheduler's whole info is some kilobytes for each worker, so it is fetched only if an address is new.
    """
    threads: dict[str, int] = client.nthreads()
    known = _seen[client] = _seen.get(client, set()) & threads.keys()  # another may come to an address that was left
    if threads.keys() - known:
        threads = {address: worker["nthreads"] for address, worker in check_versions(client).items()}
        _seen[client] = set(threads)
    return threads


OLD = "an older dkl"


def version_faults(client: Any, addresses: list[str]) -> dict[str, str]:
    """What differs from this process on the scheduler ("the scheduler") and on workers (by address), if anything."""
    faults = {"the scheduler": _fault_of_scheduler(client)}
    if addresses:
        faults |= _fault_of(client, addresses)
    return {who: fault for who, fault in faults.items() if fault}


def _fault_of_scheduler(client: Any) -> str:
    """The fault of the scheduler, empty if none."""
    fault = _fault(_ask_scheduler(client, WHERE), ("python", "numpy", "dask", "distributed"))
    return _older(_ask_scheduler(client, "dkl:__version__")) if fault == OLD else fault


def _fault_of(client: Any, addresses: list[str]) -> dict[str, str]:
    """The fault of each worker, empty if none; workers that did not answer are left out and asked again."""
    answers = client.run(pkgutil.resolve_name, WHERE, workers=addresses, on_error="return")
    faults = {a: _fault(answer, ("python", *PACKAGES)) for a, answer in answers.items() if not _is_silent(answer)}
    old = [address for address, fault in faults.items() if fault == OLD]
    if old:
        versions = client.run(pkgutil.resolve_name, "dkl:__version__", workers=old, on_error="return")
        faults |= {address: _older(versions.get(address)) for address in old}
    return faults


def _ask_scheduler(client: Any, what: str) -> Any:
    try:
        return client.run_on_scheduler(pkgutil.resolve_name, what)
    except (ImportError, AttributeError) as error:
        return error
    except ValueError:  # a managed scheduler that runs no functions cannot be asked
        return None


def _is_silent(answer: Any) -> bool:
    """Whether a worker left before it answered."""
    return isinstance(answer, Exception) and not isinstance(answer, (ImportError, AttributeError))


def _fault(answer: Any, names: tuple[str, ...]) -> str:
    """What differs from this process, in words; empty if nothing does."""
    if isinstance(answer, ImportError) and answer.name in (None, "dkl"):
        return "no dkl"
    if isinstance(answer, Exception):
        return OLD
    if answer is None:
        return ""
    ours, theirs = STAMP, answer
    if ours["dkl"] and theirs["dkl"] and ours["dkl"] != theirs["dkl"]:
        return f"dkl {theirs['dkl']}"
    if ours["source"] and theirs["source"] and ours["source"] != theirs["source"]:
        return f"dkl {theirs['dkl']} with other source files ({theirs['source']}, here {ours['source']})"
    other = [name for name in names if _series(ours[name]) != _series(theirs[name])]
    return ", ".join(f"{name} {theirs[name] or 'not at all'} (here {ours[name]})" for name in other)


def _older(answer: Any) -> str:
    return f"dkl {answer}" if isinstance(answer, str) and answer != STAMP["dkl"] else OLD


def _series(version: str) -> list[str]:
    """Major and minor version: changes of these may change the bits of a sum or the contents of a pickle."""
    return version.split(".")[:2]


def _sentence(wrong: dict[str, str]) -> str:
    shown = [f"{who} has {fault}" for who, fault in list(wrong.items())[:MOST_SHOWN]]
    more = f", and {len(wrong) - MOST_SHOWN} more differ" if len(wrong) > MOST_SHOWN else ""
    if any(" (here " in fault for fault in wrong.values()):
        what = "the same versions everywhere"
    else:
        what = f"dkl {STAMP['dkl']}, as here, on every worker and on the scheduler".replace("dkl ,", "the same dkl,")
    return f"{'; '.join(shown)}{more}; install {what}, and restart them"
