"""Every public estimator: each parameter is described and read, clones keep them, saved = loaded, chunks do not matter.

Estimators are found in dkl.__all__ and dkl.exact, parameters in their options. The sweep fails for an estimator without
a row in BASE, and for a parameter without a row in CHANGES.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier

import dkl
import dkl.exact
from dkl.engine import progress
from dkl.learn import stages
from dkl.options.fields import options_of
from tests.contracts.toy import ToyClassifier, ToyRegressor
from tests.engine.test_progress import Screen

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:cv chose alpha"),
]

N, M = 240, 3
RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(N, M))) * [1.0, 2.0, 0.5]
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * RNG.normal(size=N)
CODE = np.digitize(Y, [0.5, 1.3])
SINGLE = {"n_components": 12, "random_state": 0, "verbose": 0}
SEVERAL = {
    "kernels": ["gaussian:1", "gaussian:scale*3"],
    "n_components": 6,
    "n_alphas": 8,
    "random_state": 0,
    "verbose": 0,
}
NETWORK = {"n_components": 12, "random_state": 0, "verbose": 0, "max_iter": 12}
INFINITE = {"max_features": 4, "candidates": 8, "alpha": 1.0, "max_iter": 4, "random_state": 0, "verbose": 0}
BASE: dict[type, dict[str, Any]] = {
    dkl.ContinuousKernelClassifier: NETWORK,
    dkl.ContinuousKernelRegressor: NETWORK,
    dkl.Chi2Features: {"n_terms": 3},
    dkl.FeaturePCA: {"features": dkl.FourierFeatures(n_components=12, random_state=0), "n_components": 4},
    dkl.FourierFeatures: {"n_components": 12, "random_state": 0},
    dkl.GaborFeatures: {"image_shape": [1, 3], "n_components": 12, "stride": 1, "random_state": 0},
    dkl.InfiniteFeatureClassifier: INFINITE | {"loss": "squared_hinge"},
    dkl.InfiniteFeatureRegressor: INFINITE,
    dkl.MultipleKernelClassifier: SEVERAL,
    dkl.MultipleKernelRegressor: SEVERAL,
    dkl.NystroemFeatures: {"n_components": 12, "random_state": 0},
    dkl.SingleKernelClassifier: SINGLE,
    dkl.SingleKernelRegressor: SINGLE,
    dkl.exact.KernelRidgeGD: {"random_state": 0, "verbose": 0},
    dkl.exact.KernelRidgeGDClassifier: {"random_state": 0, "verbose": 0},
    dkl.exact.GMKL: {"verbose": 0},
    dkl.exact.GMKLClassifier: {"verbose": 0},
    ToyRegressor: SINGLE | {"max_iter": 40},
    ToyClassifier: SINGLE | {"max_iter": 40},
}
"""Each estimator with what its examples begin with; the toys beside those of the library."""


def public() -> list[type]:
    """Estimators of dkl and dkl.exact."""
    exact = [one for _, one in inspect.getmembers(dkl.exact) if getattr(one, "__module__", "") == "dkl.exact"]
    found = {*(getattr(dkl, name) for name in dkl.__all__), *(one for one in exact if inspect.isclass(one))}
    own = [one for one in found if inspect.isclass(one) and issubclass(one, BaseEstimator)]
    return sorted(own, key=lambda cls: cls.__name__)


CHANGES: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "kernel": [({}, "laplacian"), ({"method": "homogeneous"}, "intersection")],
    "n_components": [({}, 9), ({}, 3)],
    "sigma": [({}, 2.0)],
    "groups": [({"learn": "validation", "starts": 1}, "each"), ({}, "each")],
    "frequencies": [({}, "iid"), ({}, "orthogonal"), ({}, "sobol")],
    "form": [({}, "phase")],
    "skew": [({"kernel": "skewed_chi2"}, 3.0), ({"kernels": [("skewed_chi2", 1.0)]}, 3.0)],
    "kernels": [({}, ["laplacian"])],
    "n_alphas": [({}, 3), ({"alpha": "auto"}, 3)],
    "eps": [({}, 0.5), ({"alpha": "auto"}, 0.5)],
    "max_features": [({}, 2)],
    "bandwidths": [({}, "1:2")],
    "candidates": [({}, 5)],
    "per_round": [({}, 3)],
    "improve": [({}, 2)],
    "tasks": [({}, 0)],
    "rule": [({}, "last"), ({}, "one_se")],
    "by_output": [({}, True)],
    "debias": [({}, True)],
    "weights": [({}, "uniform")],
    "n_terms": [({"kernel": "exp_chi2"}, 2), ({"kernels": ["exp_chi2"]}, 2), ({}, 2)],
    "landmarks": [({}, "uniform"), ({}, "leverage")],
    "alpha": [({}, 7.0)],
    "cv": [({"learn": "cv", "starts": 1}, 2), ({}, 3)],
    "learn": [({"starts": 1}, "cv")],
    "validation": [({"learn": "validation", "starts": 1}, 0.4), ({}, 0.4), ({"alpha": [1.0, 0.1], "max_iter": 8}, 0.4)],
    "sigma_l1": [({"learn": "validation", "starts": 1, "groups": "each"}, 0.5)],
    "sigma_l2": [({"learn": "validation", "starts": 1, "groups": "each"}, 0.5)],
    "starts": [
        ({"learn": "validation", "sigma": 0.01, "max_iter": 1}, 5),
        ({"learn": "validation", "kernels": ["gaussian:0.01"], "max_iter": 1}, 5),
    ],
    "subsample": [({"learn": "validation", "starts": 1}, 0.3)],
    "max_iter": [({"learn": "validation", "starts": 1, "groups": "each"}, 1), ({}, 2), ({"solver_tol": 1e-12}, 1)],
    "tol": [({"learn": "validation", "starts": 1, "groups": "each"}, 0.5), ({}, 0.5), ({}, 1e6)],
    "max_time": [({"learn": "validation", "starts": 1, "groups": "each"}, 1e-9), ({}, 1e-9)],
    "early_stopping": [({"learn": "cv", "starts": 1, "groups": "each", "max_iter": 15}, 0.3)],
    "reduce": [({}, 5)],
    "loss": [({"class_weight": None}, "logistic"), ({}, "huber:delta=0.1"), ({}, "hinge"), ({}, "epsilon_insensitive")],
    "penalty": [({"alpha": 1.0}, "l1"), ({}, "l21:ridge=2")],
    "solver": [({}, "cg"), ({"loss": "square"}, "newton")],
    "solver_tol": [({"solver": "cg"}, 0.5), ({}, 0.1)],
    "learn_components": [({"learn": "validation", "starts": 1}, 6)],
    "fit_intercept": [({}, False)],
    "class_weight": [({}, {0: 5.0, 1: 1.0, 2: 1.0})],
    "calibrate": [({}, 50)],
    "random_state": [({}, 1)],
    "dtype": [({}, "float32")],
    "place": [({}, "moon")],
    "checkpoint": [({}, 3)],
    "max_rows": [({}, 10)],
    "delta": [({}, 0.01)],
    "learning_rate": [({}, 0.3)],
    "momentum": [({}, 0.3)],
    "momentum_start": [({}, 0.1)],
    "momentum_ramp": [({}, 2)],
    "decay": [({}, 0.1)],
    "max_norm": [({}, 0.2)],
    "batch_size": [({}, 100)],
    "patience": [({"learning_rate": 0.3, "max_iter": 30}, 1)],
    "search": [({}, {"candidates": 2, "n_components": [5]})],
    "halving": [
        (
            {
                "search": {"candidates": 6, "learning_rate": (1e-3, 0.3, "log"), "n_components": (4, 20)},
                "batch_size": 8,
                "max_iter": 40,
            },
            None,
        )
    ],
    "method": [({}, "homogeneous")],
    "window": [({"method": "homogeneous"}, "rectangular")],
    "features": [
        ({}, dkl.FourierFeatures(n_components=12, random_state=5)),
        ({"kernels": None}, [dkl.FourierFeatures(n_components=12, random_state=5)]),
        ({}, dkl.GaborFeatures([1, 3], stride=1)),
    ],
    "channels": [({}, [0, 0, 1])],
    "image_shape": [({}, [3, 1])],
    "stride": [({}, 2)],
    "per_channel": [({"channels": [0, 0, 1]}, 2)],
}
"""By parameter: others that it needs to matter, and a value that changes the answer, or is refused."""
REFUSED = {"place", "checkpoint", "max_rows", "tasks"}
"""Parameters that change no answer, only where it is found; their example is refused."""
SHOWN = {"verbose"}
"""Parameters that change what is shown."""
AGAIN = {"warm_start"}
"""Parameters that matter to a second fit alone (tests/estimators/test_continuous.py)."""
NAMED = [(cls, option.name) for cls in BASE for option in options_of(cls)]
IDS = [f"{cls.__name__}-{name}" for cls, name in NAMED]


def target(cls: type) -> np.ndarray | None:
    """The y of an estimator, if it wants one."""
    if not hasattr(cls, "predict"):
        return None
    return CODE if is_classifier(cls()) else Y


def answer(model: Any, rows: Any = None) -> np.ndarray:
    """What a fitted model says of the rows."""
    rows = X if rows is None else rows
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(rows))
    return np.asarray(model.predict(rows) if hasattr(model, "predict") else model.transform(rows))


def fitted(cls: type, rows: Any = None, **options: Any) -> Any:
    """A model of the example's parameters and some others."""
    return cls(**(BASE[cls] | options)).fit(X if rows is None else rows, target(cls))


