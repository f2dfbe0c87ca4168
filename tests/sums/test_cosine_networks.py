"""Sums of cosine networks against dense formulas, and their gradients against complex steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.features.fourier import FourierMap
from dkl.kernels import find_kernel
from dkl.losses import Huber, Loss, Softmax, Square
from dkl.sums.cosine_networks import CosineModel, CosineNetworks, CosineProgram
from dkl.sums.targets import Targets

N, M, WIDTHS = 137, 4, (5, 8)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
WEIGHT = RNG.random(N) * (RNG.random(N) < 0.8)
STEP = 1e-30


def log_sum_exp(z: Any) -> Any:
    """Of complex scores too."""
    top = z.real.max(axis=1, keepdims=True)
    return np.log(np.exp(z - top).sum(axis=1)) + top[:, 0]


def softmax(z: Any, y: np.ndarray) -> Any:
    """Log loss of several scores, or of one: log(1 + exp(-t)) with k = 1/2."""
    if z.shape[1] == 1:
        return np.log1p(np.exp(-np.where(y > 0, 1, -1) * z[:, 0]))
    return log_sum_exp(z) - z[np.arange(len(y)), y]


def square(z: Any, y: np.ndarray) -> Any:
    """Half the squares."""
    return ((z - y) ** 2).sum(axis=1) / 2


def huber(z: Any, y: np.ndarray) -> Any:
    """With delta = 0.5."""
    r = z - y
    far = np.abs(r.real) > 0.5
    return np.where(far, 0.5 * np.sign(r.real) * r - 0.125, r * r / 2).sum(axis=1)


VALUES = RNG.normal(size=(N, 2))
CASES: dict[str, tuple[Loss, Any, np.ndarray, int]] = {
    "three classes": (Softmax(), softmax, RNG.integers(0, 3, N), 3),
    "two classes": (Softmax(0.5), softmax, RNG.integers(0, 2, N), 1),
    "numbers": (Square(), square, VALUES, 2),
    "robust": (Huber(0.5), huber, VALUES, 2),
}


def make(case: str, dtype: Any = np.float64) -> tuple[CosineNetworks, Any, np.ndarray]:
    """A bundle of two candidates, its dense loss of a row, and targets."""
    loss, dense, y, c = CASES[case]
    classes = np.arange(max(2, c)) if loss.is_class else None
    square_sum = WEIGHT @ np.square(VALUES)
    targets = Targets(
        float(WEIGHT.sum()), len(classes) if classes is not None else c, classes=classes, shift=np.zeros(c),
        absolute=WEIGHT @ np.abs(VALUES)[:, :c], square=square_sum[:c], unit=np.ones(c),
    )  # fmt: skip
    bare = FourierMap(find_kernel("gaussian"), np.zeros((M, 1)), np.full(M, 0.5), np.zeros(1), 1.0, "phase")
    size = np.sqrt(WEIGHT @ np.square(X))
    model = CosineModel(bare, WIDTHS, targets, loss, N, np.dtype(dtype), size)
    d, rng = sum(WIDTHS), np.random.default_rng(5)
    start = {
        "frequencies": rng.normal(size=(M, d)), "phase": 6 * rng.random(d), "coef": rng.normal(size=(d, c)),
        "intercept": rng.normal(size=(2, c)),
    }  # fmt: skip
    return CosineNetworks(model, start, np.array([0.0, 0.3]), np.array([np.inf, 1.0])), dense, y


def dense_loss(dense: Any, parameters: dict[str, Any], y: np.ndarray, s: int) -> Any:
    """sum w l of one candidate, from the formula."""
    low, high = (0, WIDTHS[0]) if s == 0 else (WIDTHS[0], sum(WIDTHS))
    A = np.sqrt(2 / (high - low)) * np.cos(
        0.5 * X @ parameters["frequencies"][:, low:high] + parameters["phase"][low:high]
    )
    return (WEIGHT * dense(A @ parameters["coef"][low:high] + parameters["intercept"][s], y)).sum()


def summed(program: CosineProgram, y: np.ndarray, rows: Any = X, parts: int = 3) -> Any:
    """The sums of all rows, in several pieces."""
    sums, space = program.start(), program.workspace()
    for number, some in enumerate(np.array_split(np.arange(N), parts)):
        program.add(sums, space, number, int(some[0]), (rows[some], y[some], WEIGHT[some]))
    return sums.total()


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_those_of_the_formula(case: str) -> None:
    """Each number of each parameter, by a complex step."""
    networks, dense, y = make(case)
    parameters = networks.start
    total = summed(networks.program(parameters), y)
    for s in range(2):
        np.testing.assert_allclose(total.loss[s], dense_loss(dense, parameters, y, s), rtol=1e-12)
    assert total.weight == pytest.approx(WEIGHT.sum(), rel=1e-14)
    for name, found in total.gradients.items():
        owner = np.broadcast_to(networks.owner[name], found.shape)
        factor = 2.0 if name == "frequencies" else 1.0  # sigma = 0.5, which `bent` multiplies by
        for place in np.ndindex(found.shape):
            moved = {n: v.astype(complex) for n, v in parameters.items()}
            moved[name][place] += 1j * STEP
            right = dense_loss(dense, moved, y, int(owner[place])).imag / STEP
            assert found[place] == pytest.approx(factor * right, rel=1e-9, abs=1e-11), (name, place)


@pytest.mark.parametrize("case", ["three classes", "two classes"])
def test_wrong_rows_are_counted(case: str) -> None:
    """By their weight, with the class that has the highest score."""
    networks, _, y = make(case)
    total, parameters = summed(networks.program(networks.start, gradient=False), y), networks.start
    for s, (low, high) in enumerate([(0, 5), (5, 13)]):
        A = np.sqrt(2 / (high - low)) * np.cos(
            0.5 * X @ parameters["frequencies"][:, low:high] + parameters["phase"][low:high]
        )
        z = A @ parameters["coef"][low:high] + parameters["intercept"][s]
        chosen = (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else z.argmax(axis=1)
        assert total.wrong[s] == pytest.approx(WEIGHT[chosen != y].sum(), rel=1e-12)
    assert total.gradients == {}


def test_sparse_rows_and_float32() -> None:
    """Sparse rows give the sums of dense ones; float32 blocks those of float64 to their precision."""
    networks, _, y = make("three classes")
    right = summed(networks.program(networks.start), y)
    sparse = summed(networks.program(networks.start), y, sp.csr_array(X))
    narrow, _, _ = make("three classes", np.float32)
    single = summed(narrow.program(networks.start), y, X.astype(np.float32))
    for name, value in right.gradients.items():
        np.testing.assert_allclose(sparse.gradients[name], value, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(single.gradients[name], value, rtol=1e-4, atol=1e-4)


def test_one_candidate_out_of_bounds_leaves_the_others_alone() -> None:
    """A candidate with huge weights has a grid of its own."""
    networks, _, y = make("numbers")
    right = summed(networks.program(networks.start), y)
    start = {name: values.copy() for name, values in networks.start.items()}
    start["coef"][WIDTHS[0] :] *= 1e40
    found = summed(networks.program(start), y)
    own = slice(0, WIDTHS[0])
    np.testing.assert_allclose(
        found.gradients["frequencies"][:, own], right.gradients["frequencies"][:, own], rtol=1e-12
    )
    np.testing.assert_allclose(found.gradients["coef"][own], right.gradients["coef"][own], rtol=1e-12)
    assert found.loss[0] == pytest.approx(right.loss[0], rel=1e-12)
    assert found.loss[1] > 1e70


def test_decay_cap_and_fixed_intercept() -> None:
    """Decay of the second candidate alone, a cap on its norms, and an intercept that stays."""
    networks, _, y = make("numbers")
    gradients = {name: part.copy() for name, part in summed(networks.program(networks.start), y).gradients.items()}
    plain = gradients["frequencies"].copy()
    bent = CosineNetworks(networks.model, networks.start, networks.decay, networks.cap, False).bent(
        networks.start, gradients
    )
    right = 0.5 * plain + np.repeat([0.0, 0.3], WIDTHS) * networks.start["frequencies"]
    np.testing.assert_allclose(bent["frequencies"], right, rtol=1e-14)
    assert not bent["intercept"].any()
    allowed = networks.allowed({name: values.copy() for name, values in networks.start.items()})
    norm = np.linalg.norm(0.5 * allowed["frequencies"], axis=0)
    before = np.linalg.norm(0.5 * networks.start["frequencies"], axis=0)
    np.testing.assert_allclose(norm, np.where(np.arange(13) < 5, before, np.minimum(before, 1.0)), rtol=1e-14)
    assert (before[5:] > 1).any()
