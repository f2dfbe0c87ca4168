"""The exact estimators against scikit-learn's KernelRidge, and against the random features they are there to judge."""

from __future__ import annotations

import subprocess
import sys

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import dkl
from dkl.exact import KernelRidgeGD, KernelRidgeGDClassifier
from dkl.learn import exact as learning

N = 160
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 3, (N, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 1] * X[:, 0])]) + 0.1 * RNG.standard_normal((N, 2))
Y[:, 1] += 7
y = Y[:, 0]
WEIGHT = RNG.integers(0, 3, N).astype(float)
MASK = np.arange(N) % 4 == 0
FIXED = {"learn": "none", "sigma": 0.7, "alpha": 0.2, "verbose": 0}
LEARNED = {"groups": "each", "starts": 1, "random_state": 3, "verbose": 0}


def matern(nu):
    """scikit-learn's isotropic kernel at sigma = 0.7."""
    return lambda A, B: Matern(1 / 0.7, nu=nu)(A, B)


def skewed_chi2(A, B):
    """The definition in the raw variables, with the constant 1."""
    a, b = (1 + A[:, None]) ** 0.7, (1 + B) ** 0.7
    return (2 * a * b / (a * a + b * b)).prod(-1)


def by_sklearn(kernel, A, B, fit_to=None):
    """The kernel matrix between A and B that scikit-learn has under another name."""
    return {
        "gaussian": lambda A, B: KernelRidge(kernel="rbf", gamma=0.7**2 / 2)._get_kernel(A, B),
        "laplacian": lambda A, B: KernelRidge(kernel="laplacian", gamma=0.7)._get_kernel(A, B),
        "isotropic_matern12": matern(0.5),
        "isotropic_matern32": matern(1.5),
        "isotropic_matern52": matern(2.5),
        "skewed_chi2": skewed_chi2,
    }[kernel](A, B)
