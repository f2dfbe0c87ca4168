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
from dkl.engine.reduce import PLACES, engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.features import FourierFeatures
from dkl.estimators.inputs import compute_dtype, read_inputs
from dkl.estimators.maps import NAMES, check_transformer, map_of, size_of, width_of
from dkl.estimators.restore import all_or_nothing
from dkl.features.projected import ProjectedMap
from dkl.learn.model import Transform
from dkl.learn.pca import learn_axes
from dkl.learn.plan import plan_axes


class FeaturePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal axes of a feature map.

    Parameters
    ----------
    features : FourierFeatures of any kernel, or Chi2Features, fitted to X first; None: FourierFeatures().
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

    @property
    def _inner(self) -> Any:
        """The transformer whose features they are."""
        return FourierFeatures() if self.features is None else self.features

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, X_unlabelled: Any = None) -> Self:
        """One pass over X, and one before it if the map needs one; other rows may help to shape the axes."""
        check_choice("place", self.place, PLACES)
        check_transformer(self._inner)
        check_axes("n_components", self.n_components)
        given = {"X": X} if X_unlabelled is None else {"X": X, "X_unlabelled": X_unlabelled}
        tables = [with_known_rows(read_inputs(self, given[n], reset=n == "X", name=n)) for n in NAMES if n in given]
        rows = self._rows(tables)
        inner, d = self._inner, width_of(self._inner, self.n_features_in_)
        if not isinstance(self.n_components, str) and self.n_components > d:
            raise ValueError(f"n_components={self.n_components} axes of {d} features; keep fewer, or draw more")
        dtype, progress = compute_dtype(tables[0], inner.dtype), Progress(self.verbose)
        engine = engine_for(tables[0].is_lazy, self.place)
        plan_axes(engine, rows.values(), self.n_features_in_, d, dtype, **size_of(inner))
        drawn = clone(inner).set_params(verbose=self.verbose).fit(X)
        self._set_map(drawn, map_of(drawn, tables, progress))
        found = learn_axes(engine, rows, self.features_, dtype, self.n_components, progress)
        self.mean_, self.components_ = found.mean, np.ascontiguousarray(found.axes.T)
        self.explained_variance_ = found.variances
        self.explained_variance_ratio_ = found.variances / found.total if found.total > 0 else found.variances
        self.n_components_ = self._n_features_out = len(found.variances)
        return self

    def _rows(self, tables: list[Table]) -> dict[str, Rows]:
        """Rows of the passes, by name."""
        if len({table.is_lazy for table in tables}) > 1:
            raise ValueError("X and X_unlabelled must both be in memory, or both lazy (Dask, Zarr)")
        found = {name: Rows([table], [name]) for name, table in zip(NAMES, tables, strict=False)}
        n = sum(rows.n_rows for rows in found.values())
        if n < 2:
            raise ValueError(f"X has {n} row(s) (n_samples={n}); axes need at least two")
        return found

    def _set_map(self, drawn: Any, features: Any) -> None:
        """features_, and what the fitted transformer says of its inputs."""
        self.features_ = features
        for name in ("sigma_", "groups_"):
            if hasattr(drawn, name):
                setattr(self, name, getattr(drawn, name))
            elif hasattr(self, name):
                delattr(self, name)

    def transform(self, X: Any) -> Any:
        """Features along the axes (n, n_components_): numpy for numpy, lazy for Dask, labelled for xarray."""
        check_is_fitted(self, "components_")
        table = read_inputs(self, X, reset=False)
        dtype = compute_dtype(table, self._inner.dtype)
        projected = ProjectedMap(self.features_, self.mean_, self.components_.T).at(dtype)
        return apply_rows(Transform(projected), table, self.n_components_, dtype)

    def save(self, path: Any) -> None:
        """Write the map and its axes to a Zarr group; `dkl.load(path)` reads it."""
        from dkl.estimators.persist import save

        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._inner.__sklearn_tags__().input_tags.positive_only
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
