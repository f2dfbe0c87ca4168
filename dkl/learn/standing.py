"""Where learning stands, and how that is written down: arrays and a few plain values, enough to go on bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.learn.history import COLUMNS, History
from dkl.learn.search import Best, Search
from dkl.solvers.lbfgs import Descent
from dkl.store.checkpoint import Checkpoint

VECTORS = ("x", "gradient", "trial", "direction", "lower", "upper")
PAIRS = ("steps", "changes")
SCALARS = ("value", "length", "iteration", "decrease", "stalled")
BEST = ("merit", "unseen", "value", "error", "log_lam")


@dataclass
class Standing:
    """All that a later process needs to go on: stage, start, ends of earlier starts, the search, time and passes."""

    stage: int = 0
    start: int = 0
    ends: list[Search] = field(default_factory=list)
    search: Any = None  # or its handle
    history: History = field(default_factory=History)
    seconds: float = 0.0
    passes: int = 0
    reason: str = ""
    penalised: Search | None = None  # where sigma_l1 ended, while its bias is being removed
    refit: tuple[float, float] | None = None  # errors with sigma_l1 and without, on the inputs that it selected
    skipped: int = 0  # rungs of the ladder that some fold has no weight on
    limits: dict = field(default_factory=dict)  # max_iter, tol and max_time it was learned with last


def written(at: Standing, search: Any, write: Callable[[dict, str, Any], None] | None = None) -> tuple[dict, dict]:
    """A standing as attributes and few arrays, as each is a file; numbers that may be infinite stand in an array.

    `write` adds the arrays of a search under a name; None: of a descent.
    """
    write = write or _write_search
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for i, end in enumerate(at.ends):
        write(arrays, f"end{i}", end)
    if search is not None:
        write(arrays, "search", search)
    if at.penalised is not None:
        write(arrays, "penalised", at.penalised)
    columns = at.history.arrays()
    arrays["history"] = (("column", "iteration"), np.stack([columns[name] for name in COLUMNS]))
    arrays["sigma"] = (("iteration", "input"), columns["sigma"])
    about = {"stage": at.stage, "start": at.start, "ends": len(at.ends), "passes": at.passes, "reason": at.reason}
    about |= {"seconds": at.seconds, "under_way": search is not None, "skipped": at.skipped, "limits": at.limits}
    if at.refit is not None:
        arrays["refit"] = (("number",), np.array(at.refit))
    return {**about, "penalised": at.penalised is not None}, arrays


def open_standing(checkpoint: Checkpoint | None, read: Callable[[dict, str], Any] | None = None) -> Standing:
    """Where learning stood when it was last written down; `read` takes a search from the arrays."""
    read = read or _read_search
    known = None if checkpoint is None else checkpoint.open_step()
    if known is None:
        if checkpoint is not None and checkpoint.newest():
            path = checkpoint.folder.path
            raise ValueError(f"checkpoint {path!r} is damaged: it has sums but not what was learned; remove it")
        return Standing()
    _, about, arrays = known
    ends = [read(arrays, f"end{i}") for i in range(about["ends"])]
    search = read(arrays, "search") if about["under_way"] else None
    history = History({**dict(zip(COLUMNS, arrays["history"], strict=True)), "sigma": arrays["sigma"]})
    names = ("stage", "start", "seconds", "passes", "reason", "skipped")
    values = {name: about[name] for name in names} | {"limits": about.get("limits", {})}
    penalised = read(arrays, "penalised") if about["penalised"] else None
    refit = (float(arrays["refit"][0]), float(arrays["refit"][1])) if "refit" in arrays else None
    return Standing(ends=ends, search=search, history=history, penalised=penalised, refit=refit, **values)


def allows_more(at: Standing, limits: dict) -> bool:
    """Whether learning that has ended may go on: it ended at a limit that is now further away."""
    name = "tol" if at.reason == "converged" else at.reason
    before, now = at.limits.get(name), limits.get(name)
    if before is None:  # nothing has ended, or a version that did not note limits wrote this
        return False
    return now is None or (now < before if name == "tol" else now > before)


def _write_search(arrays: dict, name: str, search: Search) -> None:
    descent = search.descent
    for part, names, axes in (("vectors", VECTORS, ()), ("pairs", PAIRS, ("pair",))):
        stacked = np.stack([getattr(descent, each) for each in names])
        arrays[f"{name}_{part}"] = (("part", *axes, "parameter"), stacked)
    log_lam = np.nan if search.log_lam is None else search.log_lam
    numbers = [float(getattr(descent, part)) for part in SCALARS]
    numbers += [log_lam, search.error, float(search.small), search.unseen, float(search.since), search.stretch]
    arrays[f"{name}_scalars"] = (("number",), np.array(numbers))
    if search.best is not None:
        arrays[f"{name}_best_x"] = (("parameter",), search.best.x)
        arrays[f"{name}_best"] = (("number",), np.array([getattr(search.best, part) for part in BEST]))


def _read_search(arrays: dict[str, np.ndarray], name: str) -> Search:
    first, (log_lam, error, small, unseen, since, stretch) = np.split(arrays[f"{name}_scalars"], [len(SCALARS)])
    value, length, iteration, decrease, stalled = first.tolist()
    numbers: dict[str, Any] = {"value": value, "length": length, "iteration": int(iteration), "decrease": decrease}
    stacked = [*zip(VECTORS, arrays[f"{name}_vectors"], strict=True), *zip(PAIRS, arrays[f"{name}_pairs"], strict=True)]
    parts: dict[str, Any] = {part: values.copy() for part, values in stacked}
    descent = Descent(**parts, **numbers, stalled=bool(stalled))
    best = None
    if f"{name}_best" in arrays:
        best = Best(arrays[f"{name}_best_x"].copy(), *arrays[f"{name}_best"].tolist())
    known = None if np.isnan(log_lam) else float(log_lam)
    return Search(descent, known, float(error), int(small), float(unseen), best, int(since), float(stretch))
