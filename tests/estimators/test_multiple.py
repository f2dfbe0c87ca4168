"""Several kernels against a proximal solver on the features, GMKL on their gram matrices, ridge, and refits."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
from scipy.special import expit, softmax
from sklearn.linear_model import Ridge

import dkl
from dkl.exact import GMKL
from tests.estimators.group_lasso import features_of, group_lasso

N = 180
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.5 * X[:, 3], np.cos(X[:, 0])]) + 0.05 * RNG.normal(size=(N, 2)) + 1
CODE = np.digitize(Y[:, 0], [0.6, 1.5])
WEIGHT = RNG.integers(1, 4, N).astype(float)
FOLD = np.arange(N) % 3
CHANNELS = {"a": slice(0, 2), "b": slice(2, 3), "c": [4, 3]}
BASE = {
    "kernels": ["gaussian:0.7", "laplacian:scale*0.5"],
    "n_components": 8,
    "channels": CHANNELS,
    "random_state": 0,
    "verbose": 0,
}
NAMES = [f"{channel} {kernel}" for channel in CHANNELS for kernel in BASE["kernels"]]
TIGHT = {"solver_tol": 1e-11}
pytestmark = pytest.mark.filterwarnings("ignore:cv chose alpha")


def regressor(**options):
    """Not fitted yet."""
    return dkl.MultipleKernelRegressor(**(BASE | options))


def classifier(**options):
    """Not fitted yet."""
    return dkl.MultipleKernelClassifier(**(BASE | options))


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False}, {"by_output": True}, {"penalty": "l21:ridge=0.7"}, {"form": "phase"}],
    ids=str,
)
def test_weights_and_errors_are_those_of_another_solver(options, weight):
    """On the features, of all rows and of the rows of each fold; all of the path, and the one that is best."""
    model = regressor(n_alphas=4, eps=0.05, cv=FOLD, **TIGHT, **options).fit(X, Y, weight)
    phi, w = features_of(model, X), np.ones(N) if weight is None else weight
    groups, how = model.features_.column_group, (options.get("fit_intercept", True), 0.7 * ("penalty" in options))
    path, by_output = model.path_, "by_output" in options
    for own in [[0], [1]] if by_output else [[0, 1]]:
        one = path.isel(output=own[0]) if by_output else path
        for i, alpha in enumerate(np.asarray(one["alpha"])):
            W, b = group_lasso(phi, Y[:, own], w, alpha, groups, np.ones(6), *how)
            norms = np.sqrt(np.bincount(groups, (W**2).sum(axis=1)))
            np.testing.assert_allclose(one["norm"][i], norms, atol=2e-4 * norms.max() + 1e-9)
            np.testing.assert_allclose(one["intercept"][i], b[0] if by_output else b, atol=2e-3)
            assert one["active"][i] == (norms > 1e-6).sum()
            assert one["gap"][i] <= 1e-11
            loss = 0.5 * (w[:, None] * (Y[:, own] - phi @ W - b) ** 2).sum() + alpha * norms.sum()
            assert float(one["objective"][i]) * w.sum() == pytest.approx(loss + alpha * how[1] / 2 * (W**2).sum(), 1e-6)
            for k in range(3):
                on = k != FOLD
                W, b = group_lasso(phi[on], Y[on][:, own], w[on], alpha, groups, np.ones(6), *how)
                missed = ((Y[~on][:, own] - phi[~on] @ W - b) ** 2).mean(axis=1)
                assert float(one["error"][i, k]) == pytest.approx(np.average(missed, weights=w[~on]), rel=1e-3)
    best = np.asarray(path["error"].mean("fold")).argmin(axis=-1)
    alphas = np.asarray(path["alpha"])
    np.testing.assert_array_equal(model.alpha_, alphas[[0, 1], best] if by_output else alphas[best])
    here = regressor(alpha=model.alpha_, **TIGHT, **options) if not by_output else None
    if here is not None:
        np.testing.assert_allclose(here.fit(X, Y, weight).predict(X), model.predict(X), atol=2e-3)
    assert model.certificate_["met"]


def test_kernel_weights_are_those_of_gmkl():
    """The issue's equivalence: on the gram matrices of the same features, within 1e-5."""
    model = regressor(alpha=3.0, **TIGHT).fit(X, Y, WEIGHT)
    phi, groups = features_of(model, X), model.features_.column_group
    grams = [phi[:, groups == g] @ phi[:, groups == g].T for g in range(6)]
    exact = GMKL("precomputed", alpha=3.0, tol=1e-10, max_iter=3000, verbose=0).fit(grams, Y, WEIGHT)
    weights = model.kernel_weights_
    np.testing.assert_allclose(weights.values.ravel(), exact.kernel_weights_, atol=1e-5 * exact.kernel_weights_.max())
    np.testing.assert_allclose(model.predict(X), exact.predict(grams), atol=1e-4)
    assert weights.dims == ("channel", "kernel")
    assert weights.channel.values.tolist() == list(CHANNELS)
    assert weights.kernel.values.tolist() == BASE["kernels"]
    assert model.groups_ == NAMES
    assert model.selected_groups_ == [n for n, on in zip(NAMES, exact.kernel_weights_ > 0, strict=True) if on]
    assert 0 < len(model.selected_groups_) < 6


