"""Landmarks drawn from the rows, in memory or on a cluster, and their Nystroem map.

    uniform    one pass
    kmeans++   ROUNDS passes: each adds rows with probability proportional to their squared distance from earlier ones
    leverage   three passes: a uniform pilot, the gram of its features, then rows by their ridge leverage

Samples, grams and whitening stay where the solve runs; the client gets the map at the end.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.checks import first_where, not_finite_entries
from dkl.engine.blocks import Rows
from dkl.engine.handles import Reply
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine, Pending, Program, Ref, S, W
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.landmark_weights import Far, Leverage
from dkl.features.nystroem import NystroemMap
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values
from dkl.prepare.scales import find_sigma
from dkl.prepare.targets import sum_small
from dkl.solvers.whiten import ridge_for, whitening
from dkl.sums.sample import RowSample, SampleProgram
from dkl.sums.scatter import ScatterProgram, ScatterSums
from dkl.sums.symmetric import unpack
from dkl.sums.tiles import tile_rows
from dkl.sums.tree import TreeProgram, TreeTotal

START_TERMS = 15
"""Terms of the additive map that the scale of an exponentiated kernel is looked up with: entries of any size."""
Drawing = Program[TreeTotal, None]
"""A pass that draws rows."""
ROUNDS = 5
"""Passes of kmeans++."""
LEFT_OUT = 0.1
"""The share of landmarks that may make no feature of their own without a word."""


@dataclass(frozen=True)
class Wanted:
    """The landmarks to draw, and their kernel."""

    kernel: Kernel
    sigma: np.ndarray
    skew: float
    dtype: np.dtype
    count: int
    seed: int

    def sample(self, most: int, step: int = 0, worth: Any = None) -> SampleProgram:
        """The program that draws at most `most` rows; each step has its own random keys."""
        return SampleProgram(self.kernel, self.skew, self.dtype, most, self.seed + step, len(self.sigma), worth)

    def map(self, found: RowSample) -> NystroemMap:
        """The map of these landmarks, in row order."""
        order = np.argsort(found.numbers)
        rows, narrow = found.rows[order], self.dtype == np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            K = kernel_values(self.kernel, self.sigma, rows, rows)
        if bad := first_where(K, not_finite_entries):
            one, other = found.numbers[order[list(bad[:2])]]
            raise ValueError(f"the kernel value of rows {one} and {other} is {bad[2]}; scale the inputs or lower sigma")
        V = whitening(K, narrow)
        return NystroemMap(self.kernel, self.sigma, rows, V, found.numbers[order], self.skew, not narrow)


def learn_landmarks(engine: Engine, rows: Rows, wanted: Wanted, scheme: str, progress: Progress) -> NystroemMap:
    """The map of landmarks among the rows of X, drawn by a scheme; columns of `rows` are X and sample_weight."""
    passes = _LandmarkPasses(engine, rows, wanted, progress)
    try:
        return {"uniform": passes.uniform, "kmeans++": passes.far, "leverage": passes.leverage}[scheme]()
    finally:
        engine.forget()


class _LandmarkPasses:
    """The passes of one scheme."""

    def __init__(self, engine: Engine, rows: Rows, wanted: Wanted, progress: Progress) -> None:
        self.engine, self.rows, self.wanted, self.progress = engine, rows, wanted, progress
        self.blocks = rows.blocks(tile_rows(rows.n_rows, wanted.count, wanted.dtype))

    def uniform(self) -> NystroemMap:
        """Rows with equal probability."""
        return self._finish(self._pass(self.wanted.sample(self.wanted.count)), None)

    def far(self) -> NystroemMap:
        """Rows far from earlier landmarks, round by round."""
        shares = [part for part in np.diff(np.arange(ROUNDS + 1) * self.wanted.count // ROUNDS).tolist() if part]
        program: Drawing | Ref[Drawing] = self.wanted.sample(shares[0])
        before: Ref[RowSample] | None = None
        for step, share in enumerate(shares[1:], start=1):
            sums = self._pass(program)
            _, kept = self.engine.solve(far_rows, sums, wanted=self.wanted, before=before, share=share, step=step)
            program, before = kept["landmarks"], kept["before"]
        return self._finish(self._pass(program), before)

    def leverage(self) -> NystroemMap:
        """Rows by their ridge leverage."""
        pilot = self._pass(self.wanted.sample(self.wanted.count))
        _, kept = self.engine.solve(pilot_features, pilot, wanted=self.wanted, n_rows=self.rows.n_rows)
        sums = self._pass(kept["scatter"], "adding up features")
        _, kept = self.engine.solve(leveraged, sums, wanted=self.wanted, pilot=kept["pilot"])
        return self._finish(self._pass(kept["landmarks"]), None)

    def _pass(self, program: Program[S, W] | Ref[Program[S, W]], name: str = "drawing landmarks") -> Pending[S]:
        self.progress.name(name).begin(self.rows.n_rows)
        try:
            return self.engine.sum(program, self.rows, self.progress, self.blocks)
        finally:
            self.progress.end()

    def _finish(self, sums: Pending[TreeTotal], before: Ref[RowSample] | None) -> NystroemMap:
        with self.progress.waiting(f"whitening {self.wanted.count:,} landmarks"):
            return self.engine.solve(finish, sums, wanted=self.wanted, before=before)


def sampled(sums: TreeTotal, before: RowSample | None) -> RowSample:
    """The rows of earlier passes, then those of this one; a refused row raises here."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    found: RowSample = sums.tree.total()
    if before is None and not len(found.keys):
        raise ValueError(
            f"sample_weight is zero for every row, so {len(found.keys)} rows can be drawn; give some a positive weight"
        )
    if before is None:
        return found
    joined = (np.concatenate(pair) for pair in zip(before[2:], found[2:], strict=True))
    return RowSample(found.most, np.zeros(len(before.keys) + len(found.keys)), *joined)


