"""scikit-learn's own estimator checks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dkl

pytestmark = [
    pytest.mark.filterwarnings("ignore:the learned kernel leaves:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:learning ended where it began:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:cv chose alpha:UserWarning"),
    pytest.mark.filterwarnings("ignore:the weights of alpha:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:learning stopped at max_iter=4:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:n_components=20, but X gives:UserWarning"),
    pytest.mark.filterwarnings("ignore:no epoch had a lower held-out loss:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the loss rose from:sklearn.exceptions.ConvergenceWarning"),
]
"""Most checks fit noise, and few rows."""

SOON = [
    dkl.Chi2Features(),
    dkl.FourierFeatures(),
    dkl.FourierFeatures(kernel="exp_chi2"),
    dkl.NystroemFeatures(n_components=20, random_state=0),
    dkl.FeaturePCA(dkl.FourierFeatures(n_components=20, random_state=0), 0.99),
    dkl.FeaturePCA(dkl.Chi2Features(n_terms=3), 0.99, channels="each"),
    dkl.SingleKernelRegressor(n_components=100),
    dkl.SingleKernelClassifier(n_components=100),
    dkl.SingleKernelClassifier(n_components=100, kernel="skewed_chi2"),
    dkl.SingleKernelClassifier(n_components=100, calibrate=5),
    dkl.SingleKernelRegressor(n_components=50, learn="validation", groups="each", starts=1, tol=0.3),
    dkl.SingleKernelClassifier(n_components=50, learn="frequencies", cv=2, tol=0.3),
    dkl.ContinuousKernelRegressor(n_components=30, max_iter=60, validation=None),
    dkl.ContinuousKernelClassifier(n_components=30, max_iter=60, validation=None),
    dkl.InfiniteFeatureRegressor(max_features=6, alpha=1.0, candidates=10, max_iter=4, random_state=0),
    dkl.InfiniteFeatureClassifier(max_features=6, alpha=1.0, candidates=10, loss="log_loss", random_state=0),
    dkl.MultipleKernelRegressor(["gaussian", "laplacian"], 30, cv=2, n_alphas=5, eps=0.1, solver_tol=1e-3),
    dkl.MultipleKernelClassifier(["gaussian"], 30, channels="each", alpha=1.0, solver_tol=1e-3),
]
LATER = [
    dkl.MultipleKernelClassifier(
        ["gaussian"], 30, cv=2, n_alphas=5, eps=0.1, solver_tol=1e-3, by_output=True, debias=True
    ),
    dkl.MultipleKernelRegressor(["exp_chi2", "gaussian"], 30, per_channel=0.9, alpha=1.0, solver_tol=1e-3),
    dkl.NystroemFeatures("exp_chi2", 20, landmarks="leverage", random_state=0),
    dkl.SingleKernelClassifier(n_components=20, landmarks="kmeans++", random_state=0),
    dkl.Chi2Features("homogeneous", 3, kernel="jensen_shannon"),
    dkl.FourierFeatures(form="phase"),
    dkl.FourierFeatures(kernel="skewed_chi2"),
    dkl.SingleKernelRegressor(n_components=100, form="phase"),
    dkl.SingleKernelRegressor(n_components=100, reduce=0.99),
    dkl.SingleKernelRegressor(n_components=100, kernel="skewed_chi2"),
    dkl.SingleKernelRegressor(n_components=100, kernel="exp_chi2"),
    dkl.SingleKernelClassifier(n_components=100, form="phase"),
    dkl.SingleKernelClassifier(n_components=100, kernel="exp_chi2"),
    dkl.SingleKernelRegressor(n_components=50, learn="gcv", sigma_l1=0.01, starts=1, tol=0.3),
    dkl.SingleKernelClassifier(n_components=50, learn="cv", cv=2, groups="each", starts=1, tol=0.3),
    dkl.SingleKernelClassifier(n_components=50, learn="log_loss", cv=2, groups="each", max_iter=5),
]


def expected_failures(estimator):
    """Checks that ignore the tag positive_only, give folds to whoever has a parameter cv, or expect of weights what
    calibration, for which a row counts once, levels out, and what landmarks, each of which is one row, cannot be."""
    if getattr(estimator, "kernels", None) and estimator.alpha != "auto":
        why = "weights are as near as the duality gap says; principal axes count every row once"
        return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    if isinstance(estimator, dkl.InfiniteFeatureClassifier):
        why = "weights are as near as the KKT residual says"
        return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    if isinstance(estimator, dkl.NystroemFeatures):
        why = "a row that weighs more is drawn sooner; a row that stands there twice may be drawn twice"
        return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    if getattr(estimator, "calibrate", None) is not None:
        why = "a row counts once for calibration, whatever it weighs"
        weights = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
        return weights | {"check_class_weight_classifiers": "expects one class to be chosen for its weight alone"}
    if getattr(estimator, "kernel", None) in ("skewed_chi2", "exp_chi2") and hasattr(estimator, "class_weight"):
        return {"check_class_weight_classifiers": "draws negative entries for an estimator tagged positive_only"}
    if getattr(estimator, "learn", None) in ("validation", "gcv"):
        why = "sets cv, which learn='validation' and 'gcv' refuse"
        return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    return {}


@parametrize_with_checks(SOON, expected_failed_checks=expected_failures)
def test_sklearn_check(estimator, check):
    """Every check scikit-learn has for an estimator of that kind."""
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(LATER, expected_failed_checks=expected_failures)
def test_sklearn_check_of_variants(estimator, check):
    """The same for more kernels, forms and objectives."""
    check(estimator)
