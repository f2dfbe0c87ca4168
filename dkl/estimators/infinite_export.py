"""A model of few waves as a scikit-learn pipeline: FourierFeatures with its frequencies, and a linear model.

FourierFeatures has the scale 1 / root of the number of frequencies, so weights are over that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from dkl.estimators.fourier import FourierFeatures
from dkl.features.fourier import FourierMap
from dkl.features.waves import WaveMap


def as_pipeline(model: Any) -> Any:
    """FourierFeatures, then Ridge; of classes LogisticRegression after a log loss, else LinearSVC."""
    features = model.features_
    if not isinstance(features, WaveMap):
        raise ValueError(f"a {features.kind} map is no set of frequencies; to_ridge takes models of waves")
    own = features.kernel, features.unit, features.sigma, features.phase, features.skew, features.form
    plain = FourierMap(*own, features.additive)
    names = "kernel", "form", "skew", "n_terms", "groups", "frequencies", "dtype"
    maker = FourierFeatures(
        n_components=plain.n_features, sigma=features.sigma, **{name: getattr(model, name) for name in names}
    )
    maker.features_, maker.sigma_, maker.n_features_in_ = plain, plain.sigma, plain.n_inputs
    maker.groups_, maker._n_features_out = np.zeros(plain.n_inputs, int), plain.n_features
    if hasattr(model, "feature_names_in_"):
        maker.feature_names_in_ = model.feature_names_in_
    return make_pipeline(maker, _linear(model, np.asarray(model.coef_) / plain.scale))


def _linear(model: Any, coef: np.ndarray) -> Any:
    """The linear model, fitted by hand."""
    if isinstance(model, ClassifierMixin):
        linear = LogisticRegression() if model.loss in ("log_loss", "softmax") else LinearSVC()
        linear.classes_ = model.classes_
        offset = getattr(model, "thresholds_", None)
        linear.intercept_ = model.intercept_ if offset is None else model.intercept_ - offset[-len(coef) :]
    else:
        linear = Ridge(alpha=model.alpha_)
        linear.intercept_ = model.intercept_
    linear.coef_, linear.n_features_in_ = coef, coef.shape[-1]
    return linear
