"""What every estimator has: parameters that are fields of a dataclass."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator


class Estimator(BaseEstimator):
    """An estimator whose parameters are dataclass fields."""

    def __dask_tokenize__(self) -> Any:
        """Parameters and all that was fitted; Dask would look at the fields alone, and confuse two fits."""
        from dask.tokenize import normalize_token

        return normalize_token([type(self), sorted(vars(self).items())])
