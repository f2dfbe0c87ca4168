"""What tasks are called on Dask's dashboard: `dkl-gram`, `dkl-gradient`, `dkl-scale`, `dkl-predict` ...

The dashboard ends a name at the first word that is not all letters, or that has eight letters of which the first is one
of a to f (which looks like a hash to it); so names here are words of letters, and none is `evaluate`.
"""

from __future__ import annotations

from typing import Any

from dkl.engine.handles import Handle
from dkl.engine.protocol import Program
from dkl.engine.run_ids import random_part

KEPT = {"program": "gram", "pullback": "gradient", "trials": "scores"}
"""Tasks of programs that only the scheduler has, by the names they are kept under, where the two differ."""


def task_of(program: Program[Any, Any] | Handle[Any]) -> str:
    """The word for a pass of a program, or of one that the scheduler keeps."""
    return KEPT.get(program.name, program.name) if isinstance(program, Handle) else program.task


def unique_key(task: str) -> str:
    """A key that nobody else uses; it names the fit and the pass."""
    return f"dkl-{task}-{random_part()}"
