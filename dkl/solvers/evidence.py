"""How many principal axes the data speak for: Minka's evidence of rank k, for all k at once in d^2 steps.

    log p(k) = log p(U) - n/2 [sum_{i<=k} log s_i + (d-k) log v_k] + (m_k + k)/2 log 2 pi - A_k/2 - k/2 log n
    A_k = m_k log n + sum_{i<=k, j>i} log (s_i - s_j)(1/t_j - 1/t_i),    t_j = s_j if j <= k, else v_k

with v_k the mean of the d - k variances left over and m_k = dk - k(k+1)/2 pairs. Pairs i < j <= k do not depend on k,
pairs i <= k < j give sum log (s_i - s_j) + (d-k) sum_i log (1/v_k - 1/s_i): row and column sums of one triangle.
(T. P. Minka, Automatic choice of dimensionality for PCA, 2000; what n_components="mle" means in scikit-learn.)
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln


def evidence(variances: np.ndarray, rows: float, ranks: int, least: float) -> np.ndarray:
    """log p(k) for k = 1 .. ranks < d of descending variances, up to a constant that depends on their unit.

    What is below the share `least` of the first variance, or a gap below that share of its variance, counts as that.
    """
    s, d = variances, len(variances)
    k = np.arange(1, ranks + 1)
    logs, row_sums, column_sums = np.log(s[:ranks]), np.empty(ranks), np.zeros(d)
    for i in range(ranks):
        gaps = _log_gap(s[i], s[i + 1 :], least)
        row_sums[i] = gaps.sum()
        column_sums[i + 1 :] += gaps
    left = np.maximum(np.cumsum(s[::-1])[::-1][1 : ranks + 1] / (d - k), least * s[0])
    from_left = np.array([_log_gap(s[:r], v, least).sum() for r, v in zip(k, left, strict=True)])
    held = np.cumsum(logs)
    pairs = d * k - k * (k + 1) / 2
    curvature = np.cumsum(row_sums) + np.cumsum(column_sums[:ranks]) - (k - 1) * held
    curvature += (d - k) * (from_left - held - k * np.log(left)) + pairs * np.log(rows)
    size = (d - k + 1) / 2
    return np.asarray(
        np.cumsum(gammaln(size) - size * np.log(np.pi))
        - k * np.log(2)
        - rows / 2 * (held + (d - k) * np.log(left))
        + (pairs + k) / 2 * np.log(2 * np.pi)
        - curvature / 2
        - k / 2 * np.log(rows)
    )


def _log_gap(above: np.ndarray, below: np.ndarray, least: float) -> np.ndarray:
    """log (above - below), where a gap that is rounding counts as the least one."""
    return np.asarray(np.log(np.maximum(above - below, least * above)))


def likely_rank(variances: np.ndarray, rows: float, sound: int, least: float) -> int:
    """The rank of most evidence, from 1 to `sound`. n rows have n - 1 axes; variances beyond say nothing."""
    d = min(len(variances), int(rows) - 1)
    ranks = min(sound, d - 1)
    return 1 if ranks < 2 else 1 + int(np.argmax(evidence(variances[:d], rows, ranks, least)))
