"""Losses of scores: value, slope and curvature, row by row, and the bounds that keep sums of them exact.

    square               r^2 / 2
    huber                r^2 / 2 if |r| <= delta, else delta |r| - delta^2 / 2
    epsilon_insensitive  (sp(g (r - e)) + sp(g (-r - e)) - 2 sp(-g e)) / g
    log_loss             log sum_j exp(k z_j) - k z_y;   of one score log(1 + exp(-2 k t))
    squared_hinge        max(0, 1 - t)^2 / 2
    smoothed_hinge       0 if q <= 0, q^2 / 2 mu if q < mu, else q - mu / 2

    r = z - y,   t = z or -z,   q = 1 - t,   sp(v) = log(1 + exp(v))

Scores z are (rows, c) in float64. Values y are (rows, c). Classes are codes 0 .. c-1 (rows,); two classes have one
score, and margin losses of more classes are one against the rest. The loss of a row is the sum over its scores.
`LOSSES` is the table; the parameters of a loss are the fields of its record.
"""

from __future__ import annotations

from dkl.losses.loss import Loss, ScoreSizes, is_wrong
from dkl.losses.margin import SmoothedHinge, SquaredHinge
from dkl.losses.residual import EpsilonInsensitive, Huber, Square
from dkl.losses.softmax import Softmax

__all__ = [
    "LOSSES", "EpsilonInsensitive", "Huber", "Loss", "ScoreSizes", "SmoothedHinge", "Softmax", "Square", "SquaredHinge",
    "is_wrong",
]  # fmt: skip

LOSSES: dict[str, Loss] = {
    "square": Square(),
    "huber": Huber(),
    "epsilon_insensitive": EpsilonInsensitive(),
    "log_loss": Softmax(),
    "squared_hinge": SquaredHinge(),
    "smoothed_hinge": SmoothedHinge(),
}
"""Losses by name, with their default parameters."""
