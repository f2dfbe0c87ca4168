"""FITTED: what a fit sets is declared, and the declaration alone saves, loads, tells and documents it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import dkl
from dkl.estimators import loading, registry
from dkl.estimators.estimator import Estimator
from dkl.estimators.stored import Array, Record, Stored, Value, few_or_range
from dkl.estimators.summary import lines, summary, told
from dkl.exact import GMKL, GMKLClassifier, KernelRidgeGD, KernelRidgeGDClassifier
from dkl.options.fields import attributes_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fits stop early

RNG = np.random.default_rng(0)
X = np.abs(RNG.standard_normal((80, 4)))
Y = X[:, 0] - X[:, 1]
LEARNED = {"learn": "cv", "cv": 2, "groups": "each", "max_iter": 2, "starts": 1, "sigma_l1": 0.05}
ALONE = {"random_state": 0, "verbose": 0}
SMALL = {"n_components": 12, **ALONE}
FITTED_MODELS = [
    lambda: dkl.FourierFeatures(**SMALL).fit(X),
    lambda: dkl.NystroemFeatures(**SMALL).fit(X),
    lambda: dkl.Chi2Features(verbose=0).fit(X),
    lambda: dkl.FeaturePCA(dkl.FourierFeatures(random_state=0), 3, verbose=0).fit(X),
    lambda: dkl.FeaturePCA(dkl.FourierFeatures(random_state=0), 3, channels=[0, 0, 1, 1], verbose=0).fit(X),
    lambda: dkl.SingleKernelRegressor(**SMALL, **LEARNED, reduce=5).fit(X, Y),
    lambda: dkl.SingleKernelRegressor(**SMALL, cv=2).fit(X, Y),
    lambda: dkl.SingleKernelClassifier(**SMALL, **LEARNED, calibrate=5).fit(X, Y > 0),
    lambda: dkl.MultipleKernelRegressor(["gaussian", "laplacian"], 10, cv=2, n_alphas=5, **ALONE).fit(X, Y),
    lambda: dkl.MultipleKernelClassifier(["gaussian"], 10, channels="each", alpha=1.0, **ALONE).fit(X, Y > 0),
    lambda: dkl.ContinuousKernelRegressor(**SMALL, max_iter=2).fit(X, Y),
    lambda: dkl.ContinuousKernelRegressor(**SMALL, max_iter=2).fit(X, Y).to_features(),
    lambda: dkl.ContinuousKernelClassifier(**SMALL, max_iter=2, search=2).fit(X, Y > 0),
    lambda: dkl.InfiniteFeatureRegressor(max_features=4, alpha=1.0, **ALONE).fit(X, Y),
    lambda: dkl.InfiniteFeatureClassifier(max_features=4, alpha=1.0, **ALONE).fit(X, Y > 0),
    lambda: dkl.GaborFeatures((2, 2), **ALONE).fit(X),
    lambda: KernelRidgeGD(max_iter=2, starts=1, verbose=0).fit(X, Y),
    lambda: KernelRidgeGDClassifier(cv=2, learn="none", verbose=0).fit(X, Y > 0),
    lambda: GMKL(verbose=0).fit(X, Y),
    lambda: GMKLClassifier(loss="hinge", verbose=0).fit(X, Y > 0),
]


@pytest.mark.parametrize("make", FITTED_MODELS)
def test_everything_that_is_fitted_is_declared(make):
    """And documented, each under its name with one sentence."""
    model = make()
    declared = attributes_of(type(model))
    found = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert found <= set(declared)
    text = inspect.cleandoc(type(model).__doc__).split("Attributes\n----------\n")[1].splitlines()
    for name, stored in declared.items():
        assert stored.about.endswith(".")
        assert stored.about.split()[0] in text[text.index(name) + 1]


def test_every_saved_estimator_is_tried():
    """A new one in the table of `load` comes with an example here."""
    assert {cls.__name__ for cls in loading.OWN} <= {type(make()).__name__ for make in FITTED_MODELS}


@dataclass(eq=False, repr=False)
class Toy(Estimator):
    """An estimator that nothing else knows."""

    FITTED: ClassVar[dict[str, Stored]] = {
        "weights_": Array("Weights.", ("row", "column")),
        "level_": Array("Level.", ("one",), single=True),
        "steps_": Value("Steps.", int),
        "note_": Value("Note.", str, optional=True, name="remark"),
        "double_": Stored("Twice the level."),
    }
    size: int = 3

    def fit(self, X, y=None):
        """Set everything but the note."""
        self.weights_, self.level_, self.steps_ = np.arange(6.0).reshape(2, 3), 0.5, 7
        self._restored()
        return self

    def _restored(self):
        self.double_ = 2 * self.level_


@dataclass(eq=False, repr=False)
class LargerToy(Toy):
    """It inherits what its base declares."""

    FITTED: ClassVar[dict[str, Stored]] = {"extra_": Array("Extra.", ("place",), tells=len)}

    def fit(self, X, y=None):
        """The base's, and one array more."""
        super().fit(X)
        self.extra_, self.note_ = np.arange(9), "kept"
        return self


