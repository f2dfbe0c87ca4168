"""LearnedFeatures: the features of a trained network as a transformer whose clones, and refits, keep them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_width
from dkl.estimators.fourier import FourierFeatures
from dkl.estimators.inputs import read_inputs
from dkl.estimators.registry import register
from dkl.options.docstrings import documented


@register
@documented
@dataclass(eq=False, repr=False)
class LearnedFeatures(FourierFeatures):
    """Fourier features with learned frequencies, as `ContinuousKernelClassifier.to_features` gives; fit keeps them."""

    @property
    def _moves_frequencies(self) -> bool:
        return True

    def __sklearn_clone__(self) -> LearnedFeatures:
        """A clone has the same frequencies."""
        return copy(self)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Check that X has the inputs that the frequencies were learned for."""
        if not hasattr(self, "features_"):
            raise ValueError(
                f"{self!r} has no frequencies to keep; take them from a model: model.to_features(), or use "
                "FourierFeatures()"
            )
        check_is_fitted(self, "features_")
        check_width(read_inputs(copy(self), X, reset=True).n_columns, self.n_features_in_, type(self).__name__)
        return self


def learned_features(model: Any) -> LearnedFeatures:
    """The features of a model with a Fourier map, without its weights."""
    features = model.features_
    found = LearnedFeatures(
        kernel=model.kernel, n_components=features.n_features, sigma=model.sigma, groups=model.groups,
        frequencies=model.frequencies, form=features.form, skew=model.skew, n_terms=model.n_terms, dtype=model.dtype,
        verbose=model.verbose,
    )  # fmt: skip
    for name in ("features_", "groups_", "sigma_", "n_features_in_", "feature_names_in_", "input_labels_"):
        if hasattr(model, name):
            setattr(found, name, getattr(model, name))
    found._n_features_out = features.n_features
    return found
