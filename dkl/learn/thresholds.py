"""Calibration: thr_c = the k-th highest score of class c over some rows; score_c becomes score_c - thr_c.

So every class has about as many rows above zero as any other. Two classes have scores -s and s; s - thr_1 is above
-s - thr_0 where s - (thr_1 - thr_0) / 2 is above zero, so that becomes their one score.
"""

from __future__ import annotations

import numpy as np

from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.learn.model import Scores
from dkl.prepare.targets import sum_small
from dkl.sums.top import TopProgram, TopScores


def learn_thresholds(scores: Scores, k: int, X: Table, weight: Table | None, progress: Progress) -> TopScores:
    """The top k scores of each class, in one pass over X; weights only say which rows count (those above zero)."""
    names = ["X", "sample_weight"]
    program = TopProgram(scores.by_class, k, scores.sizes, scores.map_cost)
    found: TopScores = sum_small(program, [X, weight], names, progress, "calibrating")
    return found


def offset_of(thresholds: np.ndarray | None) -> np.ndarray | float:
    """What is subtracted from the scores of a model, which has one of two classes."""
    if thresholds is None:
        return 0.0
    return thresholds if len(thresholds) != 2 else (thresholds[1:] - thresholds[:1]) / 2