def far_rows(sums: TreeTotal, *, wanted: Wanted, before: RowSample | None, share: int, step: int) -> Reply:
    """The landmarks so far, and the program that draws rows far from them."""
    so_far = sampled(sums, before)
    program = wanted.sample(share, step, Far(wanted.kernel, wanted.sigma, so_far.rows))
    return Reply(None, {"before": so_far, "landmarks": program})


def pilot_features(sums: TreeTotal, *, wanted: Wanted, n_rows: int) -> Reply:
    """The pilot's map, and the program of its gram."""
    pilot = wanted.map(sampled(sums, None))
    return Reply(None, {"pilot": pilot, "scatter": ScatterProgram((pilot.at(wanted.dtype),), n_rows, n_rows)})


def leveraged(sums: ScatterSums, *, wanted: Wanted, pilot: NystroemMap) -> Reply:
    """The program that draws rows by leverage; the ridge gives count / 2 effective degrees of freedom."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    values, vectors = np.linalg.eigh(unpack(sums.gram, pilot.n_features))
    lam = ridge_for(values, wanted.count / 2)
    root = vectors / np.sqrt(np.maximum(values, 0.0) + lam)
    return Reply(None, {"landmarks": wanted.sample(wanted.count, 1, Leverage(pilot.at(wanted.dtype), root, lam))})


def finish(sums: TreeTotal, *, wanted: Wanted, before: RowSample | None) -> NystroemMap:
    """The map of the landmarks of all passes."""
    return wanted.map(sampled(sums, before))


def draw_landmarks(
    params: dict, X: Table, weight: Table | None, dtype: np.dtype, rng: np.random.Generator, progress: Progress
) -> tuple[NystroemMap, np.ndarray]:
    """The map for an estimator's parameters, and the group of each input."""
    tables, names = [X, weight], ["X", "sample_weight"]

    def moments(program: TreeProgram) -> Any:
        return sum_small(program, tables, names, progress)

    looked = {**params, "n_terms": START_TERMS}
    found = find_sigma(looked, X.n_columns, X.input_coords, moments, lifted=False)
    rows, count = Rows(tables, names), int(params["n_components"])
    wanted = Wanted(found.kernel, found.sigma, found.skew, dtype, count, int(rng.integers(2**62)))
    features = learn_landmarks(engine_for(rows.is_lazy, params["place"]), rows, wanted, params["landmarks"], progress)
    drawn, kept = len(features.numbers), features.n_features
    if kept < (1 - LEFT_OUT) * drawn:
        left = f"{drawn - kept:,} directions are rounding at this sigma"
        progress.say(f"{drawn:,} landmarks make {kept:,} features: {left}")
    if drawn < count:
        warnings.warn(
            f"n_components={count}, but X gives {len(features.numbers)} landmarks (a row without weight, or equal to "
            "another, is not drawn); use fewer",
            UserWarning,
            stacklevel=5,
        )
    return features, found.groups
