"""dkl: learn kernels in the random Fourier domain, on a laptop or on a Dask cluster."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from dkl.estimators.features import FourierFeatures
from dkl.estimators.persist import load
from dkl.estimators.single import SingleKernelClassifier, SingleKernelRegressor, plan

try:
    __version__ = version("dkl")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["FourierFeatures", "SingleKernelClassifier", "SingleKernelRegressor", "load", "plan"]
