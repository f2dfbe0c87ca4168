"""What y is, and how it is stored; channels that have one must agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Coded, SourceError

Y_DTYPES = {"text": "int32", "classification": "int64", "regression": "float64"}


@dataclass(frozen=True)
class Target:
    """The kind of y: text (class names), classification (integers), regression, or none."""

    kind: str
    name: str | None = None
    classes: list[str] = field(default_factory=list)

    @property
    def has_classes(self) -> bool:
        """Whether y holds classes."""
        return self.kind in ("text", "classification")

    def encode(self, y: Any) -> np.ndarray:
        """y as it is stored."""
        if isinstance(y, Coded):
            place = {name: i for i, name in enumerate(self.classes)}
            return np.array([place[name] for name in y.names] or [0], np.int32)[y.codes]
        kept = y if self.kind == "regression" else np.where(np.isnan(y), 0.0, y)  # rows without a target are dropped
        return kept.astype(Y_DTYPES[self.kind])


def merge_targets(start: int, pieces: list[Batch], names: list[str]) -> Any:
    """The target of all channels; refused if they disagree."""
    found: Any = None
    for batch, name in zip(pieces, names, strict=True):
        if batch.y is None:
            continue
        if found is None:
            found, first = batch.y, name
            continue
        mine, other = _plain(found), _plain(batch.y)
        if {mine.dtype.kind, other.dtype.kind} != {"f"}:
            mine, other = mine.astype(str), other.astype(str)
        differ = mine != other if mine.dtype.kind == "U" else ~_equal(mine, other)
        if np.any(differ):
            row = int(np.argmax(differ))
            raise SourceError(
                f"row {start + row} has the target {mine[row]} in {first!r} and {other[row]} in {name!r}; channels are "
                "the same rows in the same order (use --rows if the sources are further rows of one table)"
            )
    return found


def _plain(y: Any) -> np.ndarray:
    return np.array([*y.names, ""])[y.codes] if isinstance(y, Coded) else y


def _equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))
