"""Column generation: what does not change (Settings), and where it stands after a round (Growth)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.features.groups import GroupMap, take
from dkl.learn.masters import Master, Restricted
from dkl.learn.sparsity import Sparsity
from dkl.losses import Loss
from dkl.prepare.candidates import Source
from dkl.prepare.prepared import Prepared
from dkl.solvers.group_path import lam_grid
from dkl.sums.gram import GramProgram

Parameters = dict[str, np.ndarray]


@dataclass(frozen=True)
class Settings:
    """alphas: from large to small; None for `count` of them, from where no candidate is worth a weight.

    budget: most groups. per_round: most that a round adds. candidates: drawn in a round, of each family. improve:
    gradient steps of the best ones. empty: rounds without a violation that end the last alpha; one ends another, and so
    do `rounds` rounds. solver_tol: of the last
    weights, over the largest violation of the first round. patience: rounds that the held-out loss may take to fall.
    """

    source: Source[Any]
    loss: Loss
    sparsity: Sparsity
    master: Master
    fit_intercept: bool = True
    alphas: np.ndarray | None = None
    count: int = 20
    least: float = 1e-3
    budget: int = 100
    per_round: int = 10
    candidates: int = 59
    improve: int = 0
    empty: int = 3
    rounds: int = 5
    seed: int = 0
    solver_tol: float = 1e-6
    patience: int = 10
    input_size: np.ndarray | None = None  # root of the weighted sum of T_j^2, if candidates are improved

    @property
    def falling(self) -> np.ndarray:
        """The alphas that were given, from large to small."""
        return np.unique(np.asarray(self.alphas, np.float64))[::-1]


class Point(NamedTuple):
    """A model: its groups, their lengths and weights, and what is known of it."""

    parameters: Parameters  # of the groups
    eta: np.ndarray  # (groups,)
    weights: np.ndarray  # (d + 1, c)
    place: int  # of its alpha
    number: int  # of its round
    value: float  # sum of the losses of rows that train, over the weight of all rows
    objective: float
    error: float  # mean held-out loss, or nan
    residual: float  # KKT residual over `size`


class PathPoint(NamedTuple):
    """What is kept of an alpha that is left behind."""

    place: int
    objective: float
    error: float
    residual: float
    used: int


class Growth(NamedTuple):
    """After a round."""

    point: Point
    idle: np.ndarray  # (groups,), rounds without a weight
    carry: Parameters  # of the master
    lams: np.ndarray | None = None
    size: float = 1.0  # the largest violation of the first round
    number: int = 0
    empty: int = 0  # rounds in a row without a violation
    path: tuple[PathPoint, ...] = ()
    best: Point | None = None  # of the least held-out loss
    since: int = 0  # the last round of the alpha before
    ending: str = ""  # why there is no further round
    final: Point | None = None


@dataclass(frozen=True)
class Problem:
    """The settings and the rows; tests: the fold that is held out, or -1."""

    settings: Settings
    data: Prepared  # in the units of y
    tests: int = -1

    @property
    def total(self) -> float:
        """w, over all rows."""
        return self.data.targets.weight

    @property
    def unit(self) -> float:
        """alpha over lam."""
        return self.total * self.data.targets.weight_unit

    def map_of(self, parameters: Parameters) -> GroupMap:
        """The map of some groups, one or more."""
        features: GroupMap = self.settings.source.like.with_parameters(**parameters)
        return features

    def gram(self, features: GroupMap) -> GramProgram:
        """The pass of the sums of a map."""
        return self.data.gram(self.data.split).with_map(features)

    @property
    def placeholder(self) -> GroupMap:
        """One group, for a model that has none."""
        features: GroupMap = take(self.settings.source.like, np.zeros(1, int))
        return features

    def nothing(self) -> Growth:
        """Before the first round: no group, no intercept."""
        like, c = self.settings.source.like, self.data.targets.n_outputs
        none = {name: np.ascontiguousarray(own[..., :0]) for name, own in like.parameters.items()}
        nan = float("nan")
        return Growth(Point(none, np.empty(0), np.zeros((1, c)), 0, 0, nan, nan, nan, nan), np.empty(0), {})

    def restricted(self, features: GroupMap, eta: np.ndarray, tests: int) -> Restricted:
        """The master problem of a map."""
        norm = self.settings.sparsity.norm(features.column_group, eta, self.data.targets.n_outputs)
        return Restricted(self.gram(features), self.settings.loss, norm, self.settings.fit_intercept, tests)

    def lams(self, largest: float) -> np.ndarray:
        """The path, once it is known where it begins."""
        s = self.settings
        if s.alphas is not None:
            return s.falling / self.unit
        return lam_grid(largest, s.count, s.least) if largest > 0 else np.ones(1) / self.unit

    def alpha(self, growth: Growth, place: int) -> float:
        """The alpha of a place, as it was given."""
        if self.settings.alphas is not None:
            return float(self.settings.falling[place])
        assert growth.lams is not None
        return float(growth.lams[place]) * self.unit