def test_ridge_is_left_where_the_norms_do_not_count():
    """A small alpha with alpha ridge = 2: scikit-learn's ridge."""
    model = regressor(alpha=2e-5, penalty="l21:ridge=1e5", solver_tol=1e-10).fit(X, Y, WEIGHT)
    phi = features_of(model, X)
    right = Ridge(alpha=2.0, solver="cholesky").fit(phi, Y, WEIGHT)
    np.testing.assert_allclose(model.predict(X), right.predict(phi), atol=1e-4)
    np.testing.assert_allclose(model.coef_, right.coef_, atol=1e-4)


def test_one_kernel_is_one_group():
    """Its weights are those of a ridge whose alpha is over their length."""
    model = regressor(kernels=["gaussian:0.7"], channels=None, alpha=2.0, **TIGHT).fit(X, Y[:, 0])
    phi = features_of(model, X)
    right = Ridge(alpha=2.0 / np.linalg.norm(model.coef_)).fit(phi, Y[:, 0])
    np.testing.assert_allclose(model.coef_, right.coef_, atol=1e-4)
    assert model.groups_ == ["gaussian:0.7"]
    assert model.kernel_weights_.shape == (1, 1)
    assert model.kernel_weights_.item() == pytest.approx(np.linalg.norm(right.coef_) / 2**0.5, rel=1e-4)
    assert isinstance(model.intercept_, float)


def test_groups_of_other_sizes():
    """The penalty of a group grows with the root of its size; a transformer is a group on each channel."""
    maps = {"few": dkl.FourierFeatures(n_components=6, sigma=1.0, random_state=0), "many": dkl.NystroemFeatures(
        n_components=24, sigma=0.5, random_state=1)}  # fmt: skip
    model = regressor(kernels=None, features=maps, alpha=1.5, channels=[0, 0, 0, 1, 1], **TIGHT).fit(X, Y)
    phi, groups = features_of(model, X), model.features_.column_group
    drawn = maps["many"].fit(X[:, 3:]).transform(X[:, 3:])
    np.testing.assert_allclose(phi[:, groups == 3], drawn, atol=1e-12)
    sizes = np.bincount(groups)
    assert sizes.tolist() == [6, 24, 6, 24]
    W, b = group_lasso(phi, Y, np.ones(N), 1.5, groups, np.sqrt(sizes / 15))
    np.testing.assert_allclose(model.predict(X), phi @ W + b, atol=1e-4)
    assert model.groups_ == ["0 few", "0 many", "1 few", "1 many"]


@pytest.mark.parametrize("debias", [0.3, True])
def test_weights_of_the_chosen_kernels_anew(debias):
    """scikit-learn's ridge on their features; True: the alpha with the least error over the folds."""
    model = regressor(debias=debias, cv=FOLD, rule="last", eps=0.3, **TIGHT).fit(X, Y, WEIGHT)
    plain = regressor(cv=FOLD, rule="last", eps=0.3, **TIGHT).fit(X, Y, WEIGHT)
    phi = features_of(model, X)
    on = np.isin(model.features_.column_group, np.flatnonzero(model.kernel_weights_.values.ravel()))
    assert 0 < on.sum() < len(on)

    def missed(alpha):
        errors = []
        for k in range(3):
            fit = Ridge(alpha=alpha).fit(phi[k != FOLD][:, on], Y[k != FOLD], WEIGHT[k != FOLD])
            squares = ((fit.predict(phi[k == FOLD][:, on]) - Y[k == FOLD]) ** 2).sum(axis=1)
            errors.append(np.average(squares, weights=WEIGHT[k == FOLD]))
        return np.mean(errors)

    alpha = debias if debias is not True else min(np.logspace(-4, 3, 8), key=missed)
    right = Ridge(alpha=alpha).fit(phi[:, on], Y, WEIGHT)
    np.testing.assert_allclose(model.coef_[:, on], right.coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, right.intercept_, atol=1e-7)
    assert not model.coef_[:, ~on].any()
    assert model.kernel_weights_.identical(plain.kernel_weights_)
    np.testing.assert_array_equal(model.at("last").coef_, plain.coef_)


