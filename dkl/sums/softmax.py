"""Log loss of scores, -log softmax(k z)_y, row by row, and its slope in the scores.

    c scores     l = log sum_j exp(k z_j) - k z_y,      dl/dz_j = k (p_j - [j = y]),   p = softmax(k z)
    one score    l = log(1 + exp(-2 k s z)),            dl/dz = -2 k s / (1 + exp(2 k s z)),   s = +-1

One score z of two classes stands for the pair (-z, z). k, the sharpness, makes a probability of a ridge score.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def log_loss(scores: np.ndarray, codes: np.ndarray, k: float) -> np.ndarray:
    """l of each row (n,); scores are (n, c) or (n, 1) in float64."""
    if scores.shape[1] == 1:
        return np.logaddexp(0.0, -2 * k * _signed(scores, codes))
    top = scores.max(axis=1)
    total = np.exp(k * (scores - top[:, None])).sum(axis=1)
    return np.log(total) + k * (top - scores[np.arange(len(codes)), codes])


def log_loss_slope(scores: np.ndarray, codes: np.ndarray, k: float) -> np.ndarray:
    """dl/dz of each row, in the shape of the scores."""
    if scores.shape[1] == 1:
        sign = 2.0 * codes - 1
        return (-2 * k * sign * expit(-2 * k * _signed(scores, codes)))[:, None]
    share = np.exp(k * (scores - scores.max(axis=1, keepdims=True)))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(codes)), codes] -= 1
    share *= k
    return share


def steepest(k: float, outputs: int) -> float:
    """The most that |dl/dz| of one score can be."""
    return 2 * k if outputs == 1 else k


def is_wrong(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether the class with the highest score is another one."""
    chosen = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return chosen != codes


def _signed(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.where(codes > 0, scores[:, 0], -scores[:, 0])
