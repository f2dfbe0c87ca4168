"""Rows as a network is trained on them: prepared, their targets encoded, those held out apart.

shelf = ((T, y, weight) of rows that train, (T, y, weight) of rows held out)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dkl.sums.gram import GramProgram


@dataclass
class _Note:
    """Where a refused row is noted."""

    refusal: tuple[int, str] | None = None


@dataclass(frozen=True)
class KeptSets:
    """A Preparation (engine/kept.py): the rows of each fold of a gram, as its features see them."""

    gram: GramProgram

    def prepared(self, start: int, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
        """Arrays of each fold; a row that cannot be taken is a ValueError that names it."""
        note, found = _Note(), {}
        for k, T, y, weight in self.gram.by_fold(note, start, data):
            found[k] = T, y, weight
        if note.refusal is not None:
            raise ValueError(note.refusal[1])
        nothing = tuple(None if a is None else a[:0] for a in next(iter(found.values())))
        return tuple(found.get(k, nothing) for k in range(self.gram.folds))