@pytest.mark.parametrize("by_output", [False, True])
def test_any_point_of_the_path(by_output, tmp_path):
    """The fit of that alpha; one that is not on the path is refused; also after loading."""
    model = regressor(n_alphas=6, by_output=by_output, cv=3, **TIGHT).fit(X, Y)
    model.save(tmp_path / "m.zarr")
    for one in (model, dkl.load(tmp_path / "m.zarr")):
        alphas = np.asarray(one.path_["alpha"])
        there = one.at(alphas[:, 3] if by_output else alphas[3])
        for j in range(2):
            alone = regressor(alpha=alphas[j, 3] if by_output else alphas[3], **TIGHT)
            right = alone.fit(X, Y[:, j] if by_output else Y)
            got = there.predict(X)[:, j] if by_output else there.predict(X)
            np.testing.assert_allclose(got, right.predict(X), atol=2e-4)
        assert there.alpha_ == pytest.approx(alphas[:, 3] if by_output else alphas[3])
        assert there.score(X, Y) != one.score(X, Y)
        norm = one.path_["norm"].values[:, 3] if by_output else one.path_["norm"].values[3]
        np.testing.assert_allclose(there.kernel_weights_.values.reshape(norm.shape), norm / 2**0.5)
        assert there.selected_groups_ == [
            name for name, on in zip(NAMES, norm.reshape(-1, 6).any(0), strict=True) if on
        ]
        np.testing.assert_array_equal(one.at("best").predict(X), one.predict(X))
        assert (np.asarray(one.at("last").alpha_) == alphas[..., -1]).all()
        assert not one.at(alphas[..., 0]).coef_.any()
        with pytest.raises(ValueError, match=r"alpha=1234 is not on the path, whose nearest is .*; use one of path_"):
            one.at(1234.0)
        for wrong in (np.nan, None, 0.0, -1.0, [1.0, 2.0, 3.0], "worst"):
            with pytest.raises(ValueError, match="is not a point of this path; use"):
                one.at(wrong)
        with pytest.raises(ValueError, match="alpha='worst' is not a point of this path; use 'best', 'one_se', 'last'"):
            one.at("worst")
        there.save(tmp_path / f"{by_output}.zarr", overwrite=True)
        again = dkl.load(tmp_path / f"{by_output}.zarr")
        np.testing.assert_array_equal(again.predict(X), there.predict(X))


def test_rules():
    """Of the least mean error, within a standard error of it with more penalty, the last without folds."""
    found = {rule: regressor(rule=rule, cv=FOLD).fit(X, Y) for rule in ("best", "one_se", "last")}
    errors = np.asarray(found["best"].path_["error"])
    mean, alphas = errors.mean(axis=1), np.asarray(found["best"].path_["alpha"])
    best = mean.argmin()
    within = mean <= mean[best] + errors[best].std(ddof=1) / 3**0.5
    assert found["best"].alpha_ == alphas[best]
    assert found["one_se"].alpha_ == alphas[np.argmax(within)] > alphas[best]
    assert found["last"].alpha_ == alphas[-1]
    alone = regressor(rule="last", cv=None, n_alphas=5, eps=0.1).fit(X, Y)
    assert "error" not in alone.path_
    assert alone.alpha_ == pytest.approx(0.1 * float(alone.path_["alpha"][0]))
    with pytest.raises(ValueError, match="'best' is not a point of this path; use 'last' or an alpha"):
        alone.at("best")
    listed = regressor(alpha=[1.0, 10.0, 3.0], cv=FOLD).fit(X, Y)
    assert listed.path_["alpha"].values.tolist() == pytest.approx([10, 3, 1])


