"""What to say of y before several kernels are weighed by it: outputs that do not count, folds without a class."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import warn_user
from dkl.engine.tables import Table
from dkl.learn.group_weights import GroupOptions
from dkl.prepare.prepared import Prepared
from dkl.sums.targets import Targets

CONSTANT = 1e-9
"""Spread over mean of an output that is constant but for rounding."""


def warn_of_small_outputs(targets: Targets, options: GroupOptions, is_square: bool) -> None:
    """Outputs add up in the choice of kernels and in the certificate; one that is below its tolerance has no say.

    With a path of its own for each output (by_output, squared errors) sizes do not matter.
    """
    shape = (targets.n_outputs,)
    size, shift = np.broadcast_to(targets.unit, shape), np.broadcast_to(targets.shift, shape)
    varies = size > CONSTANT * np.abs(shift)
    if targets.is_class or varies.sum() < 2 or (options.by_output and is_square):
        return
    size = np.where(varies, size, np.nan)
    least, most = int(np.nanargmin(size)), int(np.nanargmax(size))
    if (size[least] / size[most]) ** 2 >= options.tol:
        return
    other = ", or use by_output=True" if is_square else ""
    warn_user(
        f"output {least} of y is about {size[least] / size[most]:.0e} times as large as output {most}, so it has no "
        f"say in the kernels, and solver_tol={options.tol:g} tells nothing of it; divide outputs by their spread{other}"
    )


def warn_of_missing_classes(data: Prepared, y: Table, classes: Any) -> None:
    """A class whose rows are all in one fold: without that fold it is unknown, and its errors choose alpha."""
    folds = data.split.folds.count
    if folds < 2 or y.is_lazy or not data.targets.is_class:
        return
    codes = data.targets.encode(y.array)
    fold = data.split.fold_of(len(codes), data.seed)
    rows = np.zeros((data.targets.n_targets, folds), int)
    np.add.at(rows, (codes, fold), 1)
    alone = np.flatnonzero((rows > 0).sum(axis=1) == 1)
    if len(alone):
        one = int(alone[0])
        label = classes[one].item() if hasattr(classes[one], "item") else classes[one]
        warn_user(
            f"class {label!r} has its {rows[one].sum()} rows in fold {int(rows[one].argmax())} alone, so the models "
            "that are tested there do not know it, and alpha is chosen by such errors; use cv=StratifiedKFold(), or "
            "fewer folds"
        )
