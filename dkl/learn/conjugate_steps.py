"""Ridge without a gram, where the solve runs: sums in, scalars out; vectors, axes and the next pass stay there.

    (scale^2 (P - m m'/w) + lam I) x = scale R - m sy/w      one system for each fold left out, alpha and output

P v is a pass (sums/products.py); m, R, sy and w are the first sums of the rows that a system sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.learn.alpha import FLOOR
from dkl.learn.moments import cross_of
from dkl.solvers.conjugate_gradients import Conjugate, Precondition, asked, begin, stepped
from dkl.solvers.preconditioner import Preconditioner, from_rows
from dkl.solvers.ridge import Moments, centred_cross
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.held_out import ErrorSums, HeldOutProgram
from dkl.sums.products import ALL, ProductProgram, ProductSums, pieces, tile_of
from dkl.sums.sample import RowSample
from dkl.sums.tree import TreeTotal

CLOSE, CLOSER, LEAST_TOL = 0.1, 0.05, 1e-4
"""The residual of the choice over the share of y's variance that is unexplained: at most, and of what goes on; and the
smallest residual that this can ask for."""


@dataclass(frozen=True)
class ConjugateOptions:
    """alpha: one number, one for each output, or (choose=True) the list of the K-fold choice.

    tol is the relative residual |r| / |b| of the weights. The choice needs less: its systems end at choice_tol, as the
    squared error of held-out rows differs from that of the solution by about that part of the variance of y. They go on
    if the best error turns out to be so small that this matters.
    """

    alpha: np.ndarray
    fit_intercept: bool
    choose: bool = False
    own: bool = False  # whether alpha is the library's choice: never below the floor
    tol: float = 1e-6
    choice_tol: float = 1e-3
    max_iter: int = 200  # of the weights, and of the choice
    sample: int = 3000  # rows whose features make the preconditioner; 0: none
    tested: int = 0  # folds that the choice holds out in turn; 0: all
    only_choice: bool = False  # whether it ends with the scores of the choice


@dataclass(frozen=True)
class Systems:
    """What all systems share: the pass of their folds, and the options."""

    gram: GramProgram
    options: ConjugateOptions

    @property
    def whole(self) -> GramProgram:
        """The pass of all rows, without folds."""
        return replace(self.gram, folds=1, held=None, unseen=None)

    @property
    def tested(self) -> int:
        """Folds that are held out."""
        return min(self.options.tested or self.gram.folds, self.gram.folds)

    @property
    def drawn(self) -> int:
        """Rows that are drawn: no more than half of the features."""
        d = self.gram.features.map.n_features
        return max(1, min(self.options.sample, -(-d // 2))) if self.options.sample else 1


class Columns(NamedTuple):
    """The systems of one phase, those of one fold after the other."""

    held: np.ndarray  # (q,), the fold that is left out, or ALL
    output: np.ndarray  # (q,)
    lam: np.ndarray  # (q,)


class Told(NamedTuple):
    """What a step came to."""

    objective: float
    residual: float  # the largest relative one
    active: int
    check: bool
    stalled: bool


class Opened(NamedTuple):
    """What the first pass came to: the alphas of the first phase, and about the largest eigenvalue."""

    alphas: np.ndarray  # (alphas, outputs)
    largest: float


class Chosen(NamedTuple):
    """Minus the mean squared errors (alphas, folds), the number of the best alpha, a smaller tol if it is needed."""

    scores: np.ndarray
    best: int
    tol: float | None = None


def columns_of(problem: Systems, alphas: np.ndarray, choosing: bool) -> Columns:
    """The systems of a phase: of each fold, alpha and output; or of all rows."""
    targets = problem.gram.targets
    folds = np.arange(problem.tested) if choosing else np.array([ALL])
    each, outputs = alphas.size, alphas.shape[1]
    lam = np.tile(alphas.ravel() / targets.weight_unit, len(folds))
    output = np.tile(np.arange(outputs), len(folds) * len(alphas))
    return Columns(np.repeat(folds, each), output, lam)


def seen_by(problem: Systems, moments: GramSums, held: int) -> Moments:
    """The first sums of the rows that a system sees."""
    folds = [fold for fold in range(len(moments.weight)) if fold != held]
    found = cross_of(moments, folds, problem.gram.features.map.scale, problem.gram.targets)
    if not found.weight or (held != ALL and not moments.weight[held]):
        which = "sample_weight is zero for every row" if held == ALL else f"fold {held}, or the others, have no weight"
        raise ValueError(f"{which} (a total of {found.weight:g}); give some rows a positive weight, or use fewer folds")
    return found


def targets_of(problem: Systems, moments: GramSums, columns: Columns) -> np.ndarray:
    """The right sides (q, d)."""
    out = np.empty((len(columns.held), moments.feature_sum.shape[1]))
    for held in np.unique(columns.held).tolist():
        own = columns.held == held
        cross = centred_cross(seen_by(problem, moments, held), problem.options.fit_intercept)
        out[own] = cross.T[columns.output[own]]
    return out


def multiplied(
    problem: Systems, moments: GramSums, columns: Columns, vectors: np.ndarray, product: np.ndarray
) -> np.ndarray:
    """The matrices of the systems times the vectors, from the pass over unscaled features."""
    out = problem.gram.features.map.scale**2 * product + columns.lam[:, None] * vectors
    if problem.options.fit_intercept:
        for held in np.unique(columns.held).tolist():
            own, seen = columns.held == held, seen_by(problem, moments, held)
            out[own] -= np.outer(vectors[own] @ seen.feature_sum / seen.weight, seen.feature_sum)
    return np.asarray(out)


def preconditioned(moments: GramSums, columns: Columns, by: Preconditioner | None) -> Precondition:
    """M of some systems: a fold's rows are missing in theirs."""
    total = float(moments.weight.sum())
    missing = np.where(columns.held == ALL, 0.0, moments.weight[np.maximum(columns.held, 0)])
    share = (total - missing) / total

    def apply(systems: np.ndarray, residual: np.ndarray) -> np.ndarray:
        if by is None:
            return residual.copy()
        return by.apply(residual, columns.lam[systems], share[systems])

    return apply


