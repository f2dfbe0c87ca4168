"""ConvolutionalKernelClassifier: accuracy, parameters, images of any container and shape, disk, refusals."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch")

import dkl  # noqa: E402
from dkl.features.stored import restore_map  # noqa: E402
from dkl.torch import ConvolutionalKernelClassifier, CosineLayer  # noqa: E402

X, Y = (values.astype(np.float32) for values in load_digits(return_X_y=True))
FEW = slice(300)
SMALL = {
    "image_shape": (8, 8), "filters": (4,), "filter_size": 3, "dense": 8, "n_components": 12, "batch_size": 64,
    "max_iter": 3, "random_state": 0, "verbose": 0,
}  # fmt: skip


def fit(rows=FEW, **options):
    """A small network on some digits."""
    return ConvolutionalKernelClassifier(**{**SMALL, **options}).fit(X[rows], Y[rows])


def everything(model):
    """All that a fit has found, as bytes by name."""
    found = {f"features_{name}": values for name, values in model.features_.arrays.items()}
    found |= {"coef": model.coef_, "intercept": model.intercept_}
    found |= {name: model.history_[name].values for name in model.history_.data_vars if name != "seconds"}
    return {name: np.asarray(values).tobytes() for name, values in found.items()}


@pytest.fixture(scope="module")
def trained():
    """A network that has learned digits, and 297 rows that it has not seen."""
    size = {"filters": (8, 16), "dense": 32, "n_components": 64, "batch_size": 32, "max_iter": 20}
    return fit(slice(1500), **size), X[1500:], Y[1500:]


@pytest.mark.parametrize("layer", ["cosine", "relu", "none"])
def test_digits_are_learned(trained, layer):
    """With each kind of last layer; training lowers the loss, and the best epoch counts."""
    model, T, t = trained
    if layer != "cosine":
        params = {**model.get_params(), "layer": layer, "max_iter": 10}
        model = ConvolutionalKernelClassifier(**params).fit(X[:1500], Y[:1500])
    assert model.score(T, t) > (0.9 if layer == "cosine" else 0.85)
    history = model.history_
    assert history["objective"].values[-1] < 0.3 * history["objective"].values[0]


def test_probabilities_and_predictions_agree(trained):
    """Shares sum to one, the largest is predicted, and the log loss of `evaluate` is theirs."""
    model, T, t = trained
    shares = model.predict_proba(T)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(T))
    said = model.evaluate(T, t)
    assert said["accuracy"] == model.score(T, t)
    np.testing.assert_allclose(said["log_loss"], -np.log(shares[np.arange(len(t)), t.astype(int)]).mean())


@pytest.mark.parametrize("layer", ["cosine", "relu", "none"])
def test_the_torch_module_gives_the_scores(layer):
    """to_module is the whole network, standardising included, as torch's own layers compute it."""
    model = fit(layer=layer)
    images = torch.tensor(X[:50].reshape(-1, 1, 8, 8))
    with torch.no_grad():
        scores = model.to_module()(images).numpy()
    np.testing.assert_allclose(scores, model.decision_function(X[:50]), rtol=1e-4, atol=1e-5)


def test_the_cosines_become_a_layer_and_features(trained):
    """The trained layer of cosines inside the module transforms the outputs of the dense layer as dkl's map does."""
    module = trained[0].to_module()
    layer = next(one for one in module if isinstance(one, CosineLayer))
    hidden = torch.randn(5, 32)
    features = layer.to_features()
    found = features.transform(hidden.numpy().astype(float))
    np.testing.assert_allclose(found, layer(hidden).detach().numpy(), atol=1e-5)


def test_two_classes_have_one_score():
    """z of the pair (-z, z): its sign decides, and probabilities are those of the pair."""
    two = Y < 2
    model = ConvolutionalKernelClassifier(**{**SMALL, "max_iter": 20}).fit(X[two], Y[two])
    z = model.decision_function(X[two])
    assert model.coef_.shape == (1, 12)
    np.testing.assert_array_equal(model.predict(X[two]), (z > 0).astype(float))
    np.testing.assert_allclose(model.predict_proba(X[two])[:, 1], 1 / (1 + np.exp(-2 * z)))
    assert model.score(X[two], Y[two]) > 0.95


