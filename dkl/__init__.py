"""dkl: learn kernels in the random Fourier domain, on a laptop or on a Dask cluster."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dkl.estimators.chi2 import Chi2Features
    from dkl.estimators.compare import compare
    from dkl.estimators.continuous import ContinuousKernelClassifier, ContinuousKernelRegressor
    from dkl.estimators.fourier import FourierFeatures
    from dkl.estimators.gabor import GaborFeatures
    from dkl.estimators.infinite import InfiniteFeatureClassifier, InfiniteFeatureRegressor
    from dkl.estimators.loading import load
    from dkl.estimators.multiple import MultipleKernelClassifier, MultipleKernelRegressor
    from dkl.estimators.nystroem import NystroemFeatures
    from dkl.estimators.pca import FeaturePCA
    from dkl.estimators.plan import plan
    from dkl.estimators.single import SingleKernelClassifier, SingleKernelRegressor
    from dkl.prepare.ingest import ingest

_HOMES = {
    "Chi2Features": "dkl.estimators.chi2",
    "ContinuousKernelClassifier": "dkl.estimators.continuous",
    "ContinuousKernelRegressor": "dkl.estimators.continuous",
    "FeaturePCA": "dkl.estimators.pca",
    "FourierFeatures": "dkl.estimators.fourier",
    "GaborFeatures": "dkl.estimators.gabor",
    "InfiniteFeatureClassifier": "dkl.estimators.infinite",
    "InfiniteFeatureRegressor": "dkl.estimators.infinite",
    "MultipleKernelClassifier": "dkl.estimators.multiple",
    "MultipleKernelRegressor": "dkl.estimators.multiple",
    "NystroemFeatures": "dkl.estimators.nystroem",
    "SingleKernelClassifier": "dkl.estimators.single",
    "SingleKernelRegressor": "dkl.estimators.single",
    "compare": "dkl.estimators.compare",
    "ingest": "dkl.prepare.ingest",
    "load": "dkl.estimators.loading",
    "plan": "dkl.estimators.plan",
}
"""Names load their module when they are first used: a scheduler that only solves never imports scikit-learn."""

_MODULES = {"exact", "plot", "report", "torch"}
"""Modules that are attributes, loaded when they are used: `import dkl` is enough for `dkl.plot.plot_sigma`."""

__all__ = [
    "Chi2Features",
    "ContinuousKernelClassifier",
    "ContinuousKernelRegressor",
    "FeaturePCA",
    "FourierFeatures",
    "GaborFeatures",
    "InfiniteFeatureClassifier",
    "InfiniteFeatureRegressor",
    "MultipleKernelClassifier",
    "MultipleKernelRegressor",
    "NystroemFeatures",
    "SingleKernelClassifier",
    "SingleKernelRegressor",
    "compare",
    "ingest",
    "load",
    "plan",
]


logging.getLogger(__name__).addHandler(logging.NullHandler())
if os.environ.get("DKL_LOG"):  # on workers and the scheduler too
    import_module("dkl.engine.logs").begin_as_asked()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("dkl")
    if name in _MODULES:
        return import_module(f"dkl.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dkl' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
