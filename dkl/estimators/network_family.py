"""A model that is a network trained by gradient steps with momentum (learn/network.py): what such families share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan
from dkl.engine.protocol import Engine
from dkl.engine.tables import Table
from dkl.estimators.linear_family import Given, LinearFamily
from dkl.estimators.network_advice import empty_columns, warn_of_training
from dkl.learn.cosine import first_intercept, with_kept_rows
from dkl.learn.iterate import iterate
from dkl.learn.network import Train
from dkl.learn.network_steps import Trained
from dkl.learn.run import Limits, Run
from dkl.losses import Loss
from dkl.options.continuous import EPOCHS, HELD_OUT, OF_NETWORKS
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.folds import Split, held_split, is_share
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import sum_small
from dkl.sums.targets import LabelProgram


@dataclass(eq=False, repr=False)
class NetworkFamily(LinearFamily):
    """A network, and how it is trained."""

    _: KW_ONLY
    learning_rate: float = parameter(OF_NETWORKS["learning_rate"])
    momentum: float = parameter(OF_NETWORKS["momentum"])
    momentum_start: float = parameter(OF_NETWORKS["momentum_start"])
    momentum_ramp: int = parameter(OF_NETWORKS["momentum_ramp"])
    decay: float = parameter(OF_NETWORKS["decay"])
    max_norm: float | None = parameter(OF_NETWORKS["max_norm"])
    batch_size: int | None = parameter(OF_NETWORKS["batch_size"])
    validation: Any = parameter("validation", 0.1, **HELD_OUT)
    patience: int = parameter(OF_NETWORKS["patience"])
    max_iter: int = parameter("max_iter", 200, **EPOCHS)
    max_time: float | None = parameter("max_time")

    def _map_params(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        return None

    def _split(self, X: Table, y: Table | None) -> Split:
        none = self.validation is None or (is_share(self.validation) and not self.validation)
        return Split() if none else held_split(self.validation, X)

    def _limits(self) -> Limits:
        return Limits(int(self.max_iter), max_time=None if self.max_time is None else float(self.max_time))

    def _plan_rows(
        self, engine: Engine, rows: Rows, dtype: np.dtype, split: Split, outputs: int, measure: bool = False
    ) -> Plan:  # fmt: skip
        """What a fit needs, with the prepared rows that stay between epochs."""
        plan = super()._plan_rows(engine, rows, dtype, split, outputs, measure)
        return with_kept_rows(plan, engine, self._map_cost(plan.sizes).columns, self._copies(split))

    def _copies(self, split: Split) -> int:
        """How often prepared rows are kept."""
        return 1

    def _patience(self, split: Split) -> int | None:
        """Epochs to wait for a lower held-out loss; None if no rows are held out."""
        return int(self.patience) if split.n_folds > 1 else None

    @property
    def _cap(self) -> float:
        """The largest norm of a frequency."""
        return np.inf if self.max_norm is None else float(self.max_norm)

    def _first_intercept(self, run: Run, data: Prepared, given: Given, loss: Loss) -> np.ndarray:
        """Scores at which every class has its share of the weight; zero for numbers, or if no intercept is fitted."""
        targets, shares = data.targets, None
        if not self.fit_intercept:
            return np.zeros(targets.n_outputs)
        if targets.classes is not None:
            found = sum_small(LabelProgram(), [given.y, given.weight], ["y", "sample_weight"], run.progress)
            shares = np.zeros(targets.n_targets)
            shares[np.searchsorted(targets.classes, found.labels)] = found.weight
            shares = shares if targets.class_weight is None else shares * targets.class_weight
        return first_intercept(loss, shares, targets.n_outputs)

    def _trained(self, run: Run, method: Train, data: Prepared) -> Trained:
        """What training comes to; sets history_ and n_iter_."""
        done = iterate(run, method)
        warn_of_training(parameters_of(self), done, run.finish)
        self._set_history(done, data, empty_columns(done, data.targets.is_class))
        return done.result
