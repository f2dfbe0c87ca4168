"""Ctrl-C while sigma is learned, by real signals: the best so far is solved for, a second one stops, a resume goes on.

Oracles: a fit with the same sigma and alpha that learns nothing, and a fit that nobody interrupted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.engine.interrupt import Interruption, check, watching
from dkl.engine.progress import listening
from dkl.exact import KernelRidgeGD
from dkl.learn import stages
from dkl.store.checkpoint import progress_of
from tests.engine.conftest import assert_same_bits, assert_unfitted, slow
from tests.learn.test_checkpoint_learning import FITS, WEIGHT, Steps, everything

RNG = np.random.default_rng(0)
N, INPUTS = 4000, 3
X = RNG.normal(size=(N, INPUTS))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=N)
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0, "tol": 1e-9}
ASKED = {"learn": "validation", "groups": "each", "starts": 2, "max_iter": 3}
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Several stages of these few rows; Ctrl-C counts, also where the tests run in the background of a shell."""
    monkeypatch.setattr(stages, "FEW_ROWS", 400)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the handler is put back"
    signal.signal(signal.SIGINT, before)


def regressor(**options: Any) -> Any:
    """Not fitted yet."""
    return dkl.SingleKernelRegressor(**(OPTIONS | ASKED | options))


def press() -> None:
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def pressed_at(event: str, number: int, times: int = 1) -> Iterator[list[float]]:
    """Ctrl-C at the event of that kind and number; when."""
    seen: list[dict] = []
    when: list[float] = []

    def listen(told: dict) -> None:
        if told["event"] == event:
            seen.append(told)
            if len(seen) == number:
                when.append(time.monotonic())
                for _ in range(times):
                    press()

    with listening(listen):
        yield when


def interrupted(fit: Callable[[], Any]) -> tuple[Any, str]:
    """The model, and the one warning that said it."""
    with pytest.warns(ConvergenceWarning, match="interrupted after") as caught:
        model = fit()
    [said] = [str(w.message) for w in caught if "interrupted" in str(w.message)]
    return model, said


def assert_solved_at_its_sigma(model: Any, rows: Any = X, y: Any = Y, weight: Any = None) -> None:
    """The weights are those of a fit that is given what was learned."""
    params = model.get_params() | {"learn": "none", "sigma": model.sigma_, "alpha": model.alpha_, "cv": None}
    params |= {"sigma_l1": 0.0, "sigma_l2": 0.0, "checkpoint": None}
    plain = type(model)(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        plain.fit(rows, y, weight)
    np.testing.assert_array_equal(plain.features_.unit, model.features_.unit)
    size = np.abs(plain.coef_).max()
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10, atol=1e-10 * size)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=1e-10, atol=1e-10 * size)
    np.testing.assert_array_equal(model.history_.sigma.values[-1], model.sigma_)


def best_row(history: Any) -> int:
    """Of rows of the last stage reached: of several starts the lowest, of later ones the newest."""
    stage = history.stage.values
    if stage.max() == 0:
        return int(np.argmin(history.objective.values))
    return int(np.flatnonzero(stage == stage.max())[-1])


@pytest.mark.parametrize("number", [1, 2, 4, 5, 7, 8, 9, 11])
def test_after_every_iteration(tmp_path: Path, number: int) -> None:
    """The best so far, in whatever start or stage; and going on gives the bits of a fit that nobody interrupted."""
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        whole = regressor().fit(X, Y)
    path = tmp_path / "c"
    with pressed_at("iteration", number):
        model, said = interrupted(lambda: regressor(checkpoint=path).fit(X, Y))
    assert "fit(resume=True) resumes, until save removes the checkpoint" in said
    rows = whole.history_.isel(iteration=slice(0, number))
    best = best_row(rows)
    np.testing.assert_array_equal(model.sigma_, rows.sigma.values[best])
    assert_solved_at_its_sigma(model)
    if model.history_.rows[-1] == N:
        assert model.alpha_ == pytest.approx(float(rows.alpha[best]), rel=1e-3)  # the floor of all rows may lift it
    assert not progress_of(str(path))["blocks"], "no sums of a sigma that may be left"
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        resumed = regressor(checkpoint=path).fit(X, Y, resume=True)
    assert_same_bits(everything(resumed), everything(whole))


