"""What learning a kernel comes to, and the columns of its history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkl.learn.history import COUNTED, Column

HISTORY: dict[str, Column] = {
    "objective": Column("what is minimised, penalties included"),
    "validation_error": Column(
        "mean squared error on held-out rows (of gcv: its estimate; of joint: J; of log_loss: that)"
    ),
    "unseen_error": Column("mean squared error on the rows that early_stopping sets aside", optional=True),
    "error_rate": Column("share of held-out rows whose class was not chosen (of gcv and joint: of the training rows)"),
    "gradient_norm": Column(
        "largest coordinate of the gradient in log sigma (in sigma / start with sigma_l1; in H and b)"
    ),
    "alpha": Column("ridge penalty"),
    **COUNTED,
    "stage": Column("0: several starts on a share of the blocks, then ever more blocks", whole=True),
    "start": Column("number of the start", whole=True),
    "sigma": Column("sigma of each input", dim="input"),
}
"""Columns of every method that learns sigma."""


@dataclass(frozen=True)
class Learned:
    """The end of learning: the point, alpha, and how it was reached."""

    x: np.ndarray
    alpha: float
    decrease: float  # relative, of the last iteration
    share: float  # of the rows that were learned on in the end
    moved: bool = True  # whether it ended elsewhere than at a start
    refit: tuple[float, float] | None = None  # errors with sigma_l1, and without it on the inputs it selected
