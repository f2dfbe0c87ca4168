"""How good a model is on rows: counts and error sums block by block, then the figures people ask for.

Classes: the confusion matrix, and how often a confidence p of the chosen class comes true, by its score before
calibration. A log loss gives p, its mean -log p_y and its mean (p - onehot)^2 (Brier); the square loss estimates
2 P(class) - 1, so p = (score + 1) / 2; other losses have no p. A label that the model does not know counts as an error
of accuracy and of confidence; it has no probability, so log loss and Brier score are means over the other rows.
Numbers: sums of squared and absolute errors, and of squares of y about its mean, merged block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.cost import Cost
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.learn.model import TILE, Scores, chosen, each_class
from dkl.losses import Loss, Probabilistic, Square
from dkl.prepare.targets import sum_small
from dkl.sums.targets import as_columns
from dkl.sums.tree import TreeProgram

BINS = 10
SQUARE = Square()
TOP = 5
"""A class among so many highest scores is near."""


class ClassCounts(NamedTuple):
    """Counts over rows; the last line of `confusion` is for labels that the model does not know."""

    confusion: np.ndarray  # (c + 1, c) true by predicted
    confidence: np.ndarray  # (BINS, 3): rows, sum of confidence, rows that were right
    near: int  # rows whose class is among the TOP highest scores
    surprise: float = 0.0  # sum of -log p of the true class, over rows whose class is known
    distance: float = 0.0  # sum of (p - onehot)^2 over the same rows, and over classes

    def __add__(self, other: Any) -> ClassCounts:
        return ClassCounts(*(one + more for one, more in zip(self, other, strict=True)))


class ErrorSums(NamedTuple):
    """Regression errors over rows, by output; `spread` is the sum of squares of y about its mean."""

    rows: int
    mean: np.ndarray
    spread: np.ndarray
    square: np.ndarray
    absolute: np.ndarray
    largest: float

    def __add__(self, other: Any) -> ErrorSums:
        n = self.rows + other.rows
        step = other.mean - self.mean
        return ErrorSums(
            n,
            self.mean + step * (other.rows / n),
            self.spread + other.spread + step**2 * (self.rows * other.rows / n),
            self.square + other.square,
            self.absolute + other.absolute,
            max(self.largest, other.largest),
        )


def evaluation_cost(scores: Scores, rows: int, columns: int, counted: int) -> Cost:
    """What a pass over scored rows costs: a tile of features, eight copies of the scores, and so many counts."""
    of, sizes = scores.map_cost, scores.sizes
    return Cost(
        "evaluation",
        rows_wanted=rows,
        features=of.features,
        columns=of.columns,
        row_bytes=8 * 8 * columns,
        thread_bytes=TILE * of.features * sizes.item + of.scratch_bytes,
        sparse_bytes=TILE * of.sparse_row_bytes,
        sums_bytes=8 * counted,
        parameter_bytes=of.parameter_bytes + of.features * columns * sizes.item,
        flops=of.flops + 2.0 * of.features * columns,
        cosines=of.cosines,
    )


@dataclass(frozen=True)
class CountProgram(TreeProgram[ClassCounts]):
    """The pass of a classifier."""

    scores: Scores
    classes: np.ndarray
    names: np.ndarray | None
    loss: Loss | None = SQUARE  # None: the scores have no meaning beside their order
    task = "evaluation"

    def cost(self) -> Cost:
        """What the pass costs: scores, and counts of each pair of classes."""
        c = len(self.classes)
        return evaluation_cost(self.scores, self.rows_wanted, c, (c + 1) * c + 3 * BINS)

    def value(self, data: tuple[Any, ...]) -> ClassCounts:
        """Counts of one block."""
        X, y = data[0], np.asarray(data[1]).reshape(-1)
        plain = self.scores.plain(X)
        found = plain - self.scores.offset
        c, best = len(self.classes), chosen(found)
        found = each_class(found)
        labels = y if self.names is None else self.names[y]
        true = np.minimum(np.searchsorted(self.classes, labels), c - 1)
        true = np.where(self.classes[true] == labels, true, c)
        confusion = np.bincount(true * c + best, minlength=(c + 1) * c).reshape(c + 1, c)
        known = np.flatnonzero(true < c)
        mine = found[known, true[known]][:, None]
        before = np.arange(c) < true[known][:, None]  # of equal scores the first is chosen
        ahead = (found[known] > mine) | ((found[known] == mine) & before)
        near = int((ahead.sum(axis=1) < TOP).sum())
        return ClassCounts(confusion, self._confidence(plain, best, true), near, *self._badness(plain, known, true))

    def _confidence(self, plain: np.ndarray, best: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Rows, sum of confidence and rows that were right, by bins of confidence; no rows, if there is none."""
        shares = _shares(self.loss, plain)
        if shares is None:
            return np.zeros((BINS, 3))
        p = shares[np.arange(len(best)), best]
        place = np.minimum((p * BINS).astype(int), BINS - 1)
        right = (true == best).astype(float)
        return np.array([np.bincount(place, weight, BINS) for weight in (np.ones(len(p)), p, right)]).T

    def _badness(self, plain: np.ndarray, known: np.ndarray, true: np.ndarray) -> tuple[float, float]:
        """Sums of -log p_y and of (p - onehot)^2 over rows whose class is known; zero without probabilities."""
        if not isinstance(self.loss, Probabilistic):
            return 0.0, 0.0
        place = np.arange(len(known)), true[known]
        gap = self.loss.shares(plain[known])
        gap[place] -= 1
        return -float(self.loss.log_shares(plain[known])[place].sum()), float((gap * gap).sum())


