"""What must be known of y and the weights before the pass: classes, total weight, and bounds of every sum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from dkl.features.rows import Refusal, refuse_masked, refuse_not_finite, refuse_not_real
from dkl.sums.spread import Spread, spread_of
from dkl.sums.tree import TreeProgram

EPS, LEAST = float(np.finfo(np.float64).eps), 1e-290
"""Rounding, and the mean square below which digits are lost."""


@dataclass(frozen=True)
class Targets:
    """How a block's y becomes targets. Classes are codes 0 .. c-1; values are (rows, c), less `shift`, over `unit`.

    The units are powers of two near the size of y and of the weights: exact, and out of the way of float32's range.
    """

    weight: float
    n_targets: int
    classes: np.ndarray | None = None
    class_weight: np.ndarray | None = None
    shift: np.ndarray = field(default_factory=lambda: np.zeros(1))
    absolute: np.ndarray = field(default_factory=lambda: np.zeros(1))
    square: np.ndarray = field(default_factory=lambda: np.zeros(1))
    unit: np.ndarray = field(default_factory=lambda: np.ones(1))
    weight_unit: float = 1.0
    variance: float = 1.0  # of the targets, mean over the outputs; those of classes are -1 and +1

    @property
    def n_outputs(self) -> int:
        """Columns of scores: one for two classes."""
        return 1 if self.is_class and self.n_targets == 2 else self.n_targets

    @property
    def share(self) -> np.ndarray:
        """Square of each output's unit over the largest one: what an output's squared error counts."""
        unit = np.broadcast_to(self.unit / self.unit.max(), (self.n_outputs,))
        return np.asarray(unit * unit)

    @property
    def score_shift(self) -> np.ndarray:
        """What scores miss of y."""
        return np.zeros(1) if self.is_class else self.shift

    @property
    def is_class(self) -> bool:
        return self.classes is not None

    def encode(self, y: Any) -> np.ndarray:
        """Codes of labels, or shifted values in float64."""
        if self.classes is not None:
            return np.searchsorted(self.classes, np.asarray(y).ravel())
        return np.asarray((as_columns(y) - self.shift) / self.unit)

    def in_units_of_y(self) -> Targets:
        """The same targets over no unit: for a loss whose parameters are in the units of y."""
        return replace(
            self, unit=np.ones(1), absolute=self.absolute * self.unit, square=self.square * self.unit**2
        )  # fmt: skip

    def row_weight(self, codes: np.ndarray, weight: Any) -> np.ndarray | None:
        """Sample weight times class weight, over the unit of weights; None means ones."""
        if weight is None and self.class_weight is None:
            return None
        total = np.ones(len(codes)) if self.class_weight is None else self.class_weight[codes]
        if weight is not None:
            total = total * np.asarray(weight, np.float64).ravel()
        return total / self.weight_unit


def power_of_two(size: Any) -> np.ndarray:
    """A power of two just above each size; one where the size is zero."""
    size = np.asarray(size, np.float64)
    return np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1]), 1.0)


def weight_unit(weight: float, rows: int) -> float:
    """A power of four (its root is exact) near the mean weight; one for weights of about one."""
    return float(np.ldexp(1.0, 2 * (int(np.frexp(weight / rows)[1]) // 2)))


def as_columns(y: Any) -> np.ndarray:
    """y as (rows, c) float64; what is not a number is refused."""
    given = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    if given.dtype == object:
        _refuse_texts(given)
    else:
        refuse_not_real(given, "y")
    columns: np.ndarray = np.asarray(given, np.float64)
    return columns.reshape(len(columns), -1)


def _refuse_texts(y: np.ndarray) -> None:
    """Objects are numbers if Python says so; texts such as "1.5" are not."""
    for row, value in enumerate(y.reshape(len(y), -1).tolist()):
        bad = next((v for v in value if not isinstance(v, Real)), None)
        if bad is not None or None in value:
            raise Refusal(row, f"y is {bad!r} at row {{row}}; regression needs numbers (y.astype(float), if it is one)")


class LabelWeights(NamedTuple):
    """Total weight of each label."""

    labels: np.ndarray
    weight: np.ndarray
    rows: int

    def __add__(self, other: LabelWeights) -> LabelWeights:  # type: ignore[override]
        labels, where = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        weight = np.bincount(where, np.concatenate([self.weight, other.weight]), minlength=len(labels))
        return LabelWeights(labels, weight, self.rows + other.rows)


class ValueMoments(NamedTuple):
    """Spread of y, and the weighted sums of |y| and y^2, by output."""

    rows: int
    spread: Spread
    absolute: np.ndarray
    square: np.ndarray

    @property
    def weight(self) -> float:
        return self.spread.weight

    def __add__(self, other: ValueMoments) -> ValueMoments:  # type: ignore[override]
        return ValueMoments(
            self.rows + other.rows,
            self.spread + other.spread,
            self.absolute + other.absolute,
            self.square + other.square,
        )


def check_weights(weight: Any, rows: int) -> np.ndarray:
    """The weights of a block; None means ones."""
    if weight is None:
        return np.ones(rows)
    weight = weight if isinstance(weight, np.ma.MaskedArray) else np.asarray(weight)
    refuse_not_real(weight, "sample_weight")
    checked: np.ndarray = np.asarray(weight, np.float64).ravel()
    bad = np.flatnonzero(~(np.isfinite(checked) & (checked >= 0)))
    if len(bad):
        raise Refusal(
            int(bad[0]), f"sample_weight is {float(checked[bad[0]])!r} at row {{row}}; use finite weights >= 0"
        )
    return checked


def refuse_mixed_labels(y: np.ndarray) -> None:
    """Labels of one type that can be put in order; a missing one is named."""
    for row, label in enumerate(y):
        if label is None or label != label:
            raise Refusal(row, f"y is {label!r} at row {{row}}; remove or name the missing label")
    kinds = sorted({type(label).__name__ for label in y})
    if len(kinds) > 1:
        raise Refusal(0, f"Unknown label type: y mixes labels of types {', '.join(kinds)}; use one type")


class LabelProgram(TreeProgram[LabelWeights]):
    """Pass over y alone: LabelWeights."""

    task = "targets"

    def value(self, data: tuple[Any, ...]) -> LabelWeights:
        """Labels of one block."""
        y, weight = data
        refuse_masked(y, "y")
        y = np.asarray(y).ravel()
        if y.dtype.kind == "c":
            refuse_not_real(y, "y")
        if y.dtype.kind == "f":
            refuse_not_finite(y[:, None], "y")
        elif y.dtype == object:
            refuse_mixed_labels(y)
        labels, where = np.unique(y, return_inverse=True)
        weight = check_weights(weight, len(y))
        return LabelWeights(labels, np.bincount(where, weight, minlength=len(labels)), len(y))


class ValueProgram(TreeProgram[ValueMoments]):
    """Pass over y alone: ValueMoments."""

    task = "targets"

    def value(self, data: tuple[Any, ...]) -> ValueMoments:
        """Moments of one block."""
        y, weight = data
        y = as_columns(y)
        refuse_not_finite(y, "y")
        w = check_weights(weight, len(y))
        return ValueMoments(len(y), spread_of(y, w), w @ np.abs(y), w @ (y * y))


def value_targets(moments: ValueMoments, centre: bool) -> Targets:
    """Targets of a regression; `centre` takes the mean off, so that only the spread of y is summed and rounded."""
    w, unit_w, spread = moments.weight, weight_unit(moments.weight, moments.rows), moments.spread
    shift = spread.mean if centre else np.zeros_like(spread.mean)
    if not np.isfinite(moments.square).all():
        largest = float(np.max(moments.absolute))
        raise ValueError(
            f"y is so large (a sum of {largest:.3g}) that its square is infinite in float64; divide y by a constant"
        )
    if ((moments.absolute > 0) & (moments.square < w * LEAST)).any():
        raise ValueError(
            f"y is so small (a sum of {float(np.max(moments.absolute)):.3g}) that its square is zero in float64; "
            "multiply y by a constant"
        )
    with np.errstate(over="ignore"):
        absolute, square = moments.absolute + w * np.abs(shift), 2 * (moments.square + w * shift * shift)
    if centre:  # about the mean there is less, unless it is lost below float64's range
        around = 1.01 * spread.m2 / w + (8 * EPS * shift) ** 2
        near = (around > LEAST) & (w * around < square)
        absolute = np.where(near, np.minimum(w * np.sqrt(around), absolute), absolute)
        square = np.where(near, w * around, square)
    unit = power_of_two(absolute / w)
    return Targets(
        weight=w / unit_w,
        n_targets=len(shift),
        shift=shift,
        absolute=absolute / unit / unit_w,
        square=square / (unit * unit) / unit_w,
        unit=unit,
        weight_unit=unit_w,
        variance=float(spread.variance.mean()),
    )