def made_preconditioner(problem: Systems, moments: GramSums, sample: RowSample) -> Preconditioner:
    """That of the rows that were drawn, in the order of their numbers."""
    blocks, d = problem.gram.features, moments.feature_sum.shape[1]
    rows = sample.rows[np.argsort(sample.numbers)]
    Psi, total = np.empty((len(rows), d), blocks.dtype), float(moments.weight.sum())
    T = blocks.prepare(rows)
    for some in pieces(len(rows), tile_of(d, blocks.dtype)):
        blocks.write(T[some], Psi[some])
    if problem.options.fit_intercept:
        Psi -= (moments.feature_sum.sum(axis=0) / total).astype(blocks.dtype)
    return from_rows(Psi, blocks.map.scale**2 * total / len(rows))


def sampled(sums: TreeTotal[RowSample]) -> Reply[int]:
    """The rows that were drawn stay here."""
    sample = sums.tree.total()
    if sample is None or not len(sample.keys):
        drawn = 0 if sample is None else len(sample.keys)
        raise ValueError(f"sample_weight is zero for every row ({drawn} can be drawn); give some a positive weight")
    return Reply(len(sample.keys), {"sample": sample})


def reopened(sums: TreeTotal[RowSample], *, problem: Systems, moments: GramSums) -> Reply[None]:
    """The preconditioner of a fit that is resumed."""
    return Reply(None, {"preconditioner": made_preconditioner(problem, moments, sums.tree.total())})


def opened(sums: GramSums, *, problem: Systems, sample: RowSample) -> Reply[Opened]:
    """The first systems, at zero, and their first pass."""
    options, targets = problem.options, problem.gram.targets
    seen = seen_by(problem, sums, ALL)
    made = made_preconditioner(problem, sums, sample)
    largest = max(made.largest, float(seen.feature_sum @ seen.feature_sum) / seen.weight)
    alpha = np.asarray(options.alpha, np.float64).reshape(-1)
    if options.own:
        alpha = np.unique(np.maximum(alpha, FLOOR * largest * targets.weight_unit))
    shape = (alpha.size, targets.n_outputs) if options.choose else (1, targets.n_outputs)
    alphas = np.broadcast_to(alpha[:, None] if options.choose else alpha, shape).copy()
    columns = columns_of(problem, alphas, options.choose)
    by = made if options.sample else None
    at = begin(targets_of(problem, sums, columns), preconditioned(sums, columns, by))
    tol = options.choice_tol if options.choose else options.tol
    kept = {"moments": sums, "preconditioner": by, "at": at, "program": product_of(problem, columns, at, tol)}
    return Reply(Opened(alphas, largest), kept)


def product_of(problem: Systems, columns: Columns, at: Conjugate, tol: float) -> ProductProgram:
    """The pass that the state asks for; one vector at least, as a pass has to be made."""
    wanted = asked(at, tol)
    whole = bool((columns.held == ALL).all())
    return ProductProgram(problem.whole if whole else problem.gram, wanted.vectors, columns.held[wanted.systems])


