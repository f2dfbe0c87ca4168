"""Training a bundle of networks: gradient steps with momentum, epochs, held-out rows, early stopping.

    v <- mu_e v - rate (mean gradient of the step's rows + penalties),   theta <- theta + v

An iteration is an epoch and the held-out loss after it. The parameters of a step stay where the solve runs, and travel
once to each worker; sums of gradients are exact or in a fixed tree (sums/networks.py). This method knows parameters by
their names and owners alone: what the networks compute is their program's affair.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.engine.interrupt import check
from dkl.engine.kept import KeptSource
from dkl.engine.threads import one_blas_thread
from dkl.learn.batches import Batches
from dkl.learn.history import Column, History
from dkl.learn.network_steps import Rates, Trained, Training, advance, by_owner, finite, total_of
from dkl.learn.run import Method, Row, Run, Step
from dkl.solvers.momentum import Moving, at_rest
from dkl.sums.networks import Network, Parameters, put, taken

SAVED_SECONDS = 30.0
"""An epoch that takes longer is saved meanwhile."""
HISTORY = {
    "epoch": Column("passes over the rows that train", whole=True),
    "objective": Column("mean loss of the rows that train, before the step that took them"),
    "error_rate": Column("share of those rows whose class was not chosen"),
    "validation_loss": Column("mean loss of the rows held out", optional=True),
    "validation_error_rate": Column("share of those rows whose class was not chosen", optional=True),
    "momentum": Column("factor of the last velocity"),
    "candidates": Column("networks that are still trained", whole=True),
}
"""Of several candidates the best one's figures."""


