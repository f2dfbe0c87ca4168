"""A model that is a network trained by gradient steps with momentum (learn/network.py): what such families share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_early_end
from dkl.estimators.linear_family import Given, LinearFamily
from dkl.learn.cosine import first_intercept
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.network import Train
from dkl.learn.network_steps import Rates, Trained
from dkl.learn.run import INTERRUPTED, Limits, Run
from dkl.losses import Loss
from dkl.options.continuous import OF_NETWORKS
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.folds import Split, held_split
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import sum_small
from dkl.sums.targets import LabelProgram


@dataclass(eq=False, repr=False)
class NetworkFamily(LinearFamily):
    """A network, and how it is trained."""

    _: KW_ONLY
    learning_rate: float = parameter(OF_NETWORKS["learning_rate"])
    momentum: Any = parameter(OF_NETWORKS["momentum"])
    momentum_ramp: int = parameter(OF_NETWORKS["momentum_ramp"])
    decay: float = parameter(OF_NETWORKS["decay"])
    max_norm: float | None = parameter(OF_NETWORKS["max_norm"])
    batch_size: int | None = parameter(OF_NETWORKS["batch_size"])
    validation: Any = parameter("validation", 0.1, optional=True)
    patience: int = parameter(OF_NETWORKS["patience"])
    max_iter: int = parameter("max_iter", 200)
    max_time: float | None = parameter("max_time")

    def _split(self, X: Table, y: Table | None) -> Split:
        held = self.validation is not None and not (np.ndim(self.validation) == 0 and not self.validation)
        return held_split(self.validation, X) if held else Split()

    def _limits(self) -> Limits:
        return Limits(int(self.max_iter), max_time=None if self.max_time is None else float(self.max_time))

    @property
    def _rates(self) -> Rates:
        """How the one network is trained."""
        low, high = np.broadcast_to(np.asarray(self.momentum, float), 2)
        values = self.learning_rate, low, high, self.momentum_ramp
        return Rates(*(np.array([value], float) for value in values))

    def _patience_of(self, split: Split) -> int | None:
        return int(self.patience) if split.n_folds > 1 else None

    def _first_intercept(self, loss: Loss, data: Prepared, given: Given, run: Run) -> np.ndarray:
        """Scores at which every class has its share of the weight; zero without an intercept."""
        outputs, targets, shares = data.targets.n_outputs, data.targets, None
        if targets.classes is not None:
            found = sum_small(LabelProgram(), [given.y, given.weight], ["y", "sample_weight"], run.progress)
            shares = np.zeros(targets.n_targets)
            shares[np.searchsorted(targets.classes, found.labels)] = found.weight
            shares = shares if targets.class_weight is None else shares * targets.class_weight
        return first_intercept(loss, shares, outputs) if self.fit_intercept else np.zeros(outputs)

    def _trained(self, run: Run, method: Train, data: Prepared) -> Trained:
        """What training comes to; sets history_ and n_iter_."""
        done = iterate(run, method)
        self._say(done, run)
        self._set_history(done, data)
        return done.result

    def _say(self, done: Iterated[Trained], run: Run) -> None:
        """Refuse a network that has diverged before it had a first epoch, and warn of one that has learned nothing."""
        rate = f"lower learning_rate (now {self.learning_rate:g})"
        if done.result.diverged[0]:
            epoch = int(done.result.state.epoch)
            if not done.result.epoch[0]:
                raise ValueError(f"training diverged in epoch {epoch}: the loss is not finite; {rate}")
            warn_user(
                f"training diverged in epoch {epoch}; the model is that of epoch {done.result.epoch[0]}; {rate}",
                ConvergenceWarning,
            )
        elif done.reason in (INTERRUPTED, "max_time"):
            warn_of_early_end(parameters_of(self), done, run.finish)
