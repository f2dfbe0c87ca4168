"""A search: many candidates trained side by side, on one or several folds, losers dropped at rungs (learn/halving.py).

Candidates share bundles, each of which is trained by a method of learn/network.py on each fold: an iteration is an
epoch of all of them. The loss of a candidate is the mean over the folds of its least held-out loss.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.learn.halving import those_left
from dkl.learn.history import Column, History
from dkl.learn.network import SAVED_SECONDS, Train
from dkl.learn.network_steps import Trained, Training
from dkl.learn.run import Method, Row, Run, Step

HISTORY = {
    "epoch": Column("passes over the rows that train", whole=True),
    "validation_loss": Column("least held-out loss so far of the best candidate, mean over the folds"),
    "best": Column("number of that candidate", whole=True),
    "candidates": Column("candidates that have not been dropped", whole=True),
    "trained": Column("those of them that are still trained", whole=True),
}


class Searching(NamedTuple):
    """A search under way: every bundle on every fold, bundle by bundle."""

    trainings: tuple[Training, ...]
    dropped: np.ndarray  # (S,), epoch at which a candidate was dropped, 0 if it was not
    epoch: int = 0


class Searched(NamedTuple):
    """The end of a search; arrays are (candidates, folds) or (candidates,)."""

    loss: np.ndarray  # least held-out loss
    epoch: np.ndarray  # of that loss
    diverged: np.ndarray
    dropped: np.ndarray
    trained: tuple[Trained, ...]

    @property
    def score(self) -> np.ndarray:
        """Mean loss over the folds."""
        return np.asarray(self.loss.mean(axis=1))

    @property
    def best(self) -> int:
        """The number of the candidate with the least loss, among those that were not dropped."""
        return int(np.argmin(np.where(self.dropped == 0, self.score, np.inf)))


@dataclass(frozen=True)
class Search(Method[Searching, Searched]):
    """Epochs of all bundles; at the rungs the best 1 / eta of the candidates go on."""

    trains: Sequence[Train]  # bundle by bundle, each on every fold
    members: Sequence[np.ndarray]  # the candidates of each bundle
    folds: int
    rungs: tuple[int, ...]
    eta: float
    epochs: int
    state: ClassVar[type] = Searching
    history: ClassVar[dict[str, Column]] = HISTORY

    @property
    def count(self) -> int:
        """Candidates."""
        return sum(map(len, self.members))

    def begin(self, run: Run) -> Searching:
        """All candidates at their start."""
        return Searching(tuple(train.begin(run) for train in self.trains), np.zeros(self.count, int))

    def portable(self, run: Run, state: Searching) -> Searching:
        """The state with its numbers."""
        trainings = [train.portable(run, one) for train, one in zip(self.trains, state.trainings, strict=True)]
        return state._replace(trainings=tuple(trainings))

    def step(self, run: Run, state: Searching) -> Step[Searching]:
        """An epoch of every bundle on every fold; a long one in several parts."""
        if state.epoch >= self.epochs:
            return Step(state, ended="max_iter")
        trainings, begun = list(state.trainings), time.monotonic()
        for i, train in enumerate(self.trains):
            while len(trainings[i].active) and trainings[i].epoch == state.epoch:
                # what stays where the solve runs has one name there, and the next bundle takes it
                trainings[i] = train.portable(run, train.step(run, trainings[i]).state)
                if time.monotonic() - begun > SAVED_SECONDS:
                    return Step(state._replace(trainings=tuple(trainings)))
        state = Searching(tuple(trainings), state.dropped, state.epoch + 1)
        state = self._dropped(run, state) if state.epoch in self.rungs else state
        return Step(state, self._row(state), self._ended(state))

    def end(self, run: Run, state: Searching, history: History) -> Searched:
        """What every candidate came to."""
        trained = tuple(
            train.end(run, one, history) for train, one in zip(self.trains, state.trainings, strict=True)
        )  # fmt: skip
        loss, epoch, diverged = (self._by_candidate(state, name) for name in ("loss", "epoch_of_best", "diverged"))
        return Searched(loss, epoch, np.any(diverged, axis=1), state.dropped, trained)

    def of(self, candidate: int) -> tuple[list[int], int]:
        """Which trainings a candidate has, one for each fold, and its number in their bundle."""
        bundle = next(b for b, own in enumerate(self.members) if candidate in own)
        number = int(np.flatnonzero(self.members[bundle] == candidate)[0])
        return [bundle * self.folds + k for k in range(self.folds)], number

    def _by_candidate(self, state: Searching, name: str) -> np.ndarray:
        """(S, folds): a figure of every candidate on every fold."""
        found = [getattr(one, name) for one in state.trainings]
        bundles = [np.stack(found[i : i + self.folds], axis=1) for i in range(0, len(found), self.folds)]
        return np.concatenate(bundles)

    def _scores(self, state: Searching) -> np.ndarray:
        return np.asarray(self._by_candidate(state, "loss").mean(axis=1))

    def _dropped(self, run: Run, state: Searching) -> Searching:
        """The state after a rung."""
        alive = np.flatnonzero(state.dropped == 0)
        if len(alive) < 2:
            return state
        left, trainings = those_left(self._scores(state), alive, self.eta), list(state.trainings)
        for i, train in enumerate(self.trains):
            numbers = np.flatnonzero(np.isin(self.members[i // self.folds], left))
            trainings[i] = train.keep(run, trainings[i], np.intersect1d(trainings[i].active, numbers))
        dropped = state.dropped.copy()
        dropped[np.setdiff1d(alive, left)] = state.epoch
        return Searching(tuple(trainings), dropped, state.epoch)

    def _row(self, state: Searching) -> Row:
        """The best candidate's loss, and how many are left."""
        scores = np.where(state.dropped == 0, self._scores(state), np.inf)
        best, left = int(np.argmin(scores)), int((state.dropped == 0).sum())
        bundles = range(0, len(self.trains), self.folds)
        active = [{int(s) for one in state.trainings[i : i + self.folds] for s in one.active} for i in bundles]
        values: dict[str, float | np.ndarray] = {
            "epoch": state.epoch, "validation_loss": float(scores[best]), "best": best, "candidates": left,
            "trained": sum(map(len, active)),
        }  # fmt: skip
        where = f"epoch {state.epoch}, {left} of {self.count} candidates, loss {scores[best]:.4g}"
        return Row(where, self.trains[0].kept.n_rows, values)

    def _ended(self, state: Searching) -> str:
        """Why the search has ended, if it has."""
        if not any(len(one.active) for one in state.trainings):
            return "diverged" if all(one.diverged.all() for one in state.trainings) else "early_stopping"
        return "max_iter" if state.epoch >= self.epochs else ""
