"""Which alphas are sought: from 1e-6 of the largest eigenvalue of all rows, whatever share of them a system holds."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.objective import least_alpha
from dkl.solvers.hypergradient import make_system
from dkl.solvers.ridge import Moments

RNG = np.random.default_rng(0)
PSI, Y = RNG.standard_normal((40, 6)) + 0.5, RNG.standard_normal((40, 2))


def moments(times):
    """Sums of the rows, each so many times."""
    sums = Moments(len(PSI), PSI.T @ PSI, PSI.T @ Y, PSI.sum(axis=0), Y.sum(axis=0), (Y * Y).sum(axis=0))
    return Moments(*(times * value for value in sums))


@pytest.mark.parametrize(("train", "test"), [(1, None), (3, 1), (1, 1), (4, 9)])
def test_the_least_alpha_is_that_of_all_rows(train, test):
    """Where the rows held out are like the others, the floor is 1e-6 of the eigenvalue of both together."""
    every = train + (test or 0)
    system = make_system(moments(train), None if test is None else moments(test), 40.0 * train, True)
    expected = 1e-6 * np.linalg.eigvalsh(every * PSI.T @ PSI)[-1]
    assert least_alpha([system]) == pytest.approx(expected, rel=1e-3)
    assert least_alpha([make_system(moments(0)._replace(weight=1.0), None, 40.0, True)]) == pytest.approx(1e-6)
