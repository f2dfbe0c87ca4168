"""Whether the loss of an estimator suits what it learns: numbers, or classes."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from dkl.losses import Square, find_loss, loss_names


def check_loss(model: Any) -> None:
    """Refuse a loss of something else."""
    loss, is_class = find_loss(model.loss), isinstance(model, ClassifierMixin)
    if not isinstance(loss, Square) and loss.is_class != is_class:
        kinds, names = ("numbers", "classes"), ", ".join(loss_names(is_class))
        raise ValueError(
            f"loss={model.loss!r} is for {kinds[loss.is_class]} and {type(model).__name__} learns {kinds[is_class]}; "
            f"use one of {names}"
        )
