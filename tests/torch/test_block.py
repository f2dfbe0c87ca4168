"""Sums of a convolutional network over a block: against the formula written out, autograd and scipy; their bits."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy.special import log_softmax

torch = pytest.importorskip("torch")

from dkl.torch.architecture import Architecture  # noqa: E402
from dkl.torch.block import IMAGES, TorchParameters  # noqa: E402
from dkl.torch.network import ConvolutionalNetwork, ConvolutionalProgram, convolutional_cost  # noqa: E402
from dkl.torch.threads import one_torch_thread  # noqa: E402


def problem(layer="cosine", outputs=3, shape=(8, 6, 2), n=150, filters=(3, 4)):
    """An architecture with parameters, images and codes."""
    rng = np.random.default_rng(0)
    of = Architecture(shape, filters, 3, 5, layer, 7)
    drawn = of.draw("gaussian", 0.5, "orthogonal", rng)
    coef = rng.uniform(-0.5, 0.5, (of.features, outputs))
    parameters = {**drawn, "coef": coef, "intercept": rng.standard_normal(outputs)}
    X = rng.random((n, of.inputs)).astype(np.float32)
    return of, parameters, X, rng.integers(0, max(2, outputs), n)


def plain_scores(of, p, X):
    """The network written out once more in float64 with torch's functions, images by slicing."""
    from torch.nn import functional as F

    h, w, c = of.image_shape
    image = np.stack([X[:, i::c].reshape(-1, h, w) for i in range(c)], axis=1)
    z = torch.tensor(image, dtype=torch.float64)
    for i in range(len(of.filters)):
        z = F.conv2d(z, p[f"conv{i}_weight"], p[f"conv{i}_bias"], padding=of.filter_size // 2)
        z = F.max_pool2d(torch.clamp(z, min=0), 2)
    z = torch.clamp(z.reshape(len(X), -1) @ p["dense_weight"].T + p["dense_bias"], min=0)
    if of.layer == "cosine":
        z = np.sqrt(2 / of.components) * torch.cos(z @ p["cosine_omega"] + p["cosine_phase"])
    elif of.layer == "relu":
        z = torch.clamp(z @ p["hidden_weight"].T + p["hidden_bias"], min=0)
    z = z @ p["coef"] + p["intercept"]
    return torch.cat([-z, z], dim=1) if z.shape[1] == 1 else z


def plain_sums(of, parameters, X, codes, weight):
    """sum w l by scipy, the wrong weight, and gradients by autograd of the formula, all in float64."""
    p = {name: torch.tensor(values, dtype=torch.float64, requires_grad=True) for name, values in parameters.items()}
    z = plain_scores(of, p, X)
    loss = torch.tensor(weight) @ (torch.logsumexp(z, 1) - z[torch.arange(len(codes)), torch.tensor(codes)])
    gradients = dict(zip(p, torch.autograd.grad(loss, list(p.values())), strict=True))
    z = z.detach().numpy()
    wrong = weight @ (z.argmax(axis=1) != codes)
    return weight @ -log_softmax(z, axis=1)[np.arange(len(codes)), codes], wrong, gradients


@pytest.mark.parametrize("layer", ["cosine", "relu", "none"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_sums_are_those_of_the_network_written_out(layer, outputs):
    """Loss by scipy and gradients by autograd of the formula, in float64."""
    of, parameters, X, codes = problem(layer, outputs)
    weight = np.random.default_rng(1).random(len(codes))
    found = TorchParameters.of_arrays(of, parameters).total(X, codes, weight, True)
    loss, wrong, gradients = plain_sums(of, parameters, X, codes, weight)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-5)
    np.testing.assert_allclose(found.wrong, wrong, rtol=1e-12)
    np.testing.assert_allclose(found.weight, weight.sum())
    assert sorted(found.gradients) == sorted(parameters)
    for name, gradient in found.gradients.items():
        wanted = gradients[name].numpy()
        assert np.abs(wanted).max() > 1e-3
        np.testing.assert_allclose(gradient, wanted, rtol=1e-3, atol=2e-4 * np.abs(wanted).max(), err_msg=name)


def test_weights_count_rows():
    """A row of weight two is the row twice, one of weight zero is none; without weights all count one."""
    of, parameters, X, codes = problem(n=40)
    tensors = TorchParameters.of_arrays(of, parameters)
    weight = np.tile([0.0, 2.0], 20)
    one = tensors.total(X, codes, weight, True)
    rows = np.repeat(np.arange(1, 40, 2), 2)
    other = tensors.total(X[rows], codes[rows], None, True)
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-5)
    assert one.wrong == other.wrong
    for name in one.gradients:
        np.testing.assert_allclose(one.gradients[name], other.gradients[name], rtol=1e-3, atol=1e-5)


def test_bits_depend_neither_on_threads_nor_on_where_rows_lie_in_memory():
    """torch's threads before, the thread that asks, neighbours at work, and the alignment of the rows."""
    of, parameters, X, codes = problem(shape=(28, 28, 1), n=2 * IMAGES + 5, filters=(4, 8))
    before = torch.get_num_threads()
    first = TorchParameters.of_arrays(of, parameters).total(X, codes, None, True)
    shifted = np.empty(X.size + 3, np.float32)[3:].reshape(X.shape)
    shifted[:] = X
    found = []

    def work(rows):
        found.append(TorchParameters.of_arrays(of, parameters).total(rows, codes, None, True))

    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            many = [threading.Thread(target=work, args=(rows,)) for rows in (X, shifted, np.asfortranarray(X))]
            for one in many:
                one.start()
            for one in many:
                one.join()
    finally:
        torch.set_num_threads(before)
    assert len(found) == 9
    for other in found:
        assert other.loss == first.loss
        for name in first.gradients:
            np.testing.assert_array_equal(other.gradients[name], first.gradients[name])


def test_torch_gets_its_settings_back():
    """Threads and determinism are the user's again after a block, also after an error."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    try:
        torch.set_num_threads(2)
        with one_torch_thread():
            assert torch.get_num_threads() == 1
            assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyError, match="mine"), one_torch_thread():
            raise KeyError("mine")
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(before[0])


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1)])
def test_blocks_are_added_in_a_fixed_tree(order):
    """Any shares of the blocks, in any order, give the same bits, which are those of the tree written out."""
    of, parameters, X, codes = problem(n=100)
    program = ConvolutionalProgram(of, parameters)
    space, parts = program.workspace(), []
    for some in (order[:2], order[2:]):
        sums = program.start()
        for block in some:
            rows = slice(20 * block, 20 * block + 20)
            program.add(sums, space, block, 0, (X[rows], codes[rows], None))
        parts.append(sums)
    total = parts[1].copy()
    total.merge(parts[0])
    each = [space.total(X[i : i + 20], codes[i : i + 20], None, True) for i in range(0, 100, 20)]
    g = [one.gradients["conv0_weight"] for one in each]
    np.testing.assert_array_equal(total.total().gradients["conv0_weight"], ((g[0] + g[1]) + (g[2] + g[3])) + g[4])
    assert total.total().weight == 100
    program.add(total, space, 5, 0, (X[:0], codes[:0], None))
    assert total.total().weight == 100


def test_without_gradients_there_are_none():
    """Held-out rows: loss and errors alone, the same numbers."""
    of, parameters, X, codes = problem()
    space = TorchParameters.of_arrays(of, parameters)
    with_, without = (space.total(X, codes, None, gradient) for gradient in (True, False))
    assert without.gradients == {}
    assert (with_.loss, with_.wrong) == (without.loss, without.wrong)


def test_decay_and_cap_act_on_the_frequencies():
    """zeta Gam is added to their gradient alone; only longer frequencies are cut."""
    of, parameters, _, _ = problem()
    network = ConvolutionalNetwork(of, parameters, decay=0.5, cap=0.8)
    gradients = network.bent(parameters, {name: np.zeros_like(values) for name, values in parameters.items()})
    np.testing.assert_allclose(gradients["cosine_omega"], 0.5 * parameters["cosine_omega"])
    assert not any(gradients[name].any() for name in gradients if name != "cosine_omega")
    allowed = network.allowed(dict(parameters))["cosine_omega"]
    before, after = (np.linalg.norm(values, axis=0) for values in (parameters["cosine_omega"], allowed))
    assert (before > 0.8).any()
    np.testing.assert_allclose(after, np.minimum(before, 0.8))


def test_the_architecture_says_what_it_is():
    """Sizes follow from the torch module with the same layers; filters that leave no pixel are refused."""
    of, parameters, X, _ = problem(shape=(9, 7, 2), n=3)
    named = {name.replace(".", "_"): tuple(p.shape) for name, p in of.body().named_parameters()}
    assert of.shapes == named
    assert of.size == sum(p.numel() for p in of.body().parameters())
    assert TorchParameters.of_arrays(of, parameters).scores(of.images(X)).shape == (3, 3)
    with pytest.raises(ValueError, match="use at most 2"):
        Architecture((4, 6, 1), (2, 2, 2), 3, 5, "cosine", 7)


def test_flops_are_those_torch_counts():
    """Against torch's own counter."""
    from torch.utils.flop_counter import FlopCounterMode

    of, parameters, X, _ = problem(n=10)
    space = TorchParameters.of_arrays(of, parameters)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        space.scores(of.images(X))
    outputs = parameters["coef"].shape[1]
    from dkl.cost import Sizes

    sizes = Sizes(10, of.inputs, np.dtype("f4"), outputs, True)
    assert convolutional_cost(sizes, of, outputs, False).flops == counter.get_total_flops() / 10
