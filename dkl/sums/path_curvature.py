"""A pass of curvatures for several systems side by side: the sums of a Newton step of each, in some of its features.

    loss_s = sum w l,   slope_s = Psi' (w l'),   slope_sum_s = sum w l'                  over rows that train system s
    gram_sp = P_s' diag(w l''_p) P_s,   curved_sp = P_s' (w l''_p),   P_s = Psi[:, columns_s]
    tested_s = sum w l,   weight_s = sum w                                               over rows that test it

A system is one set of weights: the model of all rows, or of all folds but one, which the rows of that fold test.
Features are made once for all systems. Slopes are of all features, so that they tell which others a system needs;
most of the work is in the grams, and these are of the features that it has. There is one for each output p, where l''
is at least `floor` times the most that it can be. Scores of classes that share a loss have one for each pair p of
outputs: d2l/dz2 with so much on its diagonal, and minus what is beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.losses import Loss, ScoreSizes
from dkl.sums.curvature import check_kind
from dkl.sums.gram import SLACK, GramProgram, gram_cost, gram_flops
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.symmetric import LEAF, add_rank_k, largest_tile, packed_size, unpack
from dkl.sums.tiles import most_rows, tile_rows

Workspace = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A tile of features, room for some of them times roots, and one product."""
NAMES = ("loss", "tested", "weight", "slope", "slope_sum", "curvature_sum", "curved", "gram")


def pairs_of(loss: Loss, outputs: int) -> list[tuple[int, int]]:
    """Pairs of outputs between which a loss is curved."""
    if not loss.joins(outputs):
        return [(j, j) for j in range(outputs)]
    return [(i, j) for i in range(outputs) for j in range(i, outputs)]


