"""Targets of several tasks: two columns, the value (or the code of one of two classes) and the number of the task.

Every pass takes them for two numbers; the loss (losses/tasks.py) reads them as a value and a task. There is a score
for each task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.sums.targets import Targets


@dataclass(frozen=True)
class TaskTargets(Targets):
    """Targets of so many tasks; `class_weight` is that of the two codes, if the values are codes."""

    tasks: int = 2

    @property
    def n_outputs(self) -> int:
        """A score for each task."""
        return self.tasks

    @property
    def score_shift(self) -> np.ndarray:
        """What scores miss of y: a task number is no part of it."""
        return self.shift[:1]

    def row_weight(self, codes: np.ndarray, weight: Any) -> np.ndarray | None:
        """Sample weight times that of the class."""
        return super().row_weight(codes[:, 0].astype(int), weight)


def task_targets(of: Targets, tasks: int) -> TaskTargets:
    """The targets of y and a task beside it."""
    w, c = of.weight, of.is_class
    first = {"shift": 0.0, "absolute": w, "square": w, "unit": 1.0}  # of codes 0 and 1
    first = first if c else {name: float(getattr(of, name)[0]) for name in first}
    second = {"shift": 0.0, "absolute": w * tasks, "square": w * tasks**2, "unit": 1.0}
    both = {name: np.array([first[name], second[name]]) for name in first}
    return TaskTargets(
        w, 2, class_weight=of.class_weight, weight_unit=of.weight_unit, variance=of.variance, tasks=tasks, **both
    )  # fmt: skip