@pytest.mark.parametrize("name", [name for name in FITS if name != "log_loss"])
@quiet
def test_every_kind_of_learning(tmp_path: Path, name: str) -> None:
    """Ctrl-C in a pass of the third iteration; its weights, and the resumed bits."""
    make, options, y, weight = FITS[name]
    rows = _rows_of_fits()
    whole = make(**options).fit(rows, y, weight)
    with pressed_at("trial", 3):
        model, _ = interrupted(lambda: make(**options, checkpoint=tmp_path / "c").fit(rows, y, weight))
    if name != "frequencies":
        assert_solved_at_its_sigma(model, rows, y, weight)
    assert model.score(rows, y) > 0
    resumed = make(**options, checkpoint=tmp_path / "c").fit(rows, y, weight, resume=True)
    assert_same_bits(everything(resumed), everything(whole))


def _rows_of_fits() -> np.ndarray:
    from tests.learn.test_checkpoint_learning import X as rows

    assert len(rows) == len(WEIGHT)
    return rows


@pytest.mark.parametrize("number", [1, 3, 5])
@quiet
def test_log_loss(tmp_path: Path, number: int) -> None:
    """The mean of the second half, or the point before that; and the resumed bits."""
    make, options, y, weight = FITS["log_loss"]
    rows = _rows_of_fits()
    whole = make(**options).fit(rows, y, weight)
    with pressed_at("iteration", number):
        fit = make(**options, checkpoint=tmp_path / "c")
        if number == 5:  # it was the last one: nothing is left to interrupt
            assert_same_bits(everything(fit.fit(rows, y, weight)), everything(whole))
            return
        model, said = interrupted(lambda: fit.fit(rows, y, weight))
    assert f"after {number} iteration" in said
    assert model.n_iter_ == number
    params = fit.get_params() | {"learn": "none", "sigma": model.sigma_, "alpha": model.alpha_, "cv": None}
    plain = type(fit)(**params | {"checkpoint": None}).fit(rows, y, weight)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-10)
    resumed = make(**options, checkpoint=tmp_path / "c").fit(rows, y, weight, resume=True)
    assert_same_bits(everything(resumed), everything(whole))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("moment", [0.0, 0.35, 0.8])
def test_a_long_pass_is_left_at_once(threads: int, moment: float) -> None:
    """Ctrl-C from another thread amid a pass of seconds: learning ends with the block under way."""
    lazy = da.from_array(X, chunks=(250, -1)).map_blocks(slow, seconds=0.15, meta=np.empty((0, 3)))
    timers: list[threading.Timer] = []
    ended: list[float] = []

    def listen(told: dict) -> None:
        if told["event"] == "iteration" and not timers:
            timers.append(threading.Timer(moment, press))
            timers[0].start()
        if told["event"] == "pass" and not told["name"].startswith("adding up X"):
            ended.append(time.monotonic())

    with dask.config.set(num_workers=threads), listening(listen):
        model, said = interrupted(lambda: regressor(starts=1, sigma=0.5, tol=1e-9).fit(lazy, Y))
    timers[0].join()
    assert "after 0 iterations" in said or "after 1 iteration" in said
    assert "checkpoint='folder'" in said
    assert_solved_at_its_sigma(model)


def test_the_second_one_stops(tmp_path: Path) -> None:
    """KeyboardInterrupt, no attribute, and what was learned is in the checkpoint."""
    model = regressor(checkpoint=tmp_path / "c")
    with pressed_at("iteration", 4, times=2), pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, Y)
    assert not isinstance(caught.value, Interruption)
    assert_unfitted(model)
    assert progress_of(str(tmp_path / "c"))["steps"]
    solving = regressor()

    def again(told: dict) -> None:
        if told["event"] == "pass" and told["name"] == "adding up X":  # the one for the weights
            press()

    with (
        pressed_at("iteration", 4),
        listening(again),
        pytest.warns(ConvergenceWarning),
        pytest.raises(KeyboardInterrupt),
    ):
        solving.fit(X, Y)
    assert_unfitted(solving)


