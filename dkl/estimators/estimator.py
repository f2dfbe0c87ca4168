"""What every estimator has: parameters that are dataclass fields, and fitted attributes that FITTED declares."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from dkl.estimators.in_notebooks import html_of, text_of
from dkl.estimators.saving import save
from dkl.estimators.stored import Stored


class Parameters(BaseEstimator):
    """An estimator whose parameters are dataclass fields."""

    FITTED: ClassVar[dict[str, Stored]] = {}
    """Fitted attributes of this class, beside those of its bases."""

    def summary(self) -> str:
        """What was fitted, in lines: kernel, features, sigma, alpha, scores, certificate, where it ran; print it."""
        return text_of(self)

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + html_of(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        found: dict[str, str] = super()._repr_mimebundle_(**options)
        return {**found, "text/html": found["text/html"] + html_of(self)} if "text/html" in found else found

    def __dask_tokenize__(self) -> Any:
        """Parameters and all that was fitted; Dask would look at the fields alone, and confuse two fits."""
        from dask.tokenize import normalize_token

        return normalize_token([type(self), sorted(vars(self).items())])


class Estimator(Parameters):
    """One that can be saved: dkl.load reads what FITTED declares, then calls `_restored`."""

    def save(self, path: Any, overwrite: bool = False) -> None:
        """Write the fitted estimator to a Zarr group; `dkl.load(path)` reads it. overwrite=True replaces an older "
        "one."""
        save(self, path, overwrite)

    def _map_params(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        """Parameters of the feature map, of a model that was saved with these parameters."""
        return stored

    def _restored(self) -> None:
        """Set what follows from what was read, and refuse what does not belong together."""