def path_curvature_cost(sizes: Sizes, of: MapCost, folds: int, systems: int, pairs: int) -> Cost:
    """What the pass costs if every system has all features: half a gram for each of them and each pair."""
    d, item, q, g = of.features, sizes.item, systems * max(1, sizes.outputs), systems * pairs
    rows = most_rows(tile_rows(sizes.rows, d, sizes.dtype))
    product = max(min(d, LEAF) ** 2, (-(-d // 2)) ** 2)
    return Cost(
        "curvatures",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=(2 * rows * d + product + q * d) * item
        + rows * (2 * q * item + 96 * max(1, sizes.outputs) + 8 * pairs)
        + 32 * d
        + of.scratch_bytes,
        sparse_bytes=rows * of.sparse_row_bytes,
        sums_bytes=8 * (g * (packed_size(d) + d + 1) + q * (d + 1) + 3 * systems),
        parameter_bytes=of.parameter_bytes + q * (d + 1) * (8 + item) + 8 * systems * (d + 4),
        flops=of.flops + g * (gram_flops(d) + 3.0 * d) + 4.0 * q * d,
        cosines=of.cosines,
    )


@dataclass
class PathSums:
    """Sums by system; those of columns stand one after the other. Features are unscaled."""

    loss: np.ndarray  # (S,), of rows that train
    tested: np.ndarray  # (S,), of rows that test
    weight: np.ndarray  # (S,), of rows that test
    slope: np.ndarray  # (S, c, d)
    slope_sum: np.ndarray  # (S, c)
    curvature_sum: np.ndarray  # (S, pairs)
    curved: np.ndarray  # (sum over S of pairs times columns,)
    gram: np.ndarray  # (sum over S of packed halves for each pair,)
    refusal: tuple[int, str] | None = None

    def merge(self, other: PathSums) -> None:
        """self += other, exactly."""
        for name in NAMES:
            mine = getattr(self, name)
            mine += getattr(other, name)
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> PathSums:
        """A record that can be added to."""
        return replace(self, **{name: getattr(self, name).copy() for name in NAMES})


class SystemSums(NamedTuple):
    """What the sums say of one system; features are unscaled."""

    loss: float
    tested: float
    weight: float
    slope: np.ndarray  # (c, d)
    slope_sum: np.ndarray  # (c,)
    curvature_sum: np.ndarray  # (pairs,)
    curved: np.ndarray  # (pairs, columns)
    gram: np.ndarray  # (pairs, packed half)

    def full(self, p: int) -> np.ndarray:
        """The gram of one pair."""
        return unpack(self.gram[p], self.curved.shape[1]) if self.curved.size else np.empty((0, 0))


@dataclass(frozen=True)
class PathProgram:
    """The pass: that of the sums, a loss, and of each system weights, columns and a floor in; PathSums out."""

    gram: GramProgram
    loss: Loss
    coef: np.ndarray  # (S, d, c), for unscaled features
    intercept: np.ndarray  # (S, c)
    tests: np.ndarray  # (S,): the fold that tests a system, all others train it; -1: all train it
    columns: tuple[np.ndarray, ...]  # of each system, the features of its gram, rising
    floor: np.ndarray  # (S,)
    task = "curvatures"
    narrow: np.ndarray = field(init=False, repr=False)
    bounds: tuple[dict[str, np.ndarray], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_kind(self.loss, self.gram)
        S, d, c = self.coef.shape
        flat = np.ascontiguousarray(self.coef.transpose(1, 0, 2).reshape(d, S * c), self.gram.features.dtype)
        object.__setattr__(self, "narrow", flat)
        object.__setattr__(self, "bounds", tuple(self._bounds(s) for s in range(S)))

    def _bounds(self, s: int) -> dict[str, np.ndarray]:
        """Of one system: another one's weights do not change its bits."""
        t, d = self.gram.targets, self.coef.shape[1]
        size = np.linalg.norm(self.coef[s], axis=0) * np.sqrt(d + 1) + np.abs(self.intercept[s])
        sizes = ScoreSizes(float(size.max()), t.weight, t.n_outputs, t.absolute, t.square)
        most = np.asarray(self.loss.most_slope(sizes))
        return {
            "loss": rounder(SLACK * self.loss.most_value(sizes)),
            "weight": rounder(SLACK * t.weight),
            "curved": rounder(2 * SLACK * self.most * t.weight),
            "slope": rounder(SLACK * most[:, None] if most.ndim else SLACK * most),
            "slope_sum": rounder(SLACK * most),
        }

    @property
    def most(self) -> float:
        """The most that l'' can be."""
        return self.loss.most_curved(self.gram.targets.n_outputs)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of outputs that have a gram."""
        return pairs_of(self.loss, self.gram.targets.n_outputs)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram's pass."""
        return self.gram.rows_wanted

    def unit(self, s: int) -> float:
        """What the sum of a system's losses is rounded to."""
        return float(np.spacing(self.bounds[s]["loss"]).max())

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.gram.targets.n_outputs)
        return path_curvature_cost(own, self.gram.map_cost, self.gram.folds, len(self.coef), len(self.pairs))

    def start(self) -> PathSums:
        """Zero."""
        S, d, c = self.coef.shape
        loss, tested, weight = np.zeros((3, S))
        curved, gram = (int(at[-1][-1]) for at in zip(*map(self._place, range(S)), strict=True))
        return PathSums(
            loss, tested, weight, np.zeros((S, c, d)), np.zeros((S, c)),
            np.zeros((S, len(self.pairs))), np.zeros(curved), np.zeros(gram),
        )  # fmt: skip

    def workspace(self) -> Workspace:
        """A tile of features, room for the same, and one product."""
        d, dtype, widths = self.coef.shape[1], self.gram.features.dtype, [len(on) for on in self.columns]
        rows, most = most_rows(self.gram.tile), max(widths)
        product = max((largest_tile(width) for width in widths if width), default=0)
        return np.empty((rows, d), dtype), np.empty(rows * most, dtype), np.empty(product, dtype)

    def of(self, sums: PathSums, s: int) -> SystemSums:
        """Views of what is known of one system."""
        count, (curved, gram) = len(self.pairs), self._place(s)
        return SystemSums(
            float(sums.loss[s]), float(sums.tested[s]), float(sums.weight[s]), sums.slope[s], sums.slope_sum[s],
            sums.curvature_sum[s], sums.curved[curved[0] : curved[1]].reshape(count, -1),
            sums.gram[gram[0] : gram[1]].reshape(count, -1),
        )  # fmt: skip

    def _place(self, s: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where the columns of a system stand, and its grams."""
        count, widths = len(self.pairs), [len(on) for on in self.columns]
        sizes = [packed_size(width) if width else 0 for width in widths]
        curved, gram = count * sum(widths[:s]), count * sum(sizes[:s])
        return (curved, curved + count * widths[s]), (gram, gram + count * sizes[s])

    def add(self, sums: PathSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for k, T, y, weight in self.gram.by_fold(sums, start, data):
            n = T.shape[0]
            parts = max(1, round(n / self.gram.tile))
            for i in range(parts):
                rows = slice(i * n // parts, (i + 1) * n // parts)
                ones = np.ones(rows.stop - rows.start) if weight is None else weight[rows]
                self._add_tile(sums, workspace, k, T[rows], y[rows], ones)

    def _add_tile(self, sums: PathSums, space: Workspace, k: int, T: Any, y: np.ndarray, weight: np.ndarray) -> None:
        Psi, (S, _, c) = space[0][: len(weight)], self.coef.shape
        self.gram.features.write(T, Psi)
        scores = (Psi @ self.narrow).reshape(len(Psi), S, c)
        slopes = np.zeros((len(Psi), S * c), Psi.dtype)
        for s in range(S):
            bounds, z = self.bounds[s], scores[:, s].astype(np.float64) + self.intercept[s]
            value, one = np.array([weight @ self.loss.value(z, y)]), slice(s, s + 1)
            if self.tests[s] == k:
                add_exactly(sums.tested[one], value, bounds["loss"])
                add_exactly(sums.weight[one], weight.sum(keepdims=True), bounds["weight"])
                continue
            slope = self.loss.slope(z, y) * weight[:, None]
            add_exactly(sums.loss[one], value, bounds["loss"])
            add_exactly(sums.slope_sum[s], slope.sum(axis=0), bounds["slope_sum"])
            slopes[:, s * c : (s + 1) * c] = slope
            self._add_curved(sums, space, s, Psi, z, y, weight)
        pulled = (slopes.T @ Psi).reshape(S, c, Psi.shape[1])
        for s in np.flatnonzero(self.tests != k).tolist():
            add_exactly(sums.slope[s], pulled[s], self.bounds[s]["slope"])

    def _add_curved(
        self, sums: PathSums, space: Workspace, s: int, Psi: np.ndarray, z: np.ndarray, y: np.ndarray, w: np.ndarray
    ) -> None:  # fmt: skip
        """The grams of a system's columns."""
        C, columns = self.bounds[s]["curved"], self.columns[s]
        curved = self._curvature(z, y, float(self.floor[s])) * w[:, None]
        add_exactly(sums.curvature_sum[s], curved.sum(axis=0), C)
        if not len(columns):
            return
        own, every = self.of(sums, s), len(columns) == Psi.shape[1]
        some = space[1][: len(Psi) * len(columns)].reshape(len(Psi), -1)
        for p in range(curved.shape[1]):
            root = np.sqrt(curved[:, p]).astype(Psi.dtype)[:, None]
            if every:
                np.multiply(Psi, root, out=some)
            else:
                np.take(Psi, columns, axis=1, out=some, mode="clip")
                np.multiply(some, root, out=some)
            add_rank_k(own.gram[p], some, C, space[2])
            add_exactly(own.curved[p], root[:, 0] @ some, C)

    def _curvature(self, z: np.ndarray, y: np.ndarray, floor: float) -> np.ndarray:
        """(rows, pairs), none below 0."""
        least, pairs = floor * self.most, self.pairs
        if len(pairs) == z.shape[1]:
            return np.asarray(np.maximum(self.loss.curvature(z, y), least))
        curved = np.empty((len(z), len(pairs)))
        for i in range(z.shape[1]):
            along = np.zeros_like(z)
            along[:, i] = 1.0
            of_one = self.loss.curved(z, y, along)
            for p, (first, second) in enumerate(pairs):
                if first == i:
                    curved[:, p] = of_one[:, i] + least if second == i else -of_one[:, second]
        return np.asarray(np.maximum(curved, 0.0))