def test_every_estimator_and_parameter_has_a_row() -> None:
    """Nothing public is left out."""
    assert set(public()) <= set(BASE)
    assert len(public()) >= 8
    assert {name for _, name in NAMED} <= set(CHANGES) | SHOWN | AGAIN


@pytest.mark.parametrize("cls", BASE)
def test_parameters_are_described(cls: type) -> None:
    """Each has an option, with one sentence, a default that its rule takes, and an entry in the docstring."""
    options = {option.name: option for option in options_of(cls)}
    assert set(options) == set(cls().get_params(deep=False)) == set(inspect.signature(cls).parameters)
    for name, option in options.items():
        assert option.about.endswith("."), name
        assert inspect.signature(cls).parameters[name].default == option.default
        option.check(option.default)
        assert re.search(rf"^ +{name} : .+, default=.+\n +\S", cls.__doc__, re.MULTILINE), name


@pytest.mark.parametrize("cls", BASE)
def test_clones_keep_parameters(cls: type) -> None:
    """Not what was fitted."""
    model = fitted(cls)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert repr(copy) == repr(model)
    assert not [name for name in vars(copy) if name.endswith("_")]
    np.testing.assert_array_equal(answer(copy.fit(X, target(cls))), answer(model))


def outcome(cls: type, rows: Any, options: dict[str, Any]) -> Any:
    """The answer to a fit, or the sentence that refuses it."""
    try:
        return answer(fitted(cls, rows, **options))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(
    ("cls", "name"),
    [pair for pair in NAMED if pair[1] not in SHOWN | AGAIN],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_every_parameter_is_read(cls: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another value changes the answer; a place that there is not, and too many rows, are refused."""
    monkeypatch.setattr(stages, "FEW_ROWS", 60)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 1)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    if name == "by_output":  # which has a say only if there are several
        monkeypatch.setitem(globals(), "Y", np.column_stack([Y, X[:, 2]]))
    known = {option.name for option in options_of(cls)}
    rows, seen = da.from_array(X, chunks=(20, -1)) if name == "subsample" else None, []
    for needed, value in CHANGES[name]:
        if not set(needed) <= known:
            continue
        before, after = (outcome(cls, rows, needed | given) for given in ({}, {name: value}))
        if isinstance(before, str):
            continue  # what the others need does not go with this estimator
        if isinstance(after, str):
            seen.append(name in REFUSED and name in after)
        else:
            seen.append(before.shape != after.shape or not np.array_equal(before, after))
    assert any(seen), f"{name} of {cls.__name__} changes nothing"


@pytest.mark.parametrize("cls", [cls for cls, name in NAMED if name in SHOWN])
def test_verbose_is_read(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """verbose=1 shows a line, verbose=0 none."""
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    monkeypatch.setattr(progress, "UPDATE_SECONDS", 0.0)
    shown, learn = [], {"learn": "validation"} if "learn" in inspect.signature(cls).parameters else {}
    for verbose in (0, 1):
        with contextlib.redirect_stderr(Screen()) as stream:
            fitted(cls, verbose=verbose, **learn)
        shown.append(stream.getvalue())
    assert shown[0] == ""
    assert re.search(r"\w{4}", shown[1])


@pytest.mark.parametrize("cls", [cls for cls in BASE if hasattr(cls, "save")])
def test_saved_is_loaded(cls: type, tmp_path: Path) -> None:
    """Parameters, answers and fitted attributes, bit for bit."""
    model = fitted(cls)
    model.save(tmp_path / "model")
    again = dkl.load(tmp_path / "model")
    assert type(again) is cls
    assert repr(again) == repr(model)
    assert answer(again).tobytes() == answer(model).tobytes()
    took = {"fit_info_"}  # of that fit alone
    own, theirs = ({name for name in vars(one) if name.endswith("_")} for one in (model, again))
    assert own - took == theirs


LAZY = [cls for cls in BASE if cls.__module__ != "dkl.exact"]


@pytest.mark.parametrize("rows", [1, 7, 64, N])
@pytest.mark.parametrize("cls", LAZY)
def test_chunks_do_not_matter(cls: type, rows: int) -> None:
    """Rows in chunks of any size: the answer of rows in memory, but for rounding."""
    right = answer(fitted(cls))
    model = fitted(cls, da.from_array(X, chunks=(rows, -1)))
    np.testing.assert_allclose(np.abs(answer(model)), np.abs(right), rtol=1e-6, atol=1e-7)
