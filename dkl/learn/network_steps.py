"""One step of a bundle of networks, where the solve runs: sums in, the next parameters and their program stay there.

v <- mu v - rate (mean gradient of the step's rows + penalties),   theta <- theta + v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.engine.protocol import Ref
from dkl.solvers.momentum import Moving, moved
from dkl.sums.networks import Network, NetworkSums, Parameters

HUGE = 1e100
"""A number above this has no gradient worth the name."""


@dataclass(frozen=True)
class Rates:
    """How each candidate is trained; the momentum rises from `low` to `high` over `ramp` epochs."""

    rate: np.ndarray  # (S,)
    low: np.ndarray
    high: np.ndarray
    ramp: np.ndarray

    def momentum(self, epoch: int) -> np.ndarray:
        """mu_e of each candidate."""
        risen = np.minimum(epoch / np.maximum(self.ramp, 1e-9), 1.0)
        return np.asarray(self.low + (self.high - self.low) * risen)


class Training(NamedTuple):
    """A bundle in training. Arrays of figures have one entry for each candidate that there was at the start."""

    moving: Moving | Ref[Moving]  # of the active candidates
    best: Parameters  # of all candidates: the best so far
    active: np.ndarray  # numbers of candidates that are still trained
    loss: np.ndarray  # of the best: held-out, or of the last epoch
    epoch_of_best: np.ndarray
    ended: np.ndarray  # epoch after which a candidate was stopped, 0 if it is active
    diverged: np.ndarray  # bool
    epoch: int = 0
    step: int = 0
    sums: np.ndarray = np.zeros((2, 0))  # of the epoch so far: loss and wrong weight of active candidates
    weight: float = 0.0
    program: Ref[Any] | None = None  # of the next step
    turn: int = 0  # which of two names `moving` has where the solve runs: what is cut short leaves it as it was


class Trained(NamedTuple):
    """What training came to, of all candidates."""

    parameters: Parameters
    velocity: Parameters  # of the active candidates, at the end; zero, if there is none
    loss: np.ndarray
    epoch: np.ndarray
    diverged: np.ndarray
    state: Training


class Told(NamedTuple):
    """What the solve says of a step."""

    loss: np.ndarray
    wrong: np.ndarray
    weight: float


def by_owner(bundle: Network, values: np.ndarray) -> dict[str, Any]:
    """A number of each candidate, for every number of every parameter."""
    if bundle.count == 1:
        return {name: float(values[0]) for name in bundle.owner}
    return {name: values[own] for name, own in bundle.owner.items()}


def advance(
    sums: NetworkSums, *, network: Network, moving: Moving, rates: dict[str, Any], mu: dict[str, Any], name: str
) -> Reply[Told]:
    """The parameters after a step, under a name, and the pass of the next one; rows without weight move nothing."""
    total = sums.total()
    if total is None or not total.weight:
        nothing = np.zeros(network.count)
        return Reply(Told(nothing, nothing, 0.0), {name: moving, "program": network.program(moving.parameters)})
    with np.errstate(over="ignore", invalid="ignore"):
        gradients = {name: part / total.weight for name, part in total.gradients.items()}
        after = moved(moving, network.bent(moving.parameters, gradients), rates, mu)
        after = Moving(network.allowed(after.parameters), after.velocity)
    kept = {name: after, "program": network.program(after.parameters)}
    return Reply(Told(total.loss, total.wrong, total.weight), kept)


def total_of(sums: NetworkSums) -> Any:
    """The sums themselves."""
    return sums.total()


def finite(network: Network, parameters: Parameters) -> np.ndarray:
    """(S,): whether all numbers of a candidate are finite, and none is huge."""
    fine = np.ones(network.count, bool)
    for name, values in parameters.items():
        bad = np.broadcast_to(network.owner[name], values.shape)[~(np.abs(values) < HUGE)]
        fine[bad] = False
    return fine
