"""What a channel learns from the training rows: fills and the constants of its steps, one pass after the other.

A step's constants are those of rows that the steps before it have prepared.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from dkl.store.column_constants import Spread
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.zca import Covariance


class Learner(Protocol):
    """Takes in the training rows of a channel in one pass."""

    sums: Any

    def add(self, X: Any) -> None:
        """Rows of the source, in order."""

    def learned(self) -> Channel:
        """The channel with what these rows determine."""


def learner_of(channel: Channel, sparse: bool, request: Request) -> Learner | None:
    """The first thing that a channel has yet to learn; `sparse`: its source is."""
    if request.missing in FILLS and channel.fill is None:
        return ColumnLearner(channel, 0, sparse, request.missing)
    for place, step in enumerate(channel.steps):
        if step.kind.learns and getattr(channel, step.kind.learns) is None:
            return LEARNERS[step.kind.learns](channel, place, sparse, request.missing)
    return None


def _mean(spread: Spread) -> np.ndarray:
    return np.where(spread.count > 0, spread.mean, 0.0)


def _zero(spread: Spread) -> np.ndarray:
    return np.zeros_like(spread.mean)


FILLS = {"mean": _mean, "zero": _zero}
"""What `missing` puts in place of missing values."""


class ColumnLearner:
    """Fill, shift and factor of each column, from its known values, after so many steps."""

    def __init__(self, channel: Channel, place: int, sparse: bool, missing: str) -> None:
        self.channel, self.place, self.missing = channel, place, missing
        self.sparse, self.sums = sparse and not channel.is_dense, Spread(channel.width)

    def add(self, X: Any) -> None:
        """Rows as they are if no step comes before."""
        if self.place:
            for rows in self.channel.prepared(X, self.place):
                self.sums.add(rows)
        else:
            self.sums.add(self.channel.counted(X) if self.sparse else self.channel.dense(X))

    def learned(self) -> Channel:
        """The fill, and the constants of the step at this place if it goes by columns."""
        spread, channel = self.sums.finish(), self.channel
        if channel.fill is None and self.missing in FILLS:
            channel = replace(channel, fill=tuple(FILLS[self.missing](spread).tolist()))
        if not channel.steps[self.place :] or not channel.steps[self.place].kind.is_by_column:
            return channel
        known = spread.constants(channel.steps[self.place].name, self.sparse)
        assert known is not None
        shift, factor = known
        return replace(channel, shift=tuple(shift.tolist()), factor=tuple(factor.tolist()))


class WhiteningLearner:
    """Mean and matrix of zca, from the rows after so many steps."""

    def __init__(self, channel: Channel, place: int, sparse: bool, missing: str) -> None:
        self.channel, self.place, self.sums = channel, place, Covariance(channel.width)

    def add(self, X: Any) -> None:
        """Rows, a few at a time."""
        for rows in self.channel.prepared(X, self.place):
            self.sums.add(rows)

    def learned(self) -> Channel:
        """The matrix; too few rows for it give a warning."""
        sums = self.sums.finish()
        if 0 < sums.count <= self.channel.width:
            warnings.warn(
                f"zca of the {self.channel.width:,} inputs of {self.channel.name!r} is learned from {sums.count:,} "
                f"training rows, which vary in at most {sums.count - 1:,} directions; eps alone scales the others, so "
                "take more rows or a larger eps (zca:1)",
                UserWarning,
                stacklevel=2,
            )
        return replace(self.channel, whitening=sums.whitening(self.channel.steps[self.place].number))


LEARNERS: dict[str, type[ColumnLearner] | type[WhiteningLearner]] = {
    "factor": ColumnLearner,
    "whitening": WhiteningLearner,
}
"""Who learns which constant."""
