"""What a split says of its rows: class counts, the span of the target, the range of each channel; sums that merge."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import first_where
from dkl.sources.batch import SourceError
from dkl.store.recipe import Recipe


class Seen:
    """Statistics of rows in any order; those of all rows are merged from those of some."""

    def __init__(self, recipe: Recipe, has_classes: bool) -> None:
        channels = recipe.channels
        self.has_classes, self.recipe = has_classes, recipe
        self.counts: dict[Any, int] = {}
        self.span = [np.inf, -np.inf]
        self.edges = np.append(0, np.cumsum([c.n_inputs for c in channels]))
        self.ranges = np.tile([np.inf, -np.inf], (len(channels), 1))

    def add(self, X: Any, y: np.ndarray | None, numbers: np.ndarray) -> None:
        """Rows with their targets and their row numbers in the source; missing values are refused."""
        if y is not None:
            self._widen([float(y.min()), float(y.max())])
            if self.has_classes:
                for value, count in zip(*np.unique(y, return_counts=True), strict=True):
                    self._count(value.item(), int(count))
        for i in range(len(self.ranges)):
            low, high = column_range(X, self.edges[i], self.edges[i + 1])
            if low != low:
                raise missing_value(X, numbers, [(c.name, name) for c in self.recipe.channels for name in c.names])
            self.ranges[i] = min(self.ranges[i][0], low), max(self.ranges[i][1], high)

    def merge(self, told: dict) -> None:
        """Add what `to_json` told of other rows."""
        for value, count in told["counts"]:
            self._count(value, count)
        if told["span"] is not None:
            self._widen(told["span"])
        for i, (low, high) in enumerate(told["ranges"] or []):
            self.ranges[i] = min(self.ranges[i][0], low), max(self.ranges[i][1], high)

    def to_json(self) -> dict:
        """The statistics as JSON values; None where there is none."""
        span = self.span if self.span[0] <= self.span[1] else None
        ranges = self.ranges.tolist() if np.isfinite(self.ranges).all() else None
        return {"counts": list(self.counts.items()), "span": span, "ranges": ranges}

    def _widen(self, span: list[float]) -> None:
        self.span = [min(self.span[0], span[0]), max(self.span[1], span[1])]

    def _count(self, value: Any, count: int) -> None:
        self.counts[value] = self.counts.get(value, 0) + count

    def attributes(self, names: list[str], classes: list[str], with_span: bool) -> dict:
        """As a data set has them."""
        counts = {str(classes[k] if classes else k): self.counts[k] for k in sorted(self.counts)}
        ranges = [
            {"name": name, "inputs": int(self.edges[i + 1] - self.edges[i]), "low": low, "high": high}
            for i, (name, (low, high)) in enumerate(zip(names, self.ranges.tolist(), strict=True))
        ]
        return {"class_counts": counts, "target_range": self.span if with_span else None, "channels": ranges}


def missing_value(X: Any, numbers: np.ndarray, inputs: list[tuple[str, str]]) -> SourceError:
    """The error of a missing value that the recipe does not fill."""
    found = first_where(X, np.isnan)
    assert found is not None
    channel, column = inputs[found[1]]
    return SourceError(
        f"row {numbers[found[0]]} of channel {channel!r} has no value in column {column!r}, and the recipe has no fill "
        "value for it; use --missing drop or zero"
    )


def column_range(X: Any, first: int, last: int) -> tuple[float, float]:
    """(minimum, maximum) of some columns."""
    if not hasattr(X, "indptr"):
        return float(X[:, first:last].min()), float(X[:, first:last].max())
    inside = X.data[(X.indices >= first) & (X.indices < last)]
    zero = [] if len(inside) == X.shape[0] * (last - first) else [0.0]
    values = [*zero, *([inside.min(), inside.max()] if len(inside) else [])]
    return float(min(values)), float(max(values))
