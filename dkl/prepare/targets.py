"""What y holds: classes and their weights, or the shift and bounds of numbers, from one pass over y."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice, check_nonnegative
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.protocol import Program
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.sums.targets import LabelProgram, LabelWeights, Targets, ValueMoments, ValueProgram, value_targets, weight_unit
from dkl.sums.tree import TreeTotal


def sum_small(
    program: Program[TreeTotal, None],
    tables: list[Table | None],
    names: list[str],
    progress: Progress,
    doing: str | None = None,
    count: int | None = None,
) -> Any:
    """The total of a tree program, the same bits for every container of the rows; a row it refused is raised.

    count: of so many blocks, from the first on.
    """
    rows = Rows(tables, names)
    engine = engine_for(rows.is_lazy, "client")
    progress.name(doing or f"looking at {names[0]}").begin(rows.n_rows)
    try:
        total = engine.fetch(engine.sum(program, rows, progress, rows.even_blocks(program.rows_wanted)[:count]))
    finally:
        progress.end()
    if total.refusal is not None:
        raise ValueError(total.refusal[1])
    return total.tree.total()


def label_targets(
    y: Table, weight: Table | None, class_weight: Any, progress: Progress, known: np.ndarray | None = None
) -> Targets:
    """Classes and their weights, from one pass over y; known: all classes there are, of which y may lack some."""
    found: LabelWeights = sum_small(LabelProgram(), [y, weight], ["y", "sample_weight"], progress)
    if known is not None:
        found = _among(known, found)
    if len(found.labels) < 2:
        raise ValueError(f"y has one class, {found.labels.tolist()[0]!r}; a classifier needs at least two classes")
    if not found.weight.sum():
        raise ValueError(
            f"sample_weight is zero for every row ({found.rows}); give at least two classes a positive weight"
        )
    factor = _class_factor(found, class_weight)
    shares = found.weight if factor is None else found.weight * factor
    if known is None and (shares > 0).sum() < 2:
        left = found.labels[shares > 0].tolist()
        raise ValueError(f"of {len(shares)} classes only {left} have a positive weight; a classifier needs two classes")
    total, unit = float(shares.sum()), weight_unit(float(shares.sum()), found.rows)
    share = shares / shares.sum()
    variance = float(np.mean(4 * share * (1 - share)))
    return Targets(
        total / unit, len(shares), classes=found.labels, class_weight=factor, weight_unit=unit, variance=variance
    )  # fmt: skip


def _among(known: np.ndarray, found: LabelWeights) -> LabelWeights:
    """The weights of known classes; another label is refused."""
    strange = found.labels[~np.isin(found.labels, known)]
    if len(strange):
        raise ValueError(f"y has the label {strange.tolist()[0]!r}, not a class; classes are {known.tolist()[:10]}")
    weight = np.zeros(len(known))
    weight[np.searchsorted(known, found.labels)] = found.weight
    return LabelWeights(known, weight, found.rows)


def _class_factor(found: LabelWeights, class_weight: Any) -> np.ndarray | None:
    """Weight of each class; scikit-learn's 'balanced' is n / (c n_class)."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ["balanced"])
        return found.weight.sum() / (len(found.labels) * np.where(found.weight > 0, found.weight, 1.0))
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict from class to weight")
    known = {label: i for i, label in enumerate(found.labels.tolist())}
    factor = np.ones(len(found.labels))
    for label, value in class_weight.items():
        if label not in known and set(known) <= set(class_weight):
            continue  # as scikit-learn: a fold may lack a class
        if label not in known:
            raise ValueError(f"class_weight names {label!r}, which is not a class; classes are {list(known)[:10]}")
        factor[known[label]] = check_nonnegative("class_weight", value)
    return factor


def number_targets(y: Table, weight: Table | None, centre: bool, progress: Progress) -> Targets:
    """Shift and bounds of the targets, from one pass over y."""
    if y.array.ndim > 1 and not y.array.shape[1]:
        raise ValueError(f"y has shape {y.array.shape}; give at least one output")
    moments: ValueMoments = sum_small(ValueProgram(), [y, weight], ["y", "sample_weight"], progress)
    if not moments.weight:
        raise ValueError(f"sample_weight is zero for every row ({moments.rows}); give some a positive weight")
    return value_targets(moments, centre)
