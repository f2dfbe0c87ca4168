"""How far a slice of a kernel goes."""

import numpy as np
import pytest

from dkl.features.slices import exact_slice, slice_range
from dkl.kernels import KERNELS


@pytest.mark.parametrize(
    ("sigma", "end"), [([2.0, 3.0], 2.0), ([1.0, 10.0], 1.2), ([0.0, 4.0], 1.0), ([0.0, 0.0], 4.0)]
)
def test_the_range_of_a_slice(sigma, end):
    """4 / sigma of the widest, at most three times that of the narrowest; inputs switched off do not count."""
    found = slice_range(KERNELS["gaussian"], 1.0, np.array(sigma))
    np.testing.assert_allclose(found, end * np.arange(401) / 400, rtol=1e-13)
    skewed = slice_range(KERNELS["skewed_chi2"], 0.3, np.array(sigma))
    np.testing.assert_allclose(np.log1p(skewed / 0.3), found, rtol=1e-12)
    np.testing.assert_allclose(slice_range(KERNELS["exp_chi2"], 1.0, np.array(sigma)), found**2, rtol=1e-13)


def test_a_gaussian_slice():
    """exp(-(sigma delta)^2 / 2)."""
    delta = np.linspace(0, 3, 7)
    found = exact_slice(KERNELS["gaussian"], 1.0, 0.7, delta)
    np.testing.assert_allclose(found, np.exp(-((0.7 * delta) ** 2) / 2), rtol=1e-12)
