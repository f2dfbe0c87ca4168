"""Every Method of dkl.learn, and the toy's: states pack and unpack bit for bit, and resume to the same end.

A new method is found by the sweep, which fails until an estimator in FITS uses it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dkl
import dkl.learn
from dkl.exact import GMKL, KernelRidgeGD, KernelRidgeGDClassifier
from dkl.learn import exact_problem, iterate, stages
from dkl.learn.history import COUNTED, Column, History
from dkl.learn.run import Method, Run, Step
from dkl.store.packed import pack, unpack
from tests.contracts.toy import Accelerated, ToyClassifier, ToyRegressor
from tests.learn.conjugate_data import fit_chosen, fit_given
from tests.learn.loss_data import fit_loss
from tests.learn.path_data import fit_path
from tests.learn.several_data import fit_several, fit_several_losses

N, M = 400, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=N)
CODE = np.digitize(Y, [-0.5, 0.5])
FEW = {"sigma": 0.5, "random_state": 0, "max_iter": 2, "verbose": 0, "tol": 1e-9}
MAP = {**FEW, "n_components": 12}
NETWORK = {"n_components": 12, "random_state": 0, "max_iter": 4, "verbose": 0, "batch_size": 100, "patience": 2}
WAVES = {"max_features": 6, "per_round": 2, "candidates": 9, "random_state": 0, "verbose": 0}
Fit = Callable[[], Any]
FITS: dict[str, Fit] = {
    "validation": lambda: dkl.SingleKernelRegressor(**MAP, learn="validation", groups="each", starts=2).fit(X, Y),
    "cv": lambda: dkl.SingleKernelClassifier(**MAP, learn="cv", cv=3, starts=1).fit(X, CODE),
    "gcv": lambda: dkl.SingleKernelRegressor(**MAP, learn="gcv", groups="each", sigma_l1=0.1, starts=1).fit(X, Y),
    "joint": lambda: dkl.SingleKernelRegressor(**MAP, learn="joint", alpha=0.1, starts=1).fit(X, Y),
    "frequencies": lambda: dkl.SingleKernelRegressor(**MAP, learn="frequencies", cv=2, starts=1).fit(X, Y),
    "log_loss": lambda: dkl.SingleKernelClassifier(**MAP | {"max_iter": 3}, learn="log_loss", cv=2).fit(X, CODE),
    "exact": lambda: KernelRidgeGD(**FEW, learn="validation", groups="each", starts=2).fit(X, Y),
    "exact classes": lambda: KernelRidgeGDClassifier(**FEW, learn="cv", cv=3, starts=1).fit(X, CODE),
    "kernel weights": lambda: GMKL(["gaussian"], channels="each", max_iter=4, tol=1e-12, verbose=0).fit(X, Y),
    "conjugate": lambda: fit_given(max_iter=5),
    "conjugate choice": lambda: fit_chosen(max_iter=4),
    "loss held out": lambda: fit_loss("cv"),
    "loss joint": lambda: fit_loss("joint"),
    "several joint": lambda: fit_several("joint"),
    "several held out": lambda: fit_several("cv", by="input"),
    "several losses": lambda: fit_several_losses(),
    "loss weights": lambda: dkl.SingleKernelClassifier(**MAP, loss="log_loss", alpha=[1.0, 0.1], cv=2).fit(X, CODE),
    "newton": lambda: dkl.SingleKernelClassifier(**MAP, loss="log_loss", penalty="l1", alpha=1.0).fit(X, CODE),
    "network": lambda: dkl.ContinuousKernelClassifier(**NETWORK).fit(X, CODE),
    "network of numbers": lambda: dkl.ContinuousKernelRegressor(**NETWORK | {"validation": None}).fit(X, Y),
    "search": lambda: dkl.ContinuousKernelClassifier(
        **NETWORK, search={"candidates": 3, "learning_rate": [0.05, 0.1, 0.2]}
    ).fit(X, CODE),
    "loss path": lambda: fit_path("log_loss", max_iter=20),
    "loss path of numbers": lambda: fit_path("huber", 1, penalty="l1linf", count=2),
    "columns": lambda: dkl.InfiniteFeatureRegressor(**WAVES, improve=1, alpha=[2.0, 0.5]).fit(X, Y),
    "columns of classes": lambda: dkl.InfiniteFeatureClassifier(**WAVES, loss="log_loss", alpha=2.0).fit(X, CODE),
    "toy": lambda: ToyRegressor(**MAP | {"max_iter": 4}).fit(X, np.column_stack([Y, X])),
    "toy classes": lambda: ToyClassifier(**MAP | {"max_iter": 4}).fit(X, CODE),
}


class Captured(Exception):
    """What a fit gave to the loop."""


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Stages of few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "FEW_ROWS", 200)
        patch.setattr(stages, "FEW_BLOCKS", 1)
        patch.setattr(stages, "ROWS_PER_FEATURE", 1)
        patch.setattr(exact_problem, "FEW_ROWS", 150)
        yield


def captured(fit: Fit) -> tuple[Run, Any]:
    """The run and the method of a fit."""

    def opened(run: Run, method: Any) -> None:
        raise Captured(run, method)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterate, "_opened", opened)
        with pytest.raises(Captured) as caught:
            fit()
    run, method = caught.value.args
    return run, method


def methods() -> set[type]:
    """Every method of dkl.learn."""
    names = [f"dkl.learn.{module.name}" for module in pkgutil.iter_modules(dkl.learn.__path__)]
    found = {cls for name in names for _, cls in inspect.getmembers(importlib.import_module(name), inspect.isclass)}
    return {cls for cls in found if Method in cls.__mro__ and cls is not Method}


def test_every_method_is_swept() -> None:
    """Some fit uses it."""
    used = {type(captured(fit)[1]) for fit in FITS.values()}
    assert methods() <= used
    assert Accelerated in used
    assert len(methods()) >= 3


def packed(value: Any) -> Any:
    """A record's plain values and the bits of its arrays."""
    tree, arrays = pack(value)
    return tree, {name: values.tobytes() for name, (_, values) in arrays.items()}


