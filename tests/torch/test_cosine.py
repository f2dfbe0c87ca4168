"""CosineLayer against FourierMap in numpy, torch's autograd and finite differences."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

torch = pytest.importorskip("torch")

import dkl  # noqa: E402
from dkl.features.fourier import FourierMap  # noqa: E402
from dkl.kernels.shift_invariant import SHIFT_INVARIANT  # noqa: E402
from dkl.torch import CosineLayer  # noqa: E402

FORMS = [("phase", 8), ("paired", 8), ("paired", 7)]


def rows(n=20, m=3, seed=0):
    """Standard normal rows."""
    return np.random.default_rng(seed).standard_normal((n, m))


def fitted(**options):
    """A fitted transformer."""
    return dkl.FourierFeatures(random_state=0, verbose=0, **options).fit(rows(50))


@pytest.mark.parametrize("kernel", [kernel.name for kernel in SHIFT_INVARIANT])
@pytest.mark.parametrize(("form", "width"), FORMS)
def test_outputs_are_those_of_the_fourier_map(kernel, form, width):
    """Of the same frequencies, for every kernel and form, also with a sigma for each input."""
    sigma = np.array([0.5, 2.0, 1.0])
    features = fitted(kernel=kernel, n_components=width, form=form, sigma=sigma, groups="each")
    layer = CosineLayer.from_features(features, dtype=torch.float64)
    X = rows()
    assert isinstance(features.features_, FourierMap)
    np.testing.assert_allclose(layer(torch.tensor(X)).detach().numpy(), features.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [kernel.name for kernel in SHIFT_INVARIANT])
def test_a_drawn_layer_approximates_its_kernel(kernel):
    """a(x)'a(y) of many frequencies is near k(x, y) at the given sigma."""
    layer = CosineLayer(3, 20_000, kernel, sigma=0.7, form="paired", seed=1, dtype=torch.float64)
    X = rows(8)
    A = layer(torch.tensor(X)).detach().numpy()
    exact = dkl.FourierFeatures(kernel, 2, sigma=0.7, verbose=0).fit(X).kernel_matrix(X, exact=True)
    np.testing.assert_allclose(A @ A.T, exact, atol=0.04)


@pytest.mark.parametrize(("form", "width"), FORMS)
def test_a_layer_becomes_features_again(form, width):
    """to_features transforms as the layer does, also after training has moved it."""
    layer = CosineLayer(3, width, "matern32", sigma=[0.5, 0.0, 2.0], form=form, seed=0, dtype=torch.float64)
    with torch.no_grad():
        layer.omega.add_(0.3 * torch.randn_like(layer.omega))
        layer.phase.add_(9.0)
    X, features = rows(), layer.to_features()
    np.testing.assert_allclose(features.transform(X), layer(torch.tensor(X)).detach().numpy(), atol=1e-12)
    again = CosineLayer.from_features(features, dtype=torch.float64)
    np.testing.assert_allclose(again(torch.tensor(X)).detach().numpy(), features.transform(X), atol=1e-12)


def test_features_of_a_layer_can_be_saved_and_fitted_on(tmp_path):
    """They are a transformer like any other: saved, loaded, and their kernel still has the layer's sigma."""
    layer = CosineLayer(3, 6, sigma=0.25, seed=0, dtype=torch.float64)
    features = layer.to_features()
    features.save(tmp_path / "f.zarr")
    X = rows()
    np.testing.assert_array_equal(dkl.load(tmp_path / "f.zarr").transform(X), features.transform(X))
    np.testing.assert_allclose(features.sigma_, 0.25)
    np.testing.assert_array_equal(clone(features).fit(X).transform(X), features.transform(X))
    with pytest.raises(ValueError, match="exact"):
        features.kernel_matrix(X, exact=True)