@dataclass(frozen=True)
class Train(Method[Training, Trained]):
    """Epochs over kept rows; with `patience`, until the held-out loss has not fallen for so many epochs."""

    network: Network
    rates: Rates
    batches: Batches
    kept: KeptSource
    epochs: int
    patience: int | None = None  # None: nothing is held out
    velocity: Parameters | None = None  # at the start, of networks that go on
    before: int = 0  # epochs that they have already had
    history = HISTORY
    state = Training
    one: dict[bytes, Network] = field(default_factory=dict, repr=False, compare=False)

    def begin(self, run: Run) -> Training:
        """All candidates at their start, with the held-out loss there."""
        S = self.network.count
        start = self.network.start
        moving = at_rest(start) if self.velocity is None else Moving(dict(start), dict(self.velocity))
        loss = np.full(S, np.inf)
        if self.patience is not None:  # an epoch has to be better than none
            tested = self._tested(run, self.network, start)[0]
            loss = np.where(np.isfinite(tested), tested, np.inf)
        return Training(
            moving, dict(start), np.arange(S), loss, np.zeros(S, int), np.zeros(S, int),
            np.zeros(S, bool), sums=np.zeros((2, S)),
        )  # fmt: skip

    def portable(self, run: Run, state: Training) -> Training:
        """The state with its numbers, without the program that follows from them."""
        return state._replace(moving=self._here(run, state), program=None)

    def step(self, run: Run, state: Training) -> Step[Training]:
        """An epoch and its held-out loss; a long one in several parts."""
        if state.epoch >= self.epochs:
            return Step(state, ended="max_iter")
        with one_blas_thread():
            state = self._steps(run, state)
            if state.step < self.batches.steps:
                return Step(state)
            return self._after_epoch(run, state)

    def end(self, run: Run, state: Training, history: History) -> Trained:
        """The best parameters of each candidate; without held-out rows the last ones."""
        moving = self._here(run, state)
        if self.patience is None and len(state.active):
            state = state._replace(best=put(state.best, self.network.owner, state.active, moving.parameters))
        velocity = moving.velocity if len(state.active) else at_rest(state.best).velocity
        state = state._replace(moving=moving, program=None)
        return Trained(state.best, velocity, state.loss, state.epoch_of_best, state.diverged, state)

    def keep(self, run: Run, state: Training, chosen: np.ndarray) -> Training:
        """The state with some of the active candidates alone, between two epochs; the others have ended."""
        gone = np.setdiff1d(state.active, chosen)
        if not len(gone):
            return state
        moving, bundle = self._here(run, state), self._bundle(state.active)
        numbers = np.searchsorted(state.active, chosen)
        best = state.best
        if self.patience is None:
            best = put(best, self.network.owner, state.active, moving.parameters)
        left = Moving(*(taken(part, bundle.owner, numbers) for part in moving))
        ended = state.ended.copy()
        ended[gone] = state.epoch
        return state._replace(
            moving=left, best=best, active=chosen, ended=ended, sums=np.zeros((2, len(chosen))), program=None
        )  # fmt: skip

    def chosen(self, state: Training) -> np.ndarray:
        """Which of the active candidates go on after an epoch: those that have not waited too long for a better one."""
        fine = ~state.diverged[state.active]
        if self.patience is not None:
            fine &= state.epoch - state.epoch_of_best[state.active] < self.patience
        return np.asarray(state.active[fine])

    def _bundle(self, active: np.ndarray) -> Network:
        """The network of the active candidates."""
        if len(active) == self.network.count:
            return self.network
        key = active.tobytes()
        if key not in self.one:
            self.one.clear()
            self.one[key] = self.network.taken(active)
        return self.one[key]

    def _here(self, run: Run, state: Training) -> Moving:
        """Parameters and velocities, wherever they are."""
        return state.moving if isinstance(state.moving, Moving) else run.engine.take(state.moving)

    def _steps(self, run: Run, state: Training) -> Training:
        """The steps of an epoch that are left, or those of half a minute."""
        engine, steps, bundle = run.engine, self.batches.epoch(self.before + state.epoch), self._bundle(state.active)
        moving, program, turn = state.moving, state.program, 1 - state.turn
        name = f"moving {turn}"  # a stop goes back to `state`, whose parameters have the other name
        if program is None:
            here = self._here(run, state)
            program = engine.keep("program", bundle.program(here.parameters))
            moving = engine.keep(name, here)
        network = engine.keep("network", bundle)
        rates = by_owner(bundle, self.rates.rate[state.active])
        mu = by_owner(bundle, self.rates.momentum(self.before + state.epoch)[state.active])
        begun, sums, weight, number = time.monotonic(), state.sums, state.weight, state.step
        run.progress.name(f"epoch {state.epoch + 1}").begin(self.kept.n_rows)
        try:
            for pieces in steps[number:]:
                check()
                added: Any = engine.sum(program, self.kept, run.progress, pieces)
                told, left = engine.solve(advance, added, network=network, moving=moving, rates=rates, mu=mu, name=name)
                moving, program = left[name], left["program"]
                sums, weight, number = sums + np.array([told.loss, told.wrong]), weight + told.weight, number + 1
                if time.monotonic() - begun > SAVED_SECONDS:
                    break
        finally:
            run.progress.end()
        run.meter.passes += number == len(steps)
        return state._replace(moving=moving, program=program, sums=sums, weight=weight, step=number, turn=turn)

    def _after_epoch(self, run: Run, state: Training) -> Step[Training]:
        """What the epoch has come to, and who goes on."""
        moving, bundle = self._here(run, state), self._bundle(state.active)
        loss, wrong = state.sums / max(state.weight, np.finfo(float).tiny)
        fine = np.isfinite(loss) & finite(bundle, moving.parameters)
        state = state._replace(epoch=state.epoch + 1, step=0, sums=np.zeros_like(state.sums), weight=0.0)
        tested = self._tested(run, bundle, moving.parameters) if self.patience is not None and fine.any() else None
        judged = loss if tested is None else tested[0]
        state = self._judged(state, bundle, moving.parameters, judged, fine & np.isfinite(judged))
        row = self._row(state, loss, wrong, tested, fine)
        state = self.keep(run, state, self.chosen(state))
        return Step(state, row, self._ended(state))

    def _tested(self, run: Run, bundle: Network, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Mean loss and share of wrong rows of the rows held out."""
        program, pieces = bundle.program(parameters, gradient=False), self.batches.held_out()
        run.progress.name("held-out rows").begin(self.kept.n_rows)
        try:
            added: Any = run.engine.sum(program, self.kept, run.progress, pieces)
        finally:
            run.progress.end()
        total = run.engine.solve(total_of, added)
        weight = 0.0 if total is None else total.weight
        if not weight:
            raise ValueError(
                f"the rows held out by validation have a weight of {weight:g}; hold out a larger share, or use "
                "validation=None"
            )
        return total.loss / total.weight, total.wrong / total.weight

    def _judged(
        self, state: Training, bundle: Network, parameters: Parameters, judged: np.ndarray, fine: np.ndarray
    ) -> Training:
        """The state with the best points so far, and who has diverged."""
        active, diverged = state.active, state.diverged.copy()
        diverged[active[~fine]] = True
        better = np.flatnonzero(fine & ((judged < state.loss[active]) if self.patience is not None else fine))
        loss, epoch, best = state.loss.copy(), state.epoch_of_best.copy(), state.best
        loss[active[better]], epoch[active[better]] = judged[better], state.epoch
        if self.patience is not None and len(better):
            best = put(best, self.network.owner, active[better], taken(parameters, bundle.owner, better))
        return state._replace(diverged=diverged, loss=loss, epoch_of_best=epoch, best=best)

    def _row(
        self, state: Training, loss: np.ndarray, wrong: np.ndarray, tested: tuple[np.ndarray, np.ndarray] | None,
        fine: np.ndarray,
    ) -> Row:  # fmt: skip
        """The figures of the best active candidate."""
        judged = np.where(fine, loss if tested is None else tested[0], np.inf)
        best = int(np.argmin(np.where(np.isfinite(judged), judged, np.inf)))
        values: dict[str, float | np.ndarray] = {
            "epoch": state.epoch, "objective": float(loss[best]), "error_rate": float(wrong[best]),
            "momentum": float(self.rates.momentum(self.before + state.epoch - 1)[state.active[best]]),
            "candidates": len(state.active),
        }  # fmt: skip
        if tested is not None:
            values |= {"validation_loss": float(tested[0][best]), "validation_error_rate": float(tested[1][best])}
        return Row(f"epoch {state.epoch}", self.kept.n_rows, values)

    def _ended(self, state: Training) -> str:
        """Why training has ended, if it has."""
        if not len(state.active):
            return "diverged" if state.diverged.all() else "early_stopping"
        return "max_iter" if state.epoch >= self.epochs else ""
