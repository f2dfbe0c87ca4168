"""A group without variance is refused by its name, whatever the loss, the objective, sigma and the form of X."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

import dkl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
X[:, 2] = 1.7
Y = np.sin(2 * X[:, 0])
FORMS = {
    "slices": ({"channels": {"a": slice(0, 2), "b": slice(2, 3), "c": [4, 3]}}, X, "b"),
    "list": ({}, [X[:, :2], X[:, 2:3], X[:, 3:]], "1"),
    "each": ({"channels": "each"}, da.from_array(X, chunks=(40, -1)), "2"),
}
HOW = [
    {}, {"per_channel": 3}, {"by_output": True}, {"penalty": "l2"}, {"penalty": "l1linf"}, {"fit_intercept": False},
    {"learn": "joint", "alpha": 1.0}, {"learn": "cv"}, {"learn": "validation"},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["gaussian:0.7", "gaussian"])
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("loss", ["square", "huber"])
def test_constant_inputs(loss, how, kernel, dtype, form):
    """Both sentences name the group and say what to do."""
    if loss != "square" and how.get("learn") in ("cv", "validation"):
        return
    channels, given, name = FORMS[form]
    options = {"kernels": [kernel], "n_components": 8, "cv": 3, "dtype": dtype, "verbose": 0, "random_state": 0}
    with pytest.raises(ValueError, match=f"'{name}'.* has no variance.*; leave it out") as refusal:
        dkl.MultipleKernelRegressor(**options, loss=loss, **how, **channels).fit(given, Y)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("loss", ["square", "huber"])
@pytest.mark.parametrize(
    ("maps", "name"),
    [
        ({"kernels": {"wide": "gaussian:1e-12", "good": "gaussian"}}, "wide"),
        ({"features": {"good": dkl.FourierFeatures(n_components=8), "far": dkl.NystroemFeatures(sigma=1e-9)}}, "far"),
    ],
)  # fmt: skip
def test_constant_features(maps, name, loss):
    """A sigma so small that every row looks the same."""
    model = dkl.MultipleKernelRegressor(**maps, n_components=8, loss=loss, verbose=0, random_state=0)
    with pytest.raises(ValueError, match=rf"group '{name}' \(\d+ features\) has no variance, so it tells nothing"):
        model.fit(X[:, :2], Y)


@pytest.mark.parametrize("loss", ["square", "huber"])
def test_a_group_that_varies_late_is_used(loss):
    """Beyond the rows that are looked at first; and rows without weight do not count."""
    late = np.zeros((9000, 2))
    late[:, 0], late[8800:, 1] = RNG.normal(size=9000), RNG.normal(size=200)
    y = 3 * late[:, 1] + 0.1 * RNG.normal(size=9000)
    how = {"channels": "each", "loss": loss, "alpha": 10.0, "verbose": 0, "random_state": 0}
    model = dkl.MultipleKernelRegressor(["gaussian:0.7"], 6, **how).fit(late, y)
    assert "1" in model.selected_groups_
    with pytest.raises(ValueError, match=r"group '1' .* has no variance"):
        dkl.MultipleKernelRegressor(["gaussian:0.7"], 6, **how).fit(late, y, np.arange(9000) < 8800)
