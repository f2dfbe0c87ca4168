"""max_iter, max_time and tol of a fit that goes on may be others; learning that ended at one of them is taken up again.

Oracles: a fit that had the last limits from its beginning, where that takes the same way; falling objectives elsewhere.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.learn import stages
from dkl.learn.phases import Phase, phases_in_words, phases_of
from dkl.store.checkpoint import progress_of
from tests.engine.conftest import assert_same_bits
from tests.learn.test_checkpoint_learning import CODE, WEIGHT, Steps, X, Y, everything

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0, "groups": "each", "learn": "validation"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts on few of these few rows, so that there are several stages."""
    monkeypatch.setattr(stages, "FEW_ROWS", 400)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 1)


@pytest.fixture
def one_stage(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    """All rows at once, so that a higher limit changes nothing that came before."""
    monkeypatch.setattr(stages, "FEW_ROWS", 10**6)


def regressor(**options: Any) -> Any:
    """Not fitted yet."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options))


@pytest.mark.usefixtures("one_stage")
@pytest.mark.parametrize("learn", ["validation", "cv", "frequencies"])
def test_more_iterations_after_the_end(tmp_path: Path, learn: str) -> None:
    """max_iter=2, then 5, is max_iter=5; the sums of the first end are not taken for those of the second."""
    options = {"learn": learn, "starts": 1, "tol": 1e-9, "checkpoint": tmp_path / "c"}
    first = regressor(max_iter=2, **options).fit(X, Y)
    assert progress_of(str(tmp_path / "c"))["blocks"], "the sums of its weights are kept"
    found = regressor(max_iter=5, **options).fit(X, Y, resume=True)
    assert (first.n_iter_, found.n_iter_) == (2, 5)
    assert_same_bits(everything(found), everything(regressor(max_iter=5, **options | {"checkpoint": None}).fit(X, Y)))
    for limit in (5, 3):  # what is done is neither done again nor undone
        again = regressor(max_iter=limit, **options).fit(X, Y, resume=True)
        assert_same_bits(everything(again), everything(found))


def test_other_limits_amid_learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any limit was reached, another limit is as if it had been there from the beginning."""
    options, steps = {"starts": 2, "tol": 1e-9}, Steps(monkeypatch)
    for low, high in ((3, 6), (6, 3)):
        path = tmp_path / f"{low}"
        fit = regressor(max_iter=low, **options, checkpoint=path)
        assert steps.interrupted(lambda fit=fit: fit.fit(X, Y), 2)
        found = regressor(max_iter=high, **options, checkpoint=path).fit(X, Y, resume=True)
        assert_same_bits(everything(found), everything(regressor(max_iter=high, **options).fit(X, Y)))


def test_a_lower_limit_than_was_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start under way ends where it is; later ones have the new limit."""
    options = {"starts": 2, "tol": 1e-9, "checkpoint": tmp_path / "c"}
    assert Steps(monkeypatch).interrupted(lambda: regressor(max_iter=9, **options).fit(X, Y), 5)
    found = regressor(max_iter=1, **options).fit(X, Y, resume=True)
    assert [leg.iterations for leg in phases_of(found.history_)] == [4, 1, 1]


def test_a_finished_stage_is_not_done_again(tmp_path: Path) -> None:
    """Starts that ended at max_iter stay; the last stage goes on, and its objective falls."""
    options = {"starts": 2, "tol": 1e-9, "checkpoint": tmp_path / "c"}
    first = regressor(max_iter=2, **options).fit(X, Y)
    found = regressor(max_iter=4, **options).fit(X, Y, resume=True)
    assert [leg.iterations for leg in phases_of(first.history_)] == [2, 2, 2]
    assert [leg.iterations for leg in phases_of(found.history_)] == [2, 2, 4]
    before = first.history_.sizes["iteration"]
    known = found.history_.isel(iteration=slice(0, before)).drop_vars("seconds")
    assert known.identical(first.history_.drop_vars("seconds"))
    assert (np.diff(found.history_.objective.values[before - 1 :]) < 0).all()


@pytest.mark.usefixtures("one_stage")
def test_a_finer_tolerance(tmp_path: Path) -> None:
    """Learning that had converged goes on to a lower objective; a coarser one changes nothing."""
    options = {"starts": 1, "max_iter": 50, "checkpoint": tmp_path / "c"}
    rough = regressor(tol=0.05, **options).fit(X, Y)
    same = regressor(tol=0.1, **options).fit(X, Y, resume=True)
    assert_same_bits(everything(same), everything(rough))
    fine = regressor(tol=1e-4, **options).fit(X, Y, resume=True)
    assert fine.n_iter_ > rough.n_iter_
    assert float(fine.history_.objective[-1]) < float(rough.history_.objective[-1])


@pytest.mark.parametrize("more", [None, 1e9])
def test_more_time(tmp_path: Path, more: float | None) -> None:
    """Out of time at the first point of the first start: with more time, it is the fit that had it all along."""
    options, path = {"starts": 2, "max_iter": 2, "tol": 1e-9}, tmp_path / "c"
    first = regressor(max_time=1e-9, checkpoint=path, **options).fit(X, Y)
    assert first.n_iter_ == 0
    again = regressor(max_time=1e-9, checkpoint=path, **options).fit(X, Y, resume=True)
    assert_same_bits(everything(again), everything(first))
    found = regressor(max_time=more, checkpoint=path, **options).fit(X, Y, resume=True)
    assert_same_bits(everything(found), everything(regressor(**options).fit(X, Y)))


def test_more_steps_of_the_log_loss(tmp_path: Path) -> None:
    """It goes on, counts a second half of its own, and a lower limit leaves it where it is."""
    options = OPTIONS | {"learn": "log_loss", "cv": 3, "checkpoint": tmp_path / "c"}
    first = dkl.SingleKernelClassifier(**options, max_iter=4).fit(X, CODE, WEIGHT)
    fewer = dkl.SingleKernelClassifier(**options, max_iter=2).fit(X, CODE, WEIGHT, resume=True)
    assert_same_bits(everything(fewer), everything(first))
    found = dkl.SingleKernelClassifier(**options, max_iter=8).fit(X, CODE, WEIGHT, resume=True)
    assert (first.n_iter_, found.n_iter_) == (4, 8)
    points = np.log(found.history_.sigma.values)  # before each step: those counted are 5, 6, 7 and the last one's end
    end = 4 * np.log(found.sigma_) - points[5:].sum(axis=0)
    assert np.abs(end - points[-1]).max() < 0.15, "one step from the last point"


def test_what_counts_as_an_iteration() -> None:
    """max_iter=3 of three starts and one stage is twelve iterations, and it is said so; a beginning is none."""
    said = "12 iterations (3 + 3 + 3 of 3 starts on 1,000 rows, then 3 on 4,000 rows)"
    with pytest.warns(ConvergenceWarning) as caught:
        model = regressor(starts=3, max_iter=3, tol=1e-9).fit(X, Y)
    assert f"max_iter=3 before it converged, after {said}" in str(caught[0].message)
    assert model.n_iter_ == 12
    assert model.history_.sizes["iteration"] == 16
    assert phases_in_words(phases_of(model.history_)) == said
    assert phases_in_words([Phase(0, 0, 50, 1)]) == "1 iteration"
    assert phases_in_words([Phase(0, 0, 50, 4), Phase(1, 0, 200, 2), Phase(2, 0, 800, 0)]) == (
        "6 iterations (4 on 50 rows, then 2 on 200 rows, then 0 on 800 rows)"
    )


@pytest.mark.parametrize(("factor", "advice"), [(1.0, False), (300.0, True)])
def test_standardise_only_what_is_not(factor: float, advice: bool) -> None:
    """The advice follows from the spreads of inputs that share a sigma."""
    rows = X * [1.0, 1.0, factor]
    with warnings.catch_warnings(record=True) as caught:  # that inputs are hidden is another one
        warnings.simplefilter("always")
        model = regressor(sigma="scale", groups=None, max_iter=1, starts=1, tol=1e-9).fit(rows, Y)
    [text] = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    assert "max_iter=1" in text
    assert ("standardise" in text) == advice, text
    if advice:
        spread = rows.std(axis=0)
        np.testing.assert_allclose(model.input_spread_, spread, rtol=1e-12)
        assert f"a factor of {spread.max() / spread.min():,.0f}" in text
    with pytest.warns(ConvergenceWarning, match="max_iter=1") as caught:
        regressor(sigma="scale", groups="each", max_iter=1, starts=1, tol=1e-9).fit(rows, Y)
    assert "standardise" not in str(caught[0].message), "each has its own sigma"
