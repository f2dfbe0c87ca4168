"""Iterations of each start and of each later stage, counted from a history and said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Phase(NamedTuple):
    """A start, or a later stage, and how many iterations it took."""

    stage: int
    start: int
    rows: int
    iterations: int


def phases_of(columns: Mapping[str, Any], beginning: int = 1) -> list[Phase]:
    """Iterations of each start and then of each later stage: its rows of the history, less the one where it began.

    A row without a pass repeats another and counts for none. beginning=0: every row is a step.
    """
    names = ("stage", "start", "rows", "passes")
    stage, start, rows, passes = (np.asarray(columns[name], np.int64) for name in names)
    own = np.diff(passes, prepend=0) > 0
    phases = []
    for s, k in sorted(set(zip(stage.tolist(), start.tolist(), strict=True))):
        here = np.flatnonzero((stage == s) & (start == k) & own)
        phases.append(Phase(s, k, int(rows[here[0]]), len(here) - beginning))
    return phases


def phases_in_words(phases: Sequence[Phase]) -> str:
    """How many iterations there were, of which starts and stages."""
    total = sum(phase.iterations for phase in phases)
    text = f"{total:,} iteration{'s' * (total != 1)}"
    first, later = ([phase for phase in phases if bool(phase.stage) == late] for late in (False, True))
    if not later and len(first) == 1:
        return text
    each = " + ".join(f"{phase.iterations:,}" for phase in first)
    parts = [f"{each} {f'of {len(first)} starts ' if len(first) > 1 else ''}on {first[0].rows:,} rows"]
    parts += [f"then {phase.iterations:,} on {phase.rows:,} rows" for phase in later]
    return f"{text} ({', '.join(parts)})"
