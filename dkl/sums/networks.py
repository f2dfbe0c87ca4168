"""What a network is to the method that trains it, and what a pass over rows adds up for it.

    theta  named arrays of float64, of several candidates side by side
    sums   loss = sum w l,   wrong = weight of rows in another class,   weight = sum w,   gradients = d loss / d theta

A bundle is one program for several candidates, so that rows are read, and mapped, once for all. `owner` says whose
each number is: an array for each parameter that broadcasts against it. Sums are exact in any order (`ExactSums`), or
records in a fixed tree over the blocks (`TreeSums`) where no bound is known before the pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from dkl.sums.tree import TreeTotal

Parameters = dict[str, np.ndarray]
"""Arrays by name."""


class NetworkTotal(NamedTuple):
    """What was added up."""

    loss: np.ndarray  # (S,), of each candidate
    wrong: np.ndarray  # (S,), weight of rows whose class was not chosen
    weight: float
    gradients: Parameters  # empty, if none were asked for

    def __add__(self, other: NetworkTotal) -> NetworkTotal:  # type: ignore[override]
        gradients = {name: part + other.gradients[name] for name, part in self.gradients.items()}
        return NetworkTotal(self.loss + other.loss, self.wrong + other.wrong, self.weight + other.weight, gradients)


class NetworkSums(Protocol):
    """Sums of any kind (engine/protocol.py) that have a total."""

    refusal: tuple[int, str] | None

    def merge(self, other: Self) -> None:
        """self += other."""

    def copy(self) -> Self:
        """A record that can be added to."""

    def total(self) -> NetworkTotal | None:
        """The sum over all blocks; None without any."""


class Network(Protocol):
    """A frozen record: several candidates of one kind, and the parameters that training begins with."""

    @property
    def start(self) -> Parameters:
        """Where training begins."""

    @property
    def owner(self) -> Mapping[str, np.ndarray]:
        """For each parameter the candidate (0 .. S-1) of each number; it broadcasts against the parameter."""

    @property
    def count(self) -> int:
        """S, the number of candidates."""

    def program(self, parameters: Parameters, gradient: bool = True) -> Any:
        """The pass at these parameters: a Program of NetworkSums over kept rows (engine/kept.py)."""

    def bent(self, parameters: Parameters, gradients: Parameters) -> Parameters:
        """Gradients of the mean loss, and those of penalties with them; it may use the arrays up."""

    def allowed(self, parameters: Parameters) -> Parameters:
        """The nearest parameters that are allowed (a cap on norms); it may use the arrays up."""

    def taken(self, candidates: np.ndarray) -> Self:
        """The bundle of these candidates alone, given by their numbers here, in rising order."""


@dataclass
class ExactSums:
    """Sums on grids that bounds give (sums/order_free.py); any order of merges gives the same bits."""

    loss: np.ndarray
    wrong: np.ndarray
    weight: np.ndarray  # (1,)
    gradients: Parameters
    refusal: tuple[int, str] | None = None

    def merge(self, other: ExactSums) -> None:
        """self += other, exactly."""
        self.loss += other.loss
        self.wrong += other.wrong
        self.weight += other.weight
        for name, mine in self.gradients.items():
            mine += other.gradients[name]
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> ExactSums:
        """A record that can be added to."""
        gradients = {name: values.copy() for name, values in self.gradients.items()}
        return ExactSums(self.loss.copy(), self.wrong.copy(), self.weight.copy(), gradients, self.refusal)

    def total(self) -> NetworkTotal:
        """The sums."""
        return NetworkTotal(self.loss, self.wrong, float(self.weight[0]), self.gradients)


@dataclass
class TreeSums(TreeTotal[NetworkTotal]):
    """Records of blocks in a fixed tree over the numbers that the blocks have in the step."""

    def copy(self) -> TreeSums:
        """A tree that can be added to."""
        return TreeSums(self.tree.copy(), self.refusal)

    def total(self) -> NetworkTotal | None:
        """The sum over all blocks; None without any."""
        return self.tree.total() if self.tree.nodes else None


def taken(parameters: Mapping[str, np.ndarray], owner: Mapping[str, np.ndarray], candidates: np.ndarray) -> Parameters:
    """The numbers of some candidates alone; an array of one candidate that is not among them is left out."""
    found: Parameters = {}
    for name, values in parameters.items():
        axis, own = axis_of(owner[name])
        keep = np.isin(own, candidates)
        if keep.any():
            found[name] = values if keep.all() else np.compress(keep, values, axis)
    return found


def put(
    parameters: Parameters, owner: Mapping[str, np.ndarray], candidates: np.ndarray, values: Mapping[str, np.ndarray]
) -> Parameters:
    """parameters with other numbers of some candidates: `values` are what `taken` gives of them."""
    found = dict(parameters)
    for name, own_values in values.items():
        axis, own = axis_of(owner[name])
        where = np.isin(own, candidates)
        if where.all():
            found[name] = own_values
            continue
        whole = np.moveaxis(parameters[name].copy(), axis, 0)
        whole[where] = np.moveaxis(own_values, axis, 0)
        found[name] = np.moveaxis(whole, 0, axis)
    return found


def axis_of(owner: np.ndarray) -> tuple[int, np.ndarray]:
    """The axis along which a parameter belongs to several candidates, and whose each place is."""
    if owner.size <= 1:
        return 0, owner.reshape(-1)
    axis = int(np.argmax(owner.shape))
    return axis - owner.ndim, owner.reshape(-1)