def again(method: Any, state: Any) -> Any:
    """A state as a later process finds it."""
    tree, arrays = pack(state)
    return unpack(tree, {name: values for name, (_, values) in arrays.items()}, method.state)


def steps_from(run: Run, method: Any, state: Any) -> list[Step]:
    """All steps to the end."""
    steps: list[Step] = []
    while not steps or not steps[-1].ended:
        steps.append(method.step(run, state))
        state = steps[-1].state
        assert len(steps) < 60
    return steps


def result_of(run: Run, method: Any, steps: list[Step]) -> Any:
    """What the method finds; its history is that of the rows of the steps."""
    history = History(method.history)
    for number, step in enumerate(steps):
        if step.ends_at is not None:
            history.end_at(step.ends_at)
        if step.row is not None:
            history.append({**step.row.values, "seconds": 0.0, "rows": step.row.rows, "passes": number})
    return packed((method.end(run, steps[-1].state, history), history.arrays()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_any_state_resumes_to_the_same_end(name: str) -> None:
    """From a state that was packed and unpacked after each step that is saved: the same rows and the same result."""
    run, method = captured(FITS[name])
    begun = method.begin(run)
    assert isinstance(begun, method.state)
    steps = steps_from(run, method, begun)
    right, resumed = result_of(run, method, steps), 0
    for number, step in enumerate(steps[:-1], 1):
        if not step.saved:
            continue
        fresh_run, fresh = captured(FITS[name])
        state = again(method, portable_at(name, number))
        later = steps_from(fresh_run, fresh, fresh.resumed(fresh_run, state))
        assert result_of(fresh_run, fresh, steps[:number] + later) == right
        resumed += 1
    assert resumed >= 2


def portable_at(name: str, number: int) -> Any:
    """The state of a fit after so many steps, as a checkpoint keeps it."""
    run, method = captured(FITS[name])
    state = method.begin(run)
    for _ in range(number):
        state = method.step(run, state).state
    return method.portable(run, state)


@pytest.mark.parametrize("name", FITS)
def test_states_pack_bit_for_bit_and_columns_have_meanings(name: str) -> None:
    """What a checkpoint keeps is what it gives back; each row fills the columns that the method declares."""
    run, method = captured(FITS[name])
    for value in (method.begin(run), portable_at(name, 1)):
        assert packed(again(method, value)) == packed(value)
    assert method.history
    for column in method.history.values():
        assert isinstance(column, Column)
        assert column.meaning
    needed = {key for key, column in method.history.items() if not column.optional} - set(COUNTED)
    rows = [step.row for step in steps_from(run, method, method.begin(run)) if step.row is not None]
    assert rows
    for row in rows:
        assert needed <= set(row.values) <= set(method.history)
        assert row.rows > 0
        assert row.where
