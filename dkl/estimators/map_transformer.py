"""A transformer whose features are those of a map."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.estimator import Estimator
from dkl.estimators.fitted import INPUTS, MAP
from dkl.estimators.inputs import compute_dtype, read_inputs
from dkl.estimators.stored import Stored
from dkl.estimators.written import write_features
from dkl.learn.model import Transform


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """A transformer with a feature map `features_` and a precision `dtype`."""

    FITTED: ClassVar[dict[str, Stored]] = {**INPUTS, **MAP}

    features_: Any
    dtype: Any

    def transform(self, X: Any) -> Any:
        """Features (n, d): numpy for numpy, a lazy Dask array for Dask, labelled for xarray."""
        table, function = self._transforming(X)
        return apply_rows("transform", function, table, self._n_features_out, function.features.dtype)

    def _transforming(self, X: Any) -> tuple[Table, Transform]:
        """The rows, and the block function."""
        check_is_fitted(self, "features_")
        table = read_inputs(self, X, reset=False)
        return table, Transform(self.features_.at(compute_dtype(table, self.dtype)))

    def transform_to(self, X: Any, path: Any, overwrite: bool = False) -> int:
        """Features (n, d) to the Zarr group `path`, whose array `X` a fit takes as rows; returns the number of rows.

        On a cluster X is the path of Zarr rows, and the workers write. The group is complete or absent, and the same
        call goes on after an interruption.
        """
        table, function = self._transforming(X)
        args = (self._n_features_out, function.features.dtype, os.fspath(path), overwrite)
        return write_features(table, function, *args, Progress(self.verbose).name("transforming"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
