"""Methods that a classifier has only if its loss gives probabilities; their absence says which loss does."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

from dkl.losses import Loss, Probabilistic, find_loss, loss_names


def probabilistic(model: Any) -> Probabilistic | None:
    """The loss of the scores, if it gives probabilities; a loss that there is not gives none."""
    try:
        loss: Loss | None = model._loss_of_scores()
    except ValueError:
        return None
    return loss if isinstance(loss, Probabilistic) else None


def why_not(model: Any) -> str:
    """Why a model has no probabilities, and what to do."""
    names = [f"loss={name!r}" for name in loss_names(True) if isinstance(find_loss(name), Probabilistic)]
    said = f"loss={model.loss!r}" if hasattr(model, "loss") else "its loss"
    return (
        f"{said} gives no probabilities; fit with {' or '.join(names)}, or put this {type(model).__name__} into "
        "sklearn.calibration.CalibratedClassifierCV"
    )


class IfProbabilistic:
    """A method that is there if the loss of the model gives probabilities.

    It is sklearn's available_if, whose error has one fixed sentence; this one says what to do.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self.function
        if probabilistic(model) is None:
            name = self.function.__name__
            raise AttributeError(f"this {type(model).__name__} has no {name}: {why_not(model)}", name=name, obj=model)
        return MethodType(self.function, model)