def scores_of(problem: Systems, moments: GramSums, columns: Columns, at: Conjugate) -> HeldOutProgram:
    """The pass of the errors of held-out rows."""
    scale = problem.gram.features.map.scale
    intercept = intercepts(problem, moments, columns, at.x)
    return HeldOutProgram(problem.gram, scale * at.x, intercept, columns.held, columns.output)


def intercepts(problem: Systems, moments: GramSums, columns: Columns, x: np.ndarray) -> np.ndarray:
    """(sy - m'x) / w of each system, or zero."""
    out = np.zeros(len(x))
    if problem.options.fit_intercept:
        for held in np.unique(columns.held).tolist():
            own, seen = columns.held == held, seen_by(problem, moments, held)
            out[own] = (seen.target_sum[columns.output[own]] - x[own] @ seen.feature_sum) / seen.weight
    return out


def objective_of(problem: Systems, moments: GramSums, columns: Columns, at: Conjugate) -> float:
    """(square loss + lam |x|^2) / weight over all outputs, the mean of all folds and alphas: yy - x'(b + r)."""
    unit = np.broadcast_to(problem.gram.targets.unit, (problem.gram.targets.n_outputs,))
    value = -np.einsum("qd,qd->q", at.x, at.target + at.residual)
    for held in np.unique(columns.held).tolist():
        own, seen = columns.held == held, seen_by(problem, moments, held)
        mean = seen.target_sum**2 / seen.weight if problem.options.fit_intercept else 0.0
        value[own] += (seen.target_square - mean)[columns.output[own]]
        value[own] *= unit[columns.output[own]] ** 2 / seen.weight
    return float(value.sum()) * len(unit) / len(value)


def advance(
    sums: ProductSums, *, problem: Systems, moments: GramSums, preconditioner: Preconditioner | None, at: Conjugate,
    alphas: np.ndarray, choosing: bool, last: bool, tol: float,
) -> Reply[Told]:  # fmt: skip
    """One step of all systems, and the pass after it: of held-out rows once the systems of the choice have ended."""
    columns, wanted = columns_of(problem, alphas, choosing), asked(at, tol)
    own = Columns(*(part[wanted.systems] for part in columns))
    product = multiplied(problem, moments, own, wanted.vectors, sums.product)
    at = stepped(at, product, preconditioned(moments, columns, preconditioner), tol)
    active = int(at.active(tol).sum())
    told = Told(objective_of(problem, moments, columns, at), float(at.relative.max()), active, at.check, at.stalled)
    ends = choosing and (last or not active)
    following = scores_of(problem, moments, columns, at) if ends else product_of(problem, columns, at, tol)
    return Reply(told, {"at": at, "program": following})


def scored(
    sums: ErrorSums, *, problem: Systems, moments: GramSums, preconditioner: Preconditioner | None, at: Conjugate,
    alphas: np.ndarray, tol: float,
) -> Reply[Chosen]:  # fmt: skip
    """The best alpha; the systems of all rows begin at the mean of its folds. Or those of the choice go on."""
    folds, targets = problem.tested, problem.gram.targets
    unit = np.broadcast_to(targets.unit, (targets.n_outputs,))
    error = (sums.error.reshape(folds, *alphas.shape) * unit**2).mean(axis=2) / moments.weight[:folds, None]
    scores = -error.T
    best = int(np.argmax(scores.mean(axis=1)))
    share = unexplained(problem, moments, -float(scores[best].mean()))
    if tol > max(LEAST_TOL, CLOSE * share) and not at.active(tol).any():
        wanted = max(LEAST_TOL, CLOSER * share)
        columns = columns_of(problem, alphas, True)
        return Reply(Chosen(scores, best, wanted), {"at": at, "program": product_of(problem, columns, at, wanted)})
    x = at.x.reshape(folds, *alphas.shape, -1)[:, best].mean(axis=0)
    columns = columns_of(problem, alphas[[best]], False)
    made = preconditioned(moments, columns, preconditioner)
    at = begin(targets_of(problem, moments, columns), made, x)
    return Reply(Chosen(scores, best), {"at": at, "program": product_of(problem, columns, at, problem.options.tol)})


def unexplained(problem: Systems, moments: GramSums, error: float) -> float:
    """A mean squared error over the variance of y."""
    seen, unit = seen_by(problem, moments, ALL), problem.gram.targets.unit
    variance = float(((seen.target_square / seen.weight - (seen.target_sum / seen.weight) ** 2) * unit**2).mean())
    return error / variance if variance > 0 else 1.0
