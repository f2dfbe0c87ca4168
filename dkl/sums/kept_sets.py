"""Rows as a network is trained on them: prepared, their targets encoded, those held out apart.

shelf = ((T, y, weight) of rows that train, (T, y, weight) of rows held out)

Of several folds (`FoldSets`) one is held out, and the others train together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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


@dataclass(frozen=True)
class FoldSets:
    """A Preparation: the rows of all folds of a gram but one, and those of that one."""

    gram: GramProgram
    held: int

    def prepared(self, start: int, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
        """Arrays of the rows that train, and of those held out."""
        folds = KeptSets(self.gram).prepared(start, data)
        others = [fold for k, fold in enumerate(folds) if k != self.held]
        return tuple(_joined(arrays) for arrays in zip(*others, strict=True)), folds[self.held]


def _joined(arrays: tuple[Any, ...]) -> Any:
    """Rows of several arrays, one after the other."""
    if arrays[0] is None:
        return None
    if hasattr(arrays[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(arrays, format="csr")
    return np.concatenate(arrays)
