"""Losses of scores: value, slope and curvature, row by row, and the bounds that keep sums of them exact.

    square               r^2 / 2
    huber                r^2 / 2 if |r| <= delta, else delta |r| - delta^2 / 2
    epsilon_insensitive  (sp(g (r - e)) + sp(g (-r - e)) - 2 sp(-g e)) / g
    log_loss             log sum_j exp(k z_j) - k z_y;   of one score log(1 + exp(-2 k t))
    logistic             log(1 + exp(-t))
    squared_hinge        max(0, 1 - t)^2 / 2
    smoothed_hinge       0 if q <= 0, q^2 / 2 mu if q < mu, else q - mu / 2

    r = z - y,   t = z or -z,   q = 1 - t,   sp(v) = log(1 + exp(v))

Scores z are (rows, c) in float64. Values y are (rows, c). Classes are codes 0 .. c-1 (rows,); two classes have one
score, and margin losses of more classes are one against the rest. The loss of a row is the sum over its scores.
`LOSSES` is the table; the parameters of a loss are the fields of its record, and `find_loss` reads them:
"huber", "huber:delta=2".
"""

from __future__ import annotations

from dataclasses import fields, replace

from dkl.checks import check_choice
from dkl.losses.loss import Loss, Probabilistic, ScoreSizes, is_wrong
from dkl.losses.margin import Logistic, SmoothedHinge, SquaredHinge, SquaredMargin
from dkl.losses.residual import EpsilonInsensitive, Huber, Square
from dkl.losses.softmax import Softmax

__all__ = [
    "LOSSES", "EpsilonInsensitive", "Huber", "Logistic", "Loss", "Probabilistic", "ScoreSizes", "SmoothedHinge",
    "Softmax", "Square", "SquaredHinge", "SquaredMargin", "find_loss", "is_wrong", "loss_names",
    "loss_of_scores",
]  # fmt: skip

LOSSES: dict[str, Loss] = {
    "square": Square(),
    "huber": Huber(),
    "epsilon_insensitive": EpsilonInsensitive(),
    "log_loss": Softmax(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "smoothed_hinge": SmoothedHinge(),
}
"""Losses by name, with their default parameters."""


def loss_names(is_class: bool) -> list[str]:
    """Names of the losses for classes, or for numbers."""
    return [name for name, loss in LOSSES.items() if loss.is_class == is_class]


def find_loss(text: str) -> Loss:
    """The loss that a text names, with its parameters, e.g. "huber:delta=2"; "softmax" is "log_loss"."""
    name, colon, rest = str(text).partition(":")
    loss: Loss = LOSSES["log_loss" if name == "softmax" else check_choice("loss", name, LOSSES)]
    known = [one.name for one in fields(loss)]  # type: ignore[arg-type]
    given = {}
    for word in rest.split(",") if colon else []:
        key, _, value = (part.strip() for part in word.partition("="))
        if key in given:
            raise ValueError(f"loss={text!r}: {key} is given twice; leave one out")
        if key not in known:
            hint = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"loss={text!r}: {name} has no parameter {key!r}; {hint}")
        try:
            given[key] = float(value)
        except ValueError:
            raise ValueError(f"loss={text!r}: {key}={value!r} must be a number above 0, e.g. {name}:{key}=1") from None
    return replace(loss, **given)  # type: ignore[type-var]


def loss_of_scores(loss: Loss, outputs: int) -> Loss:
    """The loss of so many scores. One score of a log loss is then the log odds, as in scikit-learn."""
    if isinstance(loss, Softmax) and outputs == 1:
        return replace(loss, sharpness=loss.sharpness / 2)
    return loss