def test_before_there_is_anything_to_keep() -> None:
    """The first trial of the first start; and a fit that learns nothing: KeyboardInterrupt, as ever."""
    for event, model in (("trial", regressor()), ("pass", regressor(learn="none", groups=None))):
        with pressed_at(event, 1), pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X, Y)
        assert not isinstance(caught.value, Interruption)
        assert_unfitted(model)


@quiet
def test_other_handlers_and_threads_are_left_alone() -> None:
    """Who ignores Ctrl-C, or has a handler, keeps that; a fit in another thread hears nothing."""
    heard: list[int] = []
    whole = everything(regressor().fit(X, Y))
    for handler in (signal.SIG_IGN, lambda number, frame: heard.append(number)):
        signal.signal(signal.SIGINT, handler)
        try:
            with pressed_at("iteration", 2):
                assert_same_bits(everything(regressor().fit(X, Y)), whole)
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    assert heard == [signal.SIGINT]
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(regressor().fit(X, Y)))
    with watching() as watch:
        watch.ready = True
        thread.start()
        press()
        thread.join()
        assert watch.asked
        with pytest.raises(Interruption):
            check()
    check()
    assert_same_bits(everything(found[0]), whole)


def test_finish_without_another_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fit(resume="finish"): the best of the checkpoint, no warning; the checkpoint still goes on to the same end."""
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        whole = everything(regressor().fit(X, Y))
    steps, path = Steps(monkeypatch), tmp_path / "c"
    for after, count in ((2, 2), (3, 5), (3, 8)):
        assert steps.interrupted(lambda: regressor(checkpoint=path).fit(X, Y), after)
        copy = shutil.copytree(path, tmp_path / f"copy{count}")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = regressor(checkpoint=copy).fit(X, Y, resume="finish")
        assert steps.numbers[-1] == progress_of(str(copy))["steps"], "no step was taken"
        assert_solved_at_its_sigma(model)
        known = np.argmin(model.history_.objective.values) if model.history_.stage.max() == 0 else -1
        np.testing.assert_array_equal(model.sigma_, model.history_.sigma.values[known])
        with pytest.warns(ConvergenceWarning, match="max_iter=3"):
            assert_same_bits(everything(regressor(checkpoint=copy).fit(X, Y, resume=True)), whole)
        with pytest.warns(ConvergenceWarning, match="max_iter=3"):  # learning has ended: nothing else to finish
            assert_same_bits(everything(regressor(checkpoint=copy).fit(X, Y, resume="finish")), whole)
    fresh = regressor(checkpoint=tmp_path / "fresh")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*resume='finish'"):
        fresh.fit(X, Y, resume="finish")
    with pytest.raises(ValueError, match="resume='finnish' must be True, False, None or 'finish'"):
        fresh.fit(X, Y, resume="finnish")
    with pressed_at("trial", 1), pytest.raises(KeyboardInterrupt):
        fresh.fit(X, Y)
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        fresh.fit(X, Y, resume="finish")


@quiet
def test_an_exact_kernel() -> None:
    """KernelRidgeGD keeps its best too."""
    options = {"learn": "validation", "sigma": 0.5, "groups": "each", "starts": 2, "tol": 1e-9, "verbose": 0}
    rows, y = X[:200], Y[:200]
    whole = KernelRidgeGD(**options, random_state=0).fit(rows, y)
    for number in (2, 5):
        with pressed_at("iteration", number):
            model, said = interrupted(lambda: KernelRidgeGD(**options, random_state=0).fit(rows, y))
        assert "checkpoint" not in said
        known = whole.history_.isel(iteration=slice(0, number))
        np.testing.assert_array_equal(model.sigma_, known.sigma.values[np.argmin(known.objective.values)])
        plain = KernelRidgeGD(learn="none", sigma=model.sigma_, alpha=model.alpha_, verbose=0).fit(rows, y)
        np.testing.assert_allclose(model.dual_coef_, plain.dual_coef_, rtol=1e-10, atol=1e-12)