FORMS = {
    "list": lambda: [X[:, :2], X[:, 2:3], X[:, [4, 3]]],
    "dask": lambda: [da.from_array(X[:, :2], chunks=(50, 1)), da.from_array(X[:, 2:3], chunks=70), X[:, [4, 3]]],
    "sparse": lambda: [sp.csr_array(X[:, :2]), X[:, 2:3], sp.csc_array(X[:, [4, 3]])],
    "frames": lambda: [pd.DataFrame(X[:, s]).rename(columns=lambda n, i=i: f"{i}{n}") for i, s in enumerate(
        ([0, 1], [2], [4, 3]))],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_list_of_arrays_is_a_channel_each(form):
    """As one array with slices; and again when predicting."""
    one = np.hstack(FORMS["list"]())
    right = regressor(channels=[slice(0, 2), slice(2, 3), slice(3, None)]).fit(one, Y)
    model = regressor(channels=None).fit(FORMS[form](), Y)
    if form != "frames":  # which have names
        np.testing.assert_allclose(model.predict(one), right.predict(one), atol=1e-6)
    np.testing.assert_allclose(np.asarray(model.predict(FORMS[form]())), right.predict(one), atol=1e-6)
    assert model.score(FORMS[form](), Y) == pytest.approx(right.score(one, Y))
    assert model.evaluate(FORMS[form](), Y)["r2"] == pytest.approx(right.evaluate(one, Y)["r2"])
    assert model.kernel_weights_.channel.values.tolist() == ["0", "1", "2"]
    assert right.kernel_weights_.channel.values.tolist() == ["0:2", "2:3", "3:"]
    with pytest.raises(ValueError, match=r"X has 2 arrays of \[2, 3\] columns; the fit had 3 channels of \[2, 1, 2\]"):
        model.predict([one[:, :2], one[:, 2:]])
    assert "does NOT" not in str(dkl.plan(FORMS[form](), regressor(channels=None), Y))


def test_channels_by_labels_and_coordinates():
    """The same model by labels, texts, a coordinate, and for each input; inputs of no channel are not used."""
    order = [0, 1, 1, 0, 0]
    labels = [("u", "v")[i] for i in order]
    right = regressor(channels={"u": [0, 3, 4], "v": [1, 2]}).fit(X, Y)
    rows = xr.DataArray(X, dims=("row", "band"), coords={"sensor": ("band", labels)})
    for channels, given in ((labels, X), ("sensor", rows), (np.array(labels), X)):
        model = regressor(channels=channels).fit(given, Y)
        np.testing.assert_array_equal(np.asarray(model.predict(given)), right.predict(X))
        assert model.kernel_weights_.identical(right.kernel_weights_)
    texts = regressor(channels=["0:2", "2:3"]).fit(X, Y)
    other = X.copy()
    other[:, 3:] = 7.0
    np.testing.assert_array_equal(texts.predict(other), texts.predict(X))
    each = regressor(channels="each", kernels=["gaussian"]).fit(pd.DataFrame(X, columns=list("abcde")), Y)
    assert each.groups_ == list("abcde")


@pytest.mark.parametrize("kernels", [["gaussian:0.7", "gaussian:scale*2", "laplacian"], [("gaussian", 0.7), (
    "gaussian", "scale*2"), ("laplacian", "scale")], {"p": ("gaussian", 0.7), "q": "gaussian:scale*2", "r":
    "laplacian"}])  # fmt: skip
def test_kernels_by_texts_pairs_and_names(kernels):
    """The same maps; sigma of the scale is that of the channel."""
    model = regressor(kernels=kernels, alpha=1.0).fit(X, Y)
    maps = [channel.of for channel in model.features_.channels]
    assert [one.kernel.name for one in maps[:3]] == ["gaussian", "gaussian", "laplacian"]
    scale = 1 / np.sqrt(X[:, :2].var(axis=0).sum())
    np.testing.assert_allclose(maps[0].sigma, 0.7)
    np.testing.assert_allclose(maps[1].sigma, 2 * scale, rtol=1e-12)
    np.testing.assert_allclose(maps[2].sigma, 1 / X[:, :2].std(axis=0).sum(), rtol=1e-12)
    wanted = ["p", "q", "r"] if isinstance(kernels, dict) else ["gaussian:0.7", "gaussian:scale*2", "laplacian"]
    assert model.kernel_weights_.kernel.values.tolist() == wanted


def test_kernels_of_histograms():
    """Each additive map is fitted to its own channel, negative entries are refused by row."""
    rows = np.abs(X)
    model = regressor(kernels=["exp_chi2", "gaussian", "skewed_chi2"], n_components=12).fit(rows, Y)
    assert len(model.features_.channels) == 9
    assert model.score(rows, Y) > 0.3
    with pytest.raises(ValueError, match="row 0"):
        regressor(kernels=["exp_chi2"]).fit(X, Y)
    assert model.__sklearn_tags__().input_tags.positive_only
    assert not regressor().__sklearn_tags__().input_tags.positive_only


def test_principal_axes_of_each_kernel():
    """All of them change nothing; few of them are those of numpy's decomposition."""
    whole = regressor(alpha=1.0, **TIGHT).fit(X, Y)
    turned = regressor(alpha=1.0, per_channel=8, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(turned.predict(X), whole.predict(X), atol=1e-4)
    np.testing.assert_allclose(turned.kernel_weights_, whole.kernel_weights_, atol=1e-4)
    few = regressor(alpha=1.0, per_channel=3, **TIGHT).fit(X, Y)
    phi, groups = features_of(whole, X), whole.features_.column_group
    parts = []
    for g in range(6):
        own = phi[:, groups == g] - phi[:, groups == g].mean(axis=0)
        parts.append(own @ np.linalg.svd(own, full_matrices=False)[2][:3].T)
    W, b = group_lasso(np.hstack(parts), Y, np.ones(N), 1.0, np.repeat(range(6), 3), np.ones(6))
    np.testing.assert_allclose(few.predict(X), np.hstack(parts) @ W + b, atol=1e-4)
    heavy = np.where(np.arange(N) == 5, 1e9, 1.0)
    assert np.isfinite(regressor(per_channel=3).fit(X, Y, heavy).predict(X)).all()


def test_predictions_need_the_chosen_kernels_alone():
    """The maps of the others are not made."""
    model = regressor(rule="last", eps=0.3).fit(X, Y)
    assert 0 < len(model.selected_groups_) < 6
    assert model._scores().features.map.n_features == 8 * len(model.selected_groups_)
    phi = features_of(model, X)
    np.testing.assert_allclose(model.predict(X), phi @ model.coef_.T + model.intercept_, atol=1e-12)
    nothing = model.at(model.path_["alpha"][0])
    np.testing.assert_allclose(nothing.predict(X), np.tile(Y.mean(axis=0), (N, 1)))
    assert nothing.selected_groups_ == []


@pytest.mark.parametrize("by_output", [False, True])
@pytest.mark.parametrize("labels", [CODE, CODE > 0, np.array(["low", "mid", "top"])[CODE]], ids=["3", "2", "texts"])
def test_classes(labels, by_output, tmp_path):
    """Targets of -1 and +1; groups are shared by the classes, or each class has its own."""
    model = classifier(by_output=by_output, cv=FOLD, **TIGHT).fit(X, labels, WEIGHT)
    kinds = np.unique(labels)
    Z = np.where(labels[:, None] == (kinds[1:] if len(kinds) == 2 else kinds), 1.0, -1.0)
    own = regressor(by_output=by_output, cv=FOLD, **TIGHT).fit(X, Z, WEIGHT)
    got = model.decision_function(X).reshape(N, -1)
    np.testing.assert_allclose(got, own.predict(X).reshape(N, -1), atol=1e-3)
    assert model.score(X, labels) > 0.6
    if by_output and len(kinds) > 2:
        assert model.kernel_weights_.dims == ("output", "channel", "kernel")
        assert model.kernel_weights_.output.values.tolist() == kinds.tolist()
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    assert again.path_.identical(model.path_)
    assert again.kernel_weights_.identical(model.kernel_weights_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    calibrated = classifier(calibrate=20).fit(X, labels)
    assert hasattr(calibrated, "thresholds_")
    assert not hasattr(calibrated.at("best"), "thresholds_")


@pytest.mark.parametrize("penalty", ["l21", "l1linf"])
@pytest.mark.parametrize(
    ("loss", "cls"), [("log_loss", classifier), ("logistic", classifier), ("huber:delta=0.5", regressor)]
)
def test_other_losses_are_at_their_least_point(loss, cls, penalty):
    """The gradient of each group is alpha in the dual norm where it is used, and no more elsewhere."""
    target = CODE if cls is classifier else Y
    model = cls(loss=loss, penalty=penalty, n_alphas=3, eps=0.3, cv=None, rule="last", solver_tol=1e-8).fit(X, target)
    phi, groups = features_of(model, X), model.features_.column_group
    if cls is classifier:
        shown = model.decision_function(X)
        hot = (CODE[:, None] == model.classes_).astype(float)
        p = softmax(shown, axis=1) if loss == "log_loss" else expit(shown)
        slope = p - hot
        assert model.score(X, CODE) > 0.5
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    else:
        slope = np.clip(model.predict(X) - Y, -0.5, 0.5)
    gradient = phi.T @ slope
    sums = np.abs(slope.sum(axis=0))
    assert sums.max() < 1e-5
    for g, name in enumerate(model.groups_):
        own = gradient[groups == g]
        dual = np.linalg.norm(own) if penalty == "l21" else np.abs(own).sum()
        on = name in model.selected_groups_
        assert dual <= model.alpha_ * (1 + 1e-5)
        assert not on or dual == pytest.approx(model.alpha_, rel=1e-4)
    assert len(model.selected_groups_) > 0
    assert model.certificate_["kind"] == "KKT residual"
    assert model.certificate_["met"]
    assert {"objective", "alpha"} <= set(model.history_)
    there = model.at(model.path_["alpha"][1])
    assert there.certificate_["kind"] == "KKT residual"
    assert not np.array_equal(there.coef_, model.coef_)


def test_l2_leaves_no_kernel_out():
    """It is scikit-learn's ridge on all features, along a path."""
    model = regressor(penalty="l2", n_alphas=5, cv=FOLD).fit(X, Y, WEIGHT)
    phi = features_of(model, X)
    right = Ridge(alpha=model.alpha_).fit(phi, Y, WEIGHT)
    np.testing.assert_allclose(model.predict(X), right.predict(phi), atol=1e-6)
    assert model.selected_groups_ == NAMES
    error = [
        np.average(((Ridge(alpha=a).fit(phi[k != FOLD], Y[k != FOLD], WEIGHT[k != FOLD]).predict(phi[k == FOLD])
        - Y[k == FOLD]) ** 2).mean(axis=1), weights=WEIGHT[k == FOLD]) for a in model.path_["alpha"].values
        for k in range(3)
    ]  # fmt: skip
    np.testing.assert_allclose(model.path_["error"].values.ravel(), error, rtol=1e-5)


def test_errors_of_other_losses_choose(tmp_path):
    """The mean loss of each fold; the model is saved with its path, and has probabilities."""
    model = classifier(loss="logistic", n_alphas=4, eps=0.05, cv=FOLD, debias=True, solver_tol=1e-4).fit(X, CODE > 0)
    errors = model.path_["error"].mean("fold").values
    assert model.alpha_ == model.path_["alpha"].values[errors.argmin()]
    assert errors[0] > errors.min()
    at = model.at("best")
    assert not np.array_equal(at.coef_, model.coef_), "debiased weights are others"
    np.testing.assert_array_equal(at.coef_.any(axis=0), model.coef_.any(axis=0))
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.path_.identical(model.path_)
    assert again.history_.identical(model.history_)


@pytest.mark.parametrize(
    ("learn", "options"),
    [("joint", {"alpha": 2.0}), ("validation", {}), ("cv", {}), ("joint", {"alpha": 2.0, "loss": "log_loss"})],
    ids=str,
)
def test_learned_sigmas(learn, options, tmp_path):
    """They move, the objective that is learned falls, and the weights are those of a fit at the sigmas."""
    cls, target = (classifier, CODE) if "loss" in options else (regressor, Y)
    few = {"channels": {"a": slice(0, 2), "b": [3]}, "kernels": ["gaussian:0.3", "gaussian:2"], "groups": "each"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cls(learn=learn, max_iter=6, cv=3, **few, **options).fit(X, target)
    stage = model.history_["stage"].values
    fell = model.history_["objective"].values[stage == stage[0]]  # the next one is at another alpha, or on more rows
    assert fell[-1] < fell[0]
    assert not np.allclose(model.sigmas_["a gaussian:0.3"], 0.3, rtol=0.01)
    assert model.sigmas_["a gaussian:0.3"].shape == (2,)
    assert ("error" in model.path_) == (learn == "cv")
    if "loss" not in options:
        phi, groups = features_of(model, X), model.features_.column_group
        W, b = group_lasso(phi, Y, np.ones(N), model.alpha_, groups, np.ones(4))
        np.testing.assert_allclose(model.predict(X), phi @ W + b, atol=5e-3)
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.history_.identical(model.history_)
    plan = dkl.plan(X, cls(learn=learn, cv=3, **few, **options), target)
    assert plan.iteration_seconds is not None


@pytest.mark.parametrize("learn", [{"learn": "joint", "alpha": 2.0}, {"learn": "cv"}, {"learn": "validation"}], ids=str)
def test_sigmas_of_few_features_in_a_map_of_many(learn, tmp_path):
    """The sigmas are those that few features learn; the weights are those of a fit of many features, or their axes."""
    few = {"channels": {"a": slice(0, 2), "b": [3]}, "kernels": ["gaussian:0.3"], "cv": 3, "max_iter": 4, **learn}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        narrow = regressor(**few).fit(X, Y)
        wide = regressor(**few | {"n_components": 20, "learn_components": 8}, **TIGHT).fit(X, Y)
        axes = regressor(**few | {"n_components": 20, "learn_components": 8, "per_channel": 5}, **TIGHT).fit(X, Y)
    for one, count in ((wide, 20), (axes, 5)):
        for name, sigma in narrow.sigmas_.items():
            np.testing.assert_array_equal(one.sigmas_[name], sigma)
        phi, groups = features_of(one, X), one.features_.column_group
        assert np.bincount(groups).tolist() == [count, count]
        W, b = group_lasso(phi, Y, np.ones(N), one.alpha_, groups, np.ones(2))
        np.testing.assert_allclose(one.predict(X), phi @ W + b, atol=2e-3)
        one.save(tmp_path / f"{count}.zarr")
        np.testing.assert_array_equal(dkl.load(tmp_path / f"{count}.zarr").predict(X), one.predict(X))
    own = [one.of.of.n_features for one in axes.features_.channels]
    assert own == [20, 20]
    plan = dkl.plan(X, regressor(**few | {"n_components": 300, "learn_components": 8, "per_channel": 5}), Y)
    assert plan.cost.features == 10


BAD = [
    ({"learn": "joint"}, "alpha='auto' does not go with learn='joint'.*; give a number"),
    ({"learn_components": 3}, "learn_components=3 does not go with learn='none'; use learn='joint'"),
    ({"learn": "cv", "kernels": None, "features": [dkl.FourierFeatures()]}, "does not go with learn='cv', which moves"),
    ({"learn": "cv", "cv": None, "alpha": 1.0}, "learn='cv' needs folds, got cv=None"),
    ({"learn": "validation", "penalty": "l2"}, "penalty='l2' does not go with learn='validation'"),
    ({"learn": "validation", "loss": "huber"}, "loss='huber' with learn='validation'"),
    ({"learn": "cv", "alpha": [1.0, 2.0]}, "alpha has 2 values, and learn='cv' takes one"),
    ({"learn": "gcv"}, "learn='gcv' is not known"),
    ({"groups": "channel"}, "groups='channel' is not known; use one of 'each'"),
    ({"kernels": []}, r"kernels=\[\] must be a list of one kernel or more"),
    ({"kernels": "gaussian"}, "kernels='gaussian' must be a list"),
    ({"kernels": ["gausian"]}, "kernel='gausian' is not known; did you mean 'gaussian'"),
    ({"kernels": ["gaussian:0"]}, "kernels has 'gaussian:0': sigma=0.0 must be above 0"),
    ({"kernels": ["gaussian:-1"]}, r"sigma contains -1.0"),
    ({"kernels": ["gaussian:wide"]}, "sigma='wide' is not known"),
    ({"kernels": ["gaussian", ("gaussian", "scale")]}, "kernels has 'gaussian' twice"),
    ({"kernels": [("gaussian", [1.0, 2.0, 3.0])]}, "on channel 'a': sigma has shape"),
    ({"channels": [slice(0, 3), slice(2, 5)]}, "channels '0:3' and '2:5' share 1 input, e.g. 2"),
    ({"channels": {"a": slice(0, 3), "b": []}}, r"'b': \[\], which is empty"),
    ({"channels": [slice(0, 3), slice(9, 12)]}, r"'9:12': slice\(9, 12, None\), which is empty"),
    ({"channels": {"a": [0, 0]}}, "names an input twice"),
    ({"channels": {}}, "names no channel"),
    ({"channels": "sensor"}, "channels='sensor' is not a coordinate of the inputs"),
    ({"channels": [0, 1]}, r"channels has shape \(2,\), but X has 5 inputs"),
    ({"kernels": {"a b": "gaussian", "b": "laplacian"}, "channels": {"x": slice(0, 3), "x a": slice(3, 5)}},
     r"\('x a', 'b'\) make the group 'x a b', which is also that of \('x', 'a b'\)"),
    ({"kernels": {" ": "gaussian"}, "channels": None}, "make the group ' ', which says nothing; give other names"),
    ({"penalty": "l1"}, "penalty='l1' is not known"),
    ({"penalty": "l2:ridge=1"}, "behind the colon of l21 and l1linf stands ridge"),
    ({"loss": "hube"}, "loss='hube' is not known"),
    ({"loss": "log_loss"}, "loss='log_loss' is for classes and MultipleKernelRegressor learns numbers"),
    ({"penalty": "l21:ridge=-1"}, "behind the colon of l21 and l1linf stands ridge"),
    ({"cv": None}, r"alpha='auto' is a path.*cv=None has none; use cv=5"),
    ({"alpha": 0.0}, "alpha=0.0 must be above 0"),
    ({"alpha": [1.0, -1.0]}, "alpha contains -1.0"),
    ({"eps": 1.5}, "eps=1.5 must be between 0 and 1"),
    ({"rule": "first"}, "rule='first' is not known"),
    ({"debias": -1.0}, "debias=-1.0 must be"),
    ({"by_output": "yes"}, "by_output='yes' must be True or False"),
    ({"n_alphas": 0}, "n_alphas=0 must be"),
    ({"features": []}, r"features=\[\] must be a list"),
    ({"features": [3], "kernels": None}, "features=3 must be a dkl.Chi2Features or|features=3 must be a dkl"),
    ({"features": [dkl.FourierFeatures()]}, "stands in place of kernels"),
    ({"per_channel": 1.5}, "per_channel=1.5 must be"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD, ids=[str(options) for options, _ in BAD])
def test_bad_parameters(options, message):
    """One line each, with the value and what to type; a plan refuses the same."""
    if "features" in options and options["features"] == []:
        options = options | {"kernels": None}
    with pytest.raises(ValueError, match=message) as refused:
        regressor(**options).fit(X, Y)
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=message):
        dkl.plan(X, regressor(**options), Y)


def test_bad_rows():
    """A channel that is constant, with a scale or a number as sigma; lists that do not fit."""
    flat = X.copy()
    flat[:, 2] = 1.0
    with pytest.raises(ValueError, match=r"channel 'b' has no variance: its 1 input \(the first is 2\) are constant"):
        regressor().fit(flat, Y)
    with pytest.raises(ValueError, match=r"X is a list of 2 channels, got channels='each' too"):
        regressor(channels="each").fit([X, X], Y)
    with pytest.raises(ValueError, match=r"X\[0\] has 180 rows and X\[1\] has 10"):
        regressor(channels=None).fit([X, X[:10]], Y)
    with pytest.raises(ValueError, match=r"X\[1\] has no column"):
        regressor(channels=None).fit([X, X[:, :0]], Y)
    frames = [pd.DataFrame(X[:, :2]), pd.DataFrame(X[:, 2:]).iloc[::-1]]
    with pytest.raises(ValueError, match=r"X\[1\] has other rows than X\[0\]"):
        regressor(channels=None).fit(frames, Y)
    model = regressor(channels=[4, 0, 1, 2, 3]).fit(X, Y)
    with pytest.raises(ValueError, match="but the fit had one array; give its columns in order"):
        model.predict([X[:, :1]] * 5)


def test_outputs_of_other_sizes_are_said(recwarn):
    """One that is below the tolerance of the other; not with paths of their own, nor an output that is constant."""
    far = np.stack([Y[:, 0], 1e6 * Y[:, 1]], axis=1)
    with pytest.warns(UserWarning, match=r"output 0 of y is about .* times as large as output 1.*use by_output=True"):
        regressor(alpha=[1.0, 2.0], rule="last", cv=None).fit(X, far)
    recwarn.clear()
    regressor(alpha=1.0, by_output=True).fit(X, far)
    regressor(alpha=1.0).fit(X, np.stack([Y[:, 0], np.full(len(Y), 1 / 3)], axis=1))
    assert not recwarn.list


def test_a_class_of_one_fold_is_said(recwarn):
    """Its errors there are those of models that do not know it."""
    labels = np.where(Y[:, 0] > 0, "up", "down")
    labels[FOLD == 2] = np.where(np.arange((FOLD == 2).sum()) < 3, "rare", labels[FOLD == 2])
    how = {"channels": CHANNELS, "n_alphas": 2, "random_state": 0, "verbose": 0}
    with pytest.warns(UserWarning, match=r"class 'rare' has its 3 rows in fold 2 alone.*StratifiedKFold"):
        dkl.MultipleKernelClassifier(["gaussian"], 5, cv=FOLD, **how).fit(X, labels)
    recwarn.clear()
    dkl.MultipleKernelClassifier(["gaussian"], 5, cv=np.arange(len(X)) % 2, **how).fit(X, labels)
    assert not [one for one in recwarn.list if "alone" in str(one.message)]


def test_landmarks_that_add_but_rounding_do_not_lower_the_penalty():
    """With every row a landmark the weights are those of GMKL on the exact kernels; one input has few directions."""
    channels, alpha = [slice(0, 1), slice(1, 5)], 3.0
    maps = [dkl.NystroemFeatures(n_components=N, dtype="float64")]
    model = regressor(kernels=None, features=maps, channels=channels, alpha=alpha, **TIGHT).fit(X, Y[:, 0])
    few, many = (one.n_features for one in model.features_.channels)
    assert few < many / 2
    exact = GMKL(["gaussian"], channels=channels, alpha=alpha, tol=1e-9, max_iter=5000, verbose=0).fit(X, Y[:, 0])
    np.testing.assert_allclose(model.kernel_weights_.values.ravel(), exact.kernel_weights_, rtol=1e-4)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-4)


@pytest.mark.parametrize(
    "how", [{}, {"loss": "huber"}, {"loss": "log_loss"}, {"learn": "joint", "alpha": 1.0}], ids=str
)
def test_too_large_a_gram_is_refused(how):
    """With the way out, whose need is less; only if there is one."""
    cls, target = (classifier, np.arange(60) % 3) if how.get("loss") == "log_loss" else (regressor, np.arange(60.0))
    rows = np.random.default_rng(0).normal(size=(60, 50))
    model = cls(channels="each", n_components=1000, **how)
    with pytest.raises(MemoryError, match="would need") as refusal:
        model.fit(rows, target)
    plan = dkl.plan(rows, model, target)
    assert not plan.fits
    assert "100,000 components" in str(plan)
    if how.get("learn"):  # whose own gram is too large
        assert "per_channel" not in str(refusal.value)
        model.set_params(learn_components=10)
        plan = dkl.plan(rows, model, target)
    else:
        assert "principal axes of each of the 100 kernels (per_channel=" in str(refusal.value)
    axes = int(plan.instead.partition("per_channel=")[2].partition(")")[0])
    assert dkl.plan(rows, model.set_params(per_channel=axes), target).fits
    assert not dkl.plan(rows, model.set_params(per_channel=4 * axes), target).fits
