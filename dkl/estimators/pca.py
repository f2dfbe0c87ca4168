"""FeaturePCA: (psi(x) - mean) U, the principal axes of a feature map from one pass that stores no features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_axes, check_choice
from dkl.engine.apply import apply_rows
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.features import FourierFeatures
from dkl.estimators.inputs import compute_dtype, read_inputs
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.shared import PLACES
from dkl.kernels import is_for_histograms
from dkl.learn.pca import Projected, learn_axes
from dkl.learn.plan import plan_sums


class FeaturePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal axes of random features.

    Parameters
    ----------
    features : FourierFeatures of any kernel, fitted to X first; None: FourierFeatures().
    n_components : so many axes, as many as have that share (below 1) of the variance, or "mle": as many as Minka's
        evidence speaks for, as in scikit-learn's PCA; of n <= d rows it sees the n - 1 axes that they have. Axes that
        are rounding (below 1e-12 of the first one's variance, 1e-6 for float32) are never kept.
    place : where a cluster solves, "scheduler" or "client".
    verbose : 0 for no progress line.

    Attributes
    ----------
    components_ (axes, features), mean_, explained_variance_, explained_variance_ratio_, n_components_ : as in
        scikit-learn's PCA, up to the sign of an axis. features_ is the map.
    """

    def __init__(
        self, features: Any = None, n_components: float | str = 0.9, *, place: str = "scheduler", verbose: int = 1
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.place = place
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, X_unlabelled: Any = None) -> Self:
        """One pass over X (and one before it, of moments, if sigma="scale"); other rows may help to shape the axes."""
        check_choice("place", self.place, PLACES)
        inner = FourierFeatures(verbose=self.verbose) if self.features is None else self.features
        if not isinstance(inner, FourierFeatures):
            raise ValueError(f"features={inner!r} must be a dkl.FourierFeatures")
        check_axes("n_components", self.n_components)
        if not isinstance(self.n_components, str) and self.n_components > inner.n_components:
            raise ValueError(
                f"n_components={self.n_components} axes of {inner.n_components} features; keep fewer, or draw more"
            )
        table = with_known_rows(read_inputs(self, X, reset=True))
        more = None if X_unlabelled is None else with_known_rows(read_inputs(self, X_unlabelled, reset=False))
        tables = self._rows(table, more)
        dtype, progress = compute_dtype(table, inner.dtype), Progress(self.verbose)
        engine = engine_for(table.is_lazy, self.place)
        params = inner.get_params(deep=False)
        params |= {"cv": 1, "alphas": 1, "objective": None, "learn": "none", "reduce": self.n_components}
        plan_sums(engine, tables[0], self.n_features_in_, 0, params, dtype, is_class=True).check()
        drawn = clone(inner).set_params(verbose=self.verbose).fit(X)
        self.features_, self.groups_, self.sigma_ = drawn.features_, drawn.groups_, drawn.sigma_
        found = learn_axes(engine, tables, self.features_, dtype, self.n_components, progress)
        self.mean_, self.components_ = found.mean, np.ascontiguousarray(found.axes.T)
        self.explained_variance_ = found.variances
        self.explained_variance_ratio_ = found.variances / found.total if found.total > 0 else found.variances
        self.n_components_ = self._n_features_out = len(found.variances)
        return self

    def _rows(self, table: Table, more: Table | None) -> list[Rows]:
        """Rows of the passes."""
        if more is not None and more.is_lazy != table.is_lazy:
            raise ValueError("X and X_unlabelled must both be in memory, or both lazy (Dask, Zarr)")
        tables = [Rows([table], ["X"]), *([] if more is None else [Rows([more], ["X_unlabelled"])])]
        n = sum(rows.n_rows for rows in tables)
        if n < 2:
            raise ValueError(f"X has {n} row(s) (n_samples={n}); axes need at least two")
        return tables

    def transform(self, X: Any) -> Any:
        """Features along the axes (n, n_components_): numpy for numpy, lazy for Dask, labelled for xarray."""
        check_is_fitted(self, "components_")
        table = read_inputs(self, X, reset=False)
        dtype = compute_dtype(table, None if self.features is None else self.features.dtype)
        projected = Projected(self.features_.at(dtype), self.mean_, self.components_.T)
        return apply_rows(projected, table, self.n_components_, dtype)

    def save(self, path: Any) -> None:
        """Write the map and its axes to a Zarr group; `dkl.load(path)` reads it."""
        from dkl.estimators.persist import save

        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = is_for_histograms(getattr(self.features, "kernel", "gaussian"))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
