"""What to say when the training of a network has gone wrong: what happened, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.engine.memory import count
from dkl.estimators.advice import warn_of_early_end
from dkl.learn.iterate import Iterated
from dkl.learn.network_steps import Trained
from dkl.learn.run import INTERRUPTED

OF_CLASSES = ("error_rate", "validation_error_rate")


def empty_columns(done: Iterated[Trained], is_class: bool) -> tuple[str, ...]:
    """Columns of rows held out, if there are none, and of classes, if y has none."""
    empty = {name for name, values in done.history.arrays().items() if values.size and np.isnan(values).all()}
    return tuple(empty if is_class else empty | set(OF_CLASSES))


def warn_of_training(params: Mapping[str, Any], done: Iterated[Trained], finish: bool) -> None:
    """Refuse a network that has diverged, if it has no better epoch, and warn of one that has learned nothing."""
    found, columns = done.result, done.history.arrays()
    loss, tested = columns["objective"], bool(np.isfinite(columns["validation_loss"]).any())
    rate = f"lower learning_rate (now {params['learning_rate']:g})"
    if params.get("decay", 0) > 0:
        rate += f" or decay (now {params['decay']:g})"
    epoch, best = int(found.state.epoch), int(found.epoch[0])
    if found.diverged[0]:
        if not best or not tested:
            raise ValueError(f"training diverged in epoch {epoch}: the loss is not finite; {rate}")
        warn_user(f"training diverged in epoch {epoch}; the model is that of epoch {best}; {rate}", ConvergenceWarning)
    elif done.reason == INTERRUPTED:  # before what may only be so because it was
        warn_of_early_end(params, done, finish)
    elif tested and not best:
        warn_user(f"no epoch had a lower held-out loss than the start, which the model is; {rate}", ConvergenceWarning)
    elif not tested and len(loss) > 1 and not loss[-1] < loss[0]:
        said = f"the loss rose from {loss[0]:.4g} in the first epoch to {loss[-1]:.4g}"
        warn_user(f"{said}; {rate}", ConvergenceWarning)
    elif done.reason == "max_time":
        said = f"training stopped at max_time={params['max_time']:g} after {count(epoch, 'epoch')}"
        warn_user(f"{said}, before max_iter or patience ended it; raise max_time", ConvergenceWarning)
