"""Frequencies: orthogonal ones against Gram and Schmidt, tails against their cut."""

import numpy as np
import pytest

from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS


@pytest.mark.parametrize(("m", "D"), [(4, 4), (3, 7), (5, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_orthogonal_columns(m, D, seed):
    """Each group of m is the one Q of A = QR with a positive diagonal of R, by Cholesky of A'A, times chi radii."""
    rng, columns = np.random.default_rng(seed), []
    for start in range(0, D, m):
        A = rng.standard_normal((m, min(m, D - start)))
        Q = np.linalg.solve(np.linalg.cholesky(A.T @ A), A.T).T
        columns.append(Q * np.sqrt(rng.chisquare(m, Q.shape[1])))
    found = draw_unit(KERNELS["gaussian"], m, D, "orthogonal", np.random.default_rng(seed))
    np.testing.assert_allclose(found, np.hstack(columns), atol=1e-9)


@pytest.mark.parametrize("m", [1, 3])
def test_tails_are_cut(m):
    """Cauchy frequencies beyond 1e3 m are put there, on both sides; they are about 6e-4 / m of all."""
    unit = draw_unit(KERNELS["laplacian"], m, 20_000, "iid", np.random.default_rng(0))
    assert (unit.min(), unit.max()) == (-1e3 * m, 1e3 * m)
    assert 0 < (np.abs(unit) == 1e3 * m).mean() < 2e-3
