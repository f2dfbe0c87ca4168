"""A standing is written down and read again to the last bit, through a checkpoint on disk."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.history import COLUMNS
from dkl.learn.search import Best, Search
from dkl.learn.standing import Standing, _read_search, _write_search, allows_more, open_standing, written
from dkl.solvers.lbfgs import begin, moved
from dkl.store.checkpoint import Checkpoint

RNG = np.random.default_rng(0)
FIT = {"estimator": "regressor", "sigma": "1.0"}


def some_search(**fields):
    state = begin(RNG.normal(size=3), np.full(3, -9.0), np.full(3, 9.0))
    for value in (3.0, 2.0, 1.5):
        state = moved(state, value, RNG.normal(size=3) * value)
    return Search(state, **fields)


SEARCHES = {
    "bare": Search(begin(np.ones(3), np.zeros(3), np.full(3, np.inf))),
    "under way": some_search(log_lam=-2.5, error=0.3, small=1),
    "stalled": some_search(log_lam=1.0)._replace(descent=some_search().descent._replace(stalled=True)),
    "best": some_search(
        log_lam=0.5,
        error=0.25,
        unseen=0.75,
        since=3,
        stretch=2.0,
        best=Best(np.arange(3.0), 1.0, 2.0, 3.0, 4.0, 5.0),
    ),
}


def same(one, other):
    """Every number of two records, arrays and all."""
    if isinstance(one, tuple):
        assert type(one) is type(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif one is None:
        assert other is None
    else:
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_through_arrays(name):
    """All of it, infinities and what is not known among it."""
    arrays = {}
    _write_search(arrays, "end3", SEARCHES[name])
    for axes, values in arrays.values():
        assert len(axes) == values.ndim
    same(_read_search({key: values for key, (_, values) in arrays.items()}, "end3"), SEARCHES[name])


def kept(folder, at, search, without=()):
    """A checkpoint on disk that has been opened again, with a standing as its newest step."""
    about, arrays = written(at, search)
    path = str(folder / "fit.ckpt")
    Checkpoint(path, FIT).save_step(1, {name: about[name] for name in about if name not in without}, arrays)
    return Checkpoint(path, FIT)


@pytest.mark.parametrize("refit", [None, (0.25, 0.125)])
@pytest.mark.parametrize("under_way", [False, True])
def test_a_standing_through_a_checkpoint(under_way, refit, tmp_path):
    """Ends, the search, history, time and limits."""
    at = Standing(2, 1, [SEARCHES["under way"], SEARCHES["best"]], None, seconds=4.5, passes=17, reason="max_iter")
    at.penalised = SEARCHES["stalled"] if under_way else None
    at.refit, at.skipped, at.limits = refit, 3, {"max_iter": 9, "tol": 1e-3, "max_time": None}
    for objective in (2.0, 1.0):
        at.history.append(**dict.fromkeys(COLUMNS, 7.0) | {"objective": objective, "sigma": np.array([1.0, 2.0])})
    search = SEARCHES["best"] if under_way else None
    again = open_standing(kept(tmp_path, at, search))
    same(tuple(again.ends), tuple(at.ends))
    same(again.search, search)
    same(again.penalised, at.penalised)
    for name in ("stage", "start", "seconds", "passes", "reason", "skipped", "limits", "refit"):
        assert getattr(again, name) == getattr(at, name)
    assert again.history.columns["objective"] == [2.0, 1.0]
    assert again.history.columns["alpha"] == [7.0, 7.0]
    np.testing.assert_array_equal(again.history.columns["sigma"], [[1, 2], [1, 2]])


def test_a_standing_of_an_earlier_version(tmp_path):
    """Without limits it has none."""
    at = Standing()
    at.history.append(**dict.fromkeys(COLUMNS, 7.0) | {"sigma": np.ones(2)})
    assert open_standing(kept(tmp_path, at, None, ("limits",))).limits == {}


def test_where_nothing_is_known():
    """Everything begins at nought."""
    assert open_standing(None).history.arrays()["objective"].tolist() == []
    at = open_standing(None)
    assert (at.stage, at.start, at.ends, at.search, at.seconds, at.passes) == (0, 0, [], None, 0.0, 0)
    assert (at.reason, at.penalised, at.refit, at.skipped, at.limits) == ("", None, None, 0, {})


@pytest.mark.parametrize(
    ("reason", "limits", "more"),
    [
        ("max_iter", {"max_iter": 51}, True),
        ("max_iter", {"max_iter": 50}, False),
        ("max_iter", {"max_iter": 49}, False),
        ("max_time", {"max_time": 11.0}, True),
        ("max_time", {"max_time": None}, True),
        ("max_time", {"max_time": 10.0}, False),
        ("converged", {"tol": 1e-4}, True),
        ("converged", {"tol": 1e-3}, False),
        ("converged", {"tol": 1e-2}, False),
        ("early_stopping", {"max_iter": 99}, False),
        ("", {"max_iter": 99}, False),
    ],
)
def test_what_allows_more(reason, limits, more):
    """A limit further away than the one it ended at: more iterations, more time, a smaller tolerance."""
    at = Standing(reason=reason, limits={"max_iter": 50, "max_time": 10.0, "tol": 1e-3})
    now = at.limits | limits
    assert allows_more(at, now) == more
    assert not allows_more(Standing(reason=reason), now)
