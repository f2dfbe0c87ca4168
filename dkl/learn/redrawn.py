"""Learn sigma for the log loss: three passes for each iteration, over some of the rows and one draw of frequencies.

    sums -> ridge of all folds -> scores -> adjoints -> pullback -> a step of Adam      (learn/log_loss.py)

Every iteration has its own frequencies and its own blocks, so that sigma suits the kernel and not a draw of it; the
mean of the second half counts. The client hears scalars and sigma. After every iteration the whole state can be written
down, and going on from it gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.row_readers import Range
from dkl.engine.threads import one_blas_thread
from dkl.learn.bandwidth import Learned
from dkl.learn.log_loss import (
    FIRST,
    LAST,
    LATER,
    SHARPNESS,
    Chosen,
    Drift,
    Redrawn,
    chosen,
    pull,
    score,
    step,
    trials,
)
from dkl.learn.objective import Unweighted, lam_of
from dkl.learn.stages import turn
from dkl.learn.standing import Standing, open_standing, written
from dkl.learn.walk import Walk
from dkl.solvers.adam import Adam, begin
from dkl.store.checkpoint import Checkpoint
from dkl.sums.gram import GramProgram

EVERY = 10
"""Iterations after which alpha and k are looked at again."""
VECTORS = ("x", "mean", "square", "total", "lower", "upper")


def learn_redrawn(
    engine: Any,
    rows: Rows,
    problem: Redrawn,
    first: GramProgram,
    share: float | None,
    max_time: float | None,
    progress: Progress,
    checkpoint: Checkpoint | None = None,
    finish: bool = False,
) -> Learned:
    """Steps from the default start; `first` is a pass, of whatever frequencies. finish: take the point so far."""
    standing = open_standing(checkpoint, _read)
    walk = _Drifting(engine, rows, problem, first, share, max_time, progress, checkpoint, standing)
    try:
        with progress.on_one_line():
            walk.run(finish)
        end: Drift = engine.take(standing.search)
    finally:
        engine.forget()
    alpha, last = lam_of(end.log_lam, problem.targets), standing.history.columns["rows"][-1]
    return Learned(end.adam.end, alpha, standing.history, standing.reason, float("nan"), last / rows.n_rows)


class _Drifting(Walk):
    """One fit's way."""

    problem: Redrawn
    beginning = 0

    def __init__(
        self, engine: Any, rows: Rows, problem: Redrawn, first: GramProgram, share: float | None,
        max_time: float | None, progress: Progress, checkpoint: Checkpoint | None, standing: Standing,
    ) -> None:  # fmt: skip
        super().__init__(engine, rows, problem, progress, standing, max_time, problem.steps, checkpoint)
        self.first, self.share = first, share

    def to_the_end(self) -> None:
        """All steps, or as many as there is time for."""
        at, problem = self.standing, self.problem
        if at.search is None:
            at.search = Drift(begin(problem.parameters.begin(1.0), *problem.parameters.box()))
        drift: Drift = at.search
        if drift.adam.iteration >= problem.steps:  # a resumed fit may have a lower limit
            at.reason = at.reason or "max_iter"
        elif drift.adam.counted and drift.adam.iteration <= problem.steps // 2:  # or a higher one: another second half
            at.search = drift = drift._replace(adam=drift.adam.recounted())
        number, now = drift.adam.iteration, Chosen(drift.log_lam, drift.sharpness)
        if not at.reason:
            self.kept_problem = self.engine.keep("problem", problem)
            with one_blas_thread():  # as where the others are drawn
                drawn = self.first.with_map(problem.map(drift.adam.x, number))
            handles = {"search": self.engine.keep("search", drift), "program": self.engine.keep("program", drawn)}
        while not at.reason:
            handles, now = self._iterate(number, handles, now)
            number += 1
            at.search = handles["search"]
            at.reason = "max_iter" if number >= problem.steps else "max_time" if self.late() else ""
            self._keep()
        at.search = self.engine.take(at.search)
        self.progress.say(self.line())

    def _iterate(self, number: int, handles: dict, now: Chosen) -> tuple[dict, Chosen]:
        """One step; the blocks grow if a fold has no weight on them."""
        while True:
            blocks = turn(self.rows, self.first.features.map.n_features, self.share, number, self.standing.skipped)
            try:
                return self._on(blocks, number, handles, now)
            except Unweighted:
                if sum(stop - start for start, stop in blocks) == self.rows.n_rows:
                    raise
                self.standing.skipped += 1

    def _on(self, blocks: list[Range], number: int, handles: dict, now: Chosen) -> tuple[dict, Chosen]:
        problem, program, solve = self.kept_problem, handles["program"], self.engine.solve
        named = f"iteration {number + 1}"
        sums = self.sweep(program, blocks, f"{named}: adding up X")
        if number % EVERY == 0:
            tried, kept = solve(
                trials, sums, program=program, fit_intercept=self.problem.fit_intercept, alpha=self.problem.alpha,
                near=now.log_lam if number else None, factors=LATER if number else FIRST,
            )  # fmt: skip
            now = solve(
                chosen, self.sweep(kept["trials"], blocks, f"{named}: alpha"), log_lams=tried, sharpness=SHARPNESS
            )
        _, kept = solve(score, sums, problem=problem, program=program, at=now)
        scored = self.sweep(kept["scores"], blocks, f"{named}: scores")
        _, more = solve(
            pull, scored, problem=problem, program=program, solved=kept["solved"], weight=kept["weight"], at=now
        )
        pulled = self.sweep(more["pullback"], blocks, f"{named}: gradient")
        move, after = solve(
            step, pulled, problem=problem, program=program, search=handles["search"], found=more["found"], at=now
        )
        self.note(move, blocks)
        return after, now

    def _keep(self) -> None:
        """Write everything down, if the fit has a checkpoint."""
        if self.checkpoint is not None:
            drift = self.engine.take(self.standing.search)
            self.save(len(self.standing.history), written(self.standing, drift, _write))


def calibrated(
    engine: Any, rows: Rows, program: GramProgram, sums: Any, alpha: float, fit_intercept: bool, progress: Progress
) -> float:
    """alpha near the given one with the least log loss of held-out rows, in one pass; `sums` are those of `program`."""
    unit, blocks = program.targets.weight_unit, rows.blocks(program.rows_wanted)
    near = float(np.log(alpha / unit))
    try:
        tried, kept = engine.solve(
            trials, sums, program=program, fit_intercept=fit_intercept, alpha=None, near=near, factors=LAST
        )
        progress.name("choosing alpha").begin(rows.n_rows)
        try:
            scored = engine.sum(kept["trials"], rows, progress, blocks)
        finally:
            progress.end()
        best = engine.solve(chosen, scored, log_lams=tried, sharpness=SHARPNESS)
    finally:
        engine.forget()
    return lam_of(best.log_lam, program.targets)


def _write(arrays: dict, name: str, drift: Drift) -> None:
    adam = drift.adam
    arrays[f"{name}_vectors"] = (("part", "parameter"), np.stack([getattr(adam, part) for part in VECTORS]))
    numbers = [adam.iteration, adam.counted, drift.log_lam, drift.sharpness]
    arrays[f"{name}_scalars"] = (("number",), np.array(numbers, np.float64))


def _read(arrays: dict[str, np.ndarray], name: str) -> Drift:
    iteration, counted, log_lam, sharpness = arrays[f"{name}_scalars"].tolist()
    vectors = dict(zip(VECTORS, arrays[f"{name}_vectors"].copy(), strict=True))
    return Drift(Adam(**vectors, iteration=int(iteration), counted=int(counted)), log_lam, sharpness)
