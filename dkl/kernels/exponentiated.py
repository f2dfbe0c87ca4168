"""Exponentiated kernels of histograms: gaussian in the features Phi of an additive kernel k0.

    k(x, y) = exp(-sum_j sigma_j^2 |Phi(x_j) - Phi(y_j)|^2 / 2),   |Phi(x) - Phi(y)|^2 / 2 = (x + y) / 2 - k0(x, y)

For chi2 the distance is (x - y)^2 / (2 (x + y)), and sigma^2 is beta of the literature, or twice gamma.
"""

from __future__ import annotations

from scipy.special import ndtri

from dkl.kernels.additive import ADDITIVE
from dkl.kernels.kernel import Kernel
from dkl.kernels.shift_invariant import bell

EXPONENTIATED = tuple(Kernel(f"exp_{name}", bell, ndtri, additive=name) for name in ADDITIVE)
