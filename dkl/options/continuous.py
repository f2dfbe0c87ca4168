"""Parameters of networks of cosines: how they are trained."""

from __future__ import annotations

from typing import Any

from dkl.checks import check_nonnegative
from dkl.options import parse, rules
from dkl.options.option import Option
from dkl.options.searching import SEARCHING


def _momentum(name: str, value: Any) -> None:
    """From 0 to below 1."""
    if check_nonnegative(name, value).ndim or value >= 1:
        raise ValueError(f"{name}={value!r} must be a number from 0 to below 1")


def _held(name: str, value: Any) -> None:
    """A share of the rows, a mask, or 0 for none."""
    if rules.is_share(value) and not isinstance(value, str) and not value:
        return
    rules.held_share(name, value)


CONTINUOUS = (
    Option(
        "learning_rate", 0.1, "Length of a step over the gradient.", takes="float", parse=parse.number,
        rule=rules.positive,
        doc="Of the mean loss of the rows of a step, with inputs and y over powers of two near their spread, so it "
        "does not depend on their units. Lower it if the loss grows or becomes infinite.",
    ),
    Option(
        "momentum", 0.99, "Share of the last step that is taken again.", takes="float", parse=parse.number,
        rule=_momentum,
        doc="It rises to this over the first momentum_ramp epochs.",
    ),
    Option(
        "momentum_start", 0.5, "Momentum of the first epoch.", takes="float", parse=parse.number, rule=_momentum,
    ),
    Option(
        "momentum_ramp", 10, "Epochs over which the momentum rises.", takes="int", parse=int, rule=rules.whole,
        doc="500 for large networks of images.",
    ),
    Option(
        "decay", 0.0, "Decay of the frequencies.", takes="float", parse=parse.number, rule=rules.nonnegative,
        doc="decay / 2 times the sum of their squares is added to the mean loss. Frequencies bound how fast the "
        "function can vary.",
    ),
    Option(
        "max_norm", None, "Cap on the norm of each frequency.", takes="float", parse=parse.number, optional=True,
        rule=rules.positive, sample=10.0,
        doc="In radians per unit of X, after every step. None: no cap.",
    ),
    Option(
        "batch_size", None, "Rows of a step (about a 64th of all).", takes="int", parse=int, optional=True,
        rule=rules.count, sample=1024,
        doc="A step spreads over workers in pieces of 512 rows, so as many workers as pieces can share it. None: the "
        "power of two near a 64th of the rows, from 32 to 8192, whatever the workers: their number changes no bit.",
    ),
    Option(
        "patience", 20, "Epochs without a lower held-out loss.", takes="int", parse=int, rule=rules.count,
        doc="Training stops after so many, and the best epoch counts. It needs validation.",
    ),
    Option(
        "warm_start", False, "Begin where the last fit ended: yes or no.", takes="bool", parse=parse.yes,
        rule=rules.yes_or_no,
        doc="fit then trains the frequencies and weights that the model has for up to max_iter more epochs.",
    ),
    *SEARCHING,
)  # fmt: skip
"""Those of networks alone."""
HELD_OUT = {
    "about": "Share of rows held out for early stopping; 0: none.", "takes": "float, boolean mask or None",
    "optional": True, "rule": _held,
    "doc": "Their loss is taken after every epoch, and the epoch where it is least counts. Rows are chosen by a hash "
    "of their number; a mask is True for each row held out. None, or 0: all max_iter epochs, on all rows.",
}  # fmt: skip
EPOCHS = {
    "about": "Most epochs.", "doc": "With held-out rows, training usually ends before, by patience.",
}  # fmt: skip
"""What shared parameters mean to networks."""
OF_NETWORKS = {option.name: option for option in CONTINUOUS}
"""By name."""