CHANGES = {
    "filters": (3,), "filter_size": 5, "dense": 9, "layer": "relu", "n_components": 13, "kernel": "laplacian",
    "sigma": 0.7, "frequencies": "iid", "learning_rate": 0.01, "momentum": 0.5, "momentum_start": 0.5,
    "momentum_ramp": 3, "decay": 0.1, "max_norm": 0.2,
    "batch_size": 32, "validation": 0.3, "max_iter": 2, "random_state": 1, "fit_intercept": False,
    "class_weight": {0.0: 5.0},
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_every_parameter_changes_the_answer(name):
    """None is stored and never read."""
    beside = {"momentum_start": 0.5} if name == "momentum_ramp" else {}
    before, after = fit(**beside), fit(**beside, **{name: CHANGES[name]})
    assert (before.decision_function(X[FEW]) != after.decision_function(X[FEW])).any()
    if name == "fit_intercept":
        assert not np.any(after.intercept_)
    if name == "max_norm":
        norm = np.linalg.norm(after.features_.arrays["cosine_omega"], axis=0)
        assert norm.max() <= 0.2 * (1 + 1e-9)


def test_momentum_rises():
    """From the first to the last value over momentum_ramp epochs."""
    model = fit(momentum_start=0.2, momentum=0.8, momentum_ramp=2, max_iter=4)
    np.testing.assert_allclose(model.history_["momentum"].values, [0.2, 0.5, 0.8, 0.8])


def test_early_stopping_keeps_the_best_epoch():
    """A high rate overfits a few rows; what is kept has the least held-out loss, and training ends after patience."""
    model = fit(slice(120), max_iter=200, patience=3, batch_size=16, learning_rate=0.1)
    loss = model.history_["validation_loss"].values
    assert len(loss) < 200
    assert len(loss) - 1 - loss.argmin() == 3
    shorter = fit(slice(120), max_iter=int(loss.argmin()) + 1, patience=3, batch_size=16, learning_rate=0.1)
    assert shorter.coef_.tobytes() == model.coef_.tobytes()


def test_the_spread_of_the_pixels_does_not_matter():
    """Images over 255, or with another zero, give the same network up to rounding."""
    model, other = fit(), ConvolutionalKernelClassifier(**SMALL).fit(100 + X[FEW] / 255, Y[FEW])
    np.testing.assert_allclose(other.decision_function(100 + X[FEW] / 255), model.decision_function(X[FEW]), atol=0.02)


def test_colours_lie_side_by_side():
    """A row is read pixel by pixel; a class that only the second colour tells is learned."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    images = rng.random((200, 6, 5, 3)).astype(np.float32)
    images[..., 1] += 0.4 * y[:, None, None]
    model = ConvolutionalKernelClassifier(**{**SMALL, "image_shape": (6, 5, 3), "batch_size": 20, "max_iter": 10})
    rows = images.reshape(200, -1)
    assert model.fit(rows, y).score(rows, y) > 0.95
    np.testing.assert_array_equal(model.features_.of.images(rows).numpy(), images.transpose(0, 3, 1, 2))


def test_sparse_rows_are_images_too():
    """csr rows give the network of the same dense rows, up to the rounding of their mean."""
    model = ConvolutionalKernelClassifier(**SMALL).fit(csr_array(X[FEW]), Y[FEW])
    np.testing.assert_allclose(model.decision_function(csr_array(X[FEW])), fit().decision_function(X[FEW]), atol=1e-3)


def test_a_diverging_network_says_so():
    """Before the first epoch it is an error that names the rate."""
    warnings.simplefilter("ignore")  # pytest takes it back
    with pytest.raises(ValueError, match=r"diverged.*lower learning_rate"):
        fit(learning_rate=1e12, layer="relu")


def test_time_is_a_limit():
    """max_time ends training with a warning."""
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert len(fit(max_iter=500, max_time=0.01).history_.iteration) < 500


def test_a_model_is_read_back(tmp_path, trained):
    """Arrays and JSON: the same scores, parameters and history; another process needs nothing else."""
    model, T, _ = trained
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    assert everything(again) == everything(model)
    assert again.decision_function(T).tobytes() == model.decision_function(T).tobytes()
    assert again.features_.of == model.features_.of
    assert again.n_features_in_ == 64


def test_a_map_of_other_sizes_is_refused():
    """Arrays that do not make the network that a record describes."""
    of = fit().features_
    with pytest.raises(ValueError, match=r"dense_bias has shape \(7,\)"):
        replace(of, arrays={**of.arrays, "dense_bias": np.zeros(7)})
    about, arrays = of.stored()
    values = {name: value for name, (_, value) in arrays.items()}
    with pytest.raises(ValueError, match="did you mean 'cosine'"):
        restore_map({"map": {**about["map"], "layer": "cosines"}}, values)


def test_settings_of_torch_are_the_users_again():
    """A fit leaves torch's threads and determinism as they were."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        fit()
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image_shape": None}, r"image_shape=None.*64 inputs.*image_shape=\(8, 8\)"),
        ({"image_shape": (8, 9)}, r"image_shape=\(8, 9\) is 72 numbers, and X has 64 inputs"),
        ({"image_shape": (64,)}, r"image_shape=\(64,\)"),
        ({"image_shape": "8x8"}, "image_shape='8x8'"),
        ({"filters": ()}, r"filters=\(\)"),
        ({"filters": (4, 4, 4, 4)}, "use at most 3"),
        ({"filter_size": 4}, "filter_size=4 must be odd.*3 or 5"),
        ({"layer": "cosines"}, "did you mean 'cosine'"),
        ({"layer": "relu", "max_norm": 2.0}, "max_norm=2 is a cap on frequencies, and layer='relu' has none"),
        ({"layer": "none", "decay": 0.1}, "decay=0.1 is for the layer before the scores"),
        ({"kernel": "exp_chi2"}, "transforms its inputs"),
        ({"sigma": [1.0, 2.0]}, "one number"),
        ({"sigma": "scal"}, "sigma='scal'"),
        ({"momentum": 1.0}, "momentum=1"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"validation": 0.999}, "validation=0.999"),
    ],
)
def test_refusals(options, said):
    """One line with what came and what to type."""
    with pytest.raises(ValueError, match=said) as refusal:
        fit(**options)
    assert "\n" not in str(refusal.value)


def test_rows_that_are_not_numbers_are_named():
    """A pixel that is missing is refused with its row."""
    bad = X[FEW].copy()
    bad[17, 3] = np.nan
    with pytest.raises(ValueError, match="row 17"):
        ConvolutionalKernelClassifier(**SMALL).fit(bad, Y[FEW])