@pytest.mark.parametrize("cls", [Toy, LargerToy])
def test_a_declaration_is_enough(cls, tmp_path, monkeypatch):
    """Saved and loaded with the same bits and types; the note only if there is one."""
    monkeypatch.setitem(registry.REGISTERED, cls.__name__, cls)
    model = cls(size=5).fit(None)
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    assert again.size == 5
    assert vars(again).keys() == vars(model).keys()
    np.testing.assert_array_equal(again.weights_, model.weights_)
    assert (again.level_, again.steps_, again.double_) == (0.5, 7, 1.0)
    assert getattr(again, "note_", None) == ("kept" if cls is LargerToy else None)
    expected = {"weights": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], "level": 0.5, "steps": 7}
    assert told(model) == expected | ({"extra": 9, "note": "kept"} if cls is LargerToy else {})


def test_what_is_missing_is_refused():
    """A KeyError that names it, which `load` turns into a sentence."""
    for stored in (Array("A.", ("x",)), Value("V.", int)):
        with pytest.raises(KeyError, match="absent"):
            stored.read("absent_", Record({}))


def test_an_estimator_that_is_not_known_is_refused(tmp_path, monkeypatch):
    """By its name, when it is saved and when it is loaded where it is not known."""
    with pytest.raises(TypeError, match="Toy is not registered"):
        Toy().fit(None).save(tmp_path / "m")
    monkeypatch.setitem(registry.REGISTERED, "Toy", Toy)
    Toy().fit(None).save(tmp_path / "m")
    monkeypatch.delitem(registry.REGISTERED, "Toy")
    with pytest.raises(ValueError, match="is not a complete dkl model: estimator='Toy' is not known"):
        dkl.load(tmp_path / "m")


def test_few_or_range():
    """Eight numbers are listed, nine are ends and middle."""
    assert few_or_range(np.arange(8)) == list(range(8))
    assert few_or_range(np.arange(9)) == {"low": 0.0, "median": 4.0, "high": 8.0}
    assert few_or_range(2.5) == 2.5


def test_a_summary_has_a_line_for_everything_told():
    """An attribute without a line of its own gets a plain one."""
    model = dkl.SingleKernelRegressor(**SMALL).fit(X, Y)
    found = summary(model) | {"passes_made": 3}
    assert ("passes made", "3") in lines(found)
    assert dict(lines(found))["alpha"] == "1"
    assert found["sigma"]["low"] == pytest.approx(model.sigma_.min())


@pytest.mark.parametrize(("alpha", "said"), [([0.1, 1.0], "2 values, one for each output")])
def test_a_penalty_for_each_output(alpha, said):
    """They are counted."""
    model = dkl.SingleKernelRegressor(**SMALL, alpha=alpha).fit(X, X[:, :2])
    assert dict(lines(summary(model)))["alpha"] == said


def test_names_of_inputs_from_a_data_set_are_saved(tmp_path):
    """xarray gives the names of a dkl data set as numpy's variable-length strings; a history keeps them as text."""
    named = xr.DataArray(X, dims=("row", "input"))
    named = named.assign_coords(input=np.array(["a", "bb", "a longer name", "d"], dtype=np.dtypes.StringDType()))
    model = dkl.SingleKernelRegressor(**SMALL, **LEARNED).fit(named, Y)
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    assert again.history_.input.values.tolist() == ["a", "bb", "a longer name", "d"]
    assert np.array_equal(again.predict(named), model.predict(named))