@dataclass(frozen=True)
class ErrorProgram(TreeProgram[ErrorSums]):
    """The pass of a regressor."""

    scores: Scores
    task = "evaluation"

    def cost(self) -> Cost:
        """What the pass costs: scores, and errors of each output."""
        c = len(self.scores.intercept)
        return evaluation_cost(self.scores, self.rows_wanted, c, 4 * c)

    def value(self, data: tuple[Any, ...]) -> ErrorSums:
        """Error sums of one block."""
        y = as_columns(data[1])
        error, mean = np.abs(self.scores(data[0]) - y), y.mean(axis=0)
        spread = ((y - mean) ** 2).sum(0) * (y != y[0]).any(0)  # a constant has none, whatever its mean rounds to
        return ErrorSums(len(y), mean, spread, (error * error).sum(0), error.sum(0), float(error.max()))


def _shares(loss: Loss | None, plain: np.ndarray) -> np.ndarray | None:
    """What scores before calibration say of the probability of each class; None, if nothing."""
    if isinstance(loss, Probabilistic):
        return loss.shares(plain)
    return np.clip((each_class(plain) + 1) / 2, 0.0, 1.0) if isinstance(loss, Square) else None


def _total(program: TreeProgram[Any], X: Table, y: Table, progress: Progress) -> Any:
    return sum_small(program, [X, y], ["X", "y"], progress, "evaluating")


def evaluate_classes(
    scores: Scores, classes: np.ndarray, X: Table, y: Table, progress: Progress, loss: Loss | None = SQUARE
) -> dict[str, Any]:
    """Accuracy, error, top-5 error, recall and precision of each class, confusion, calibration; plain values.

    Log loss and Brier score (of two classes (p - y)^2 of the second, as in scikit-learn) are None without
    probabilities; calibration is None without confidence.
    """
    counts: ClassCounts = _total(CountProgram(scores, classes, y.names, loss), X, y, progress)
    confusion, c = counts.confusion, len(classes)
    known, rows = confusion[:c], int(confusion.sum())
    if not known.sum():
        raise ValueError(f"no row of y has a class of the model ({', '.join(map(str, classes[:5].tolist()))} ...)")
    right = np.diag(known)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, precision = right / known.sum(axis=1), right / confusion.sum(axis=0)
    per_class = [
        {"class": label, "rows": int(known[i].sum()), "recall": _plain(recall[i]), "precision": _plain(precision[i])}
        for i, label in enumerate(classes.tolist())
    ]
    return {
        "task": "classification",
        "rows": rows,
        "unknown_labels": int(confusion[c].sum()),
        "accuracy": float(right.sum() / rows),
        "error": float(1 - right.sum() / rows),
        "top5_error": float(1 - counts.near / rows) if c > TOP else None,
        "mean_recall": _plain(np.nanmean(recall)) if np.isfinite(recall).any() else None,
        "classes": per_class,
        "confusion": known.tolist(),
        **_probable(counts, int(known.sum()), c, loss),
        **_calibration(counts.confidence, rows),
    }


def _probable(counts: ClassCounts, known: int, classes: int, loss: Loss | None) -> dict[str, Any]:
    """Means over rows whose class is known."""
    if not isinstance(loss, Probabilistic):
        return {"log_loss": None, "brier_score": None}
    half = 2 if classes == 2 else 1
    return {"log_loss": counts.surprise / known, "brier_score": counts.distance / known / half}


def _calibration(table: np.ndarray, rows: int) -> dict[str, Any]:
    """The mean of |confidence - share right| of bins by their rows, and the bins."""
    if not table.any():
        return {"calibration_error": None, "calibration": None}
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = table[:, 1:] / table[:, :1]
    gap = np.nansum(table[:, 0] * np.abs(mean[:, 0] - mean[:, 1])) / rows
    bins = [
        {"from": i / BINS, "to": (i + 1) / BINS, "rows": int(table[i, 0]), "confidence": _plain(mean[i, 0]),
         "accuracy": _plain(mean[i, 1])} for i in range(BINS)
    ]  # fmt: skip
    return {"calibration_error": float(gap), "calibration": bins}


def evaluate_numbers(scores: Scores, X: Table, y: Table, progress: Progress) -> dict[str, Any]:
    """Root mean square, mean and largest absolute error, R^2; plain values. Several outputs are averaged."""
    sums: ErrorSums = _total(ErrorProgram(scores), X, y, progress)
    n, varies = sums.rows, sums.spread > 0
    r2 = np.where(varies, 1 - sums.square / np.where(varies, sums.spread, 1.0), sums.square == 0)
    return {
        "task": "regression",
        "rows": n,
        "rmse": float(np.sqrt(sums.square.mean() / n)),
        "mae": float(sums.absolute.mean() / n),
        "largest_error": sums.largest,
        "r2": float(r2.mean()),
    }


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
