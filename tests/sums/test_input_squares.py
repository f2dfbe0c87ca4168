"""The size of the inputs of several kernels: against the formula, dense and sparse, in any blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.side_by_side import SideBySide
from dkl.kernels import KERNELS
from dkl.sums.input_squares import SquaresProgram

RNG = np.random.default_rng(0)
N = 130
X = RNG.uniform(0.1, 2.0, size=(N, 4)) * (RNG.random((N, 4)) < 0.7)
W = RNG.gamma(2, size=N)


def kernel(name: str, inputs: list[int]) -> Channel:
    """A map of some inputs."""
    unit = draw_unit(KERNELS[name], len(inputs), 3, "iid", RNG)
    return Channel(FourierMap(KERNELS[name], unit, np.ones(len(inputs)), np.empty(0), 0.5, "paired"), np.array(inputs))


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_squares(chunk: int, sparse: bool, weighted: bool) -> None:
    """One channel after the other; an input may be in two."""
    second = kernel("gaussian" if sparse else "skewed_chi2", [1, 3])
    program = SquaresProgram(SideBySide((kernel("gaussian", [2, 0]), second)))
    w, sums = W if weighted else np.ones(N), program.start()
    for block, start in enumerate(range(0, N, chunk)):
        rows = slice(start, start + chunk)
        some = sp.csr_array(X[rows]) if sparse else X[rows]
        program.add(sums, None, block, start, (some, X[rows], w[rows] if weighted else None, None))
    T = X[:, [1, 3]] if sparse else np.log1p(X[:, [1, 3]] / 0.5)
    right = np.concatenate([w @ X[:, [2, 0]] ** 2, w @ T**2])
    np.testing.assert_allclose(sums.tree.total(), right, rtol=1e-12)


def test_a_row_that_is_refused() -> None:
    """The first one, with its column."""
    broken = X.copy()
    broken[[40, 90], 3] = np.nan
    program = SquaresProgram(SideBySide((kernel("gaussian", [2, 0]), kernel("gaussian", [1, 3]))))
    sums = program.start()
    program.add(sums, None, 0, 1000, (broken, X, None, None))
    assert sums.refusal is not None
    assert sums.refusal[0] == 1040
    assert "row 1040, column 3" in sums.refusal[1]
