"""A transformer whose features are those of a map."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dkl.engine.apply import apply_rows
from dkl.estimators.estimator import Estimator
from dkl.estimators.fitted import INPUTS, MAP
from dkl.estimators.inputs import compute_dtype, read_inputs
from dkl.estimators.stored import Stored
from dkl.learn.model import Transform


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """A transformer with a feature map `features_` and a precision `dtype`."""

    FITTED: ClassVar[dict[str, Stored]] = {**INPUTS, **MAP}

    features_: Any
    dtype: Any

    def transform(self, X: Any) -> Any:
        """Features (n, d): numpy for numpy, a lazy Dask array for Dask, labelled for xarray."""
        check_is_fitted(self, "features_")
        table = read_inputs(self, X, reset=False)
        blocks = self.features_.at(compute_dtype(table, self.dtype))
        return apply_rows("transform", Transform(blocks), table, self._n_features_out, blocks.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