@pytest.mark.parametrize(("form", "width"), FORMS)
def test_gradients_are_those_of_a_plain_formula(form, width):
    """Of input, frequencies and phases: by autograd of the formula written out, and by finite differences."""
    layer = CosineLayer(3, width, form=form, seed=0, dtype=torch.float64)
    x = torch.tensor(rows(4), requires_grad=True)
    weight = torch.tensor(rows(4, width, seed=1))

    def plain(x, omega, phase):
        columns = []
        count = omega.shape[1]
        if form == "phase":
            columns = [(2 / count) ** 0.5 * torch.cos(x @ omega[:, k] + phase[k]) for k in range(count)]
        else:
            pairs = count - len(phase)
            columns = [count**-0.5 * torch.cos(x @ omega[:, k]) for k in range(pairs)]
            columns += [(2 / count) ** 0.5 * torch.cos(x @ omega[:, k] + phase[k - pairs]) for k in range(pairs, count)]
            columns += [count**-0.5 * torch.sin(x @ omega[:, k]) for k in range(pairs)]
        return torch.stack(columns, dim=1)

    leaves = [x, layer.omega, *([layer.phase] if layer.phase.numel() else [])]
    ours = torch.autograd.grad((weight * layer(x)).sum(), leaves)
    theirs = torch.autograd.grad((weight * plain(x, layer.omega, layer.phase)).sum(), leaves)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    names = ("omega", "phase")[: len(leaves) - 1]

    def at(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(at, tuple(leaf.detach().requires_grad_() for leaf in leaves))


def test_max_norm_caps_long_frequencies_alone():
    """Whenever the layer is applied; a zero frequency stays zero, and a backward pass still works."""
    layer = CosineLayer(3, 5, sigma=0.01, max_norm=1.5, seed=0, dtype=torch.float64)
    with torch.no_grad():
        layer.omega[:, 0], layer.omega[:, 1] = 4.0, 0.0
    before = layer.omega.detach().clone()
    first = layer(torch.ones(2, 3, dtype=torch.float64))
    (first.sum() + layer(torch.zeros(2, 3, dtype=torch.float64)).sum()).backward()
    norm = layer.omega.detach().norm(dim=0)
    torch.testing.assert_close(norm[0], torch.tensor(1.5, dtype=torch.float64))
    assert not layer.omega.detach()[:, 1].any()
    torch.testing.assert_close(layer.omega.detach()[:, 2:], before[:, 2:], rtol=0, atol=0)
    assert layer.omega.grad.isfinite().all()


def test_learn_false_leaves_nothing_to_train():
    """Frequencies and phases are buffers: not among the parameters, but in the state."""
    fixed, free = CosineLayer(3, 4, learn=False, seed=0), CosineLayer(3, 4, seed=0)
    assert list(fixed.parameters()) == []
    assert [name for name, _ in free.named_parameters()] == ["omega", "phase"]
    assert sorted(fixed.state_dict()) == sorted(free.state_dict())
    torch.testing.assert_close(fixed.omega, free.omega.detach())


def test_seeds():
    """A number, a torch.Generator, and torch.manual_seed each repeat a draw; two layers differ."""
    draws = [CosineLayer(3, 4, seed=7).omega, CosineLayer(3, 4, seed=np.random.default_rng(7)).omega]
    torch.testing.assert_close(*draws)
    torch.testing.assert_close(*(CosineLayer(3, 4, seed=torch.Generator().manual_seed(1)).omega for _ in range(2)))
    torch.manual_seed(0)
    first, second = CosineLayer(3, 4).omega, CosineLayer(3, 4).omega
    assert (first != second).all()
    torch.manual_seed(0)
    torch.testing.assert_close(CosineLayer(3, 4).omega, first)


def test_a_layer_in_a_network_learns_its_frequencies():
    """Six cosines fit a sine when their frequencies are trained, and miss it when they are not."""
    x = torch.linspace(-3, 3, 400)[:, None]
    y = torch.sin(3 * x)

    def error(learn):
        torch.manual_seed(0)
        net = torch.nn.Sequential(CosineLayer(1, 6, sigma=2.0, learn=learn, seed=0), torch.nn.Linear(6, 1))
        steps = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(600):
            steps.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            steps.step()
        return loss.item()

    assert error(True) < 0.001 < 0.1 < error(False)


def test_a_layer_can_be_copied_and_its_state_restored():
    """As any module."""
    layer, other = CosineLayer(3, 4, seed=0), CosineLayer(3, 4, seed=1)
    x = torch.tensor(rows(), dtype=torch.float32)
    torch.testing.assert_close(copy.deepcopy(layer)(x), layer(x), rtol=0, atol=0)
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(x), layer(x), rtol=0, atol=0)
    assert repr(CosineLayer(3, 4, max_norm=2.0)) == "CosineLayer(3, 4, kernel='gaussian', form='phase', max_norm=2)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "gausian"}, "did you mean 'gaussian'"),
        ({"kernel": "exp_chi2"}, "transforms its inputs"),
        ({"sigma": [1.0, 2.0]}, "one for each of 3 inputs"),
        ({"sigma": -1.0}, "sigma"),
        ({"max_norm": 0.0}, "max_norm"),
        ({"form": "pair"}, "form='pair'"),
        ({"frequencies": "sobol"}, "frequencies='sobol'"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_refusals(options, said):
    """Each shows the value."""
    with pytest.raises(ValueError, match=said):
        CosineLayer(3, 4, **options)


def test_from_features_refuses_other_maps():
    """Landmarks, kernels of histograms, and what has no map."""
    with pytest.raises(ValueError, match="no Fourier map"):
        CosineLayer.from_features(dkl.NystroemFeatures(n_components=3, verbose=0).fit(rows()))
    with pytest.raises(ValueError, match="transforms its inputs"):
        CosineLayer.from_features(dkl.FourierFeatures("skewed_chi2", 4, verbose=0).fit(np.abs(rows())))
    with pytest.raises(ValueError, match="Ridge"):
        CosineLayer.from_features(Ridge())
