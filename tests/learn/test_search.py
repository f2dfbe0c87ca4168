"""The best point of a search, and what searches are compared by."""

from __future__ import annotations

import numpy as np

from dkl.learn.search import Move, Search
from dkl.solvers.lbfgs import begin


def search_at(x, value, unseen, **fields):
    descent = begin(np.array([x]), np.zeros(1), np.ones(1))._replace(value=value)
    return Search(descent, -1.0, value / 2, unseen=unseen, **fields)


def test_without_unseen_rows():
    """The last point is the best, its objective is the merit, and nothing is counted."""
    search = search_at(0.5, 3.0, float("nan"))
    assert search.noted(0.1) == search
    assert search.noted(0.1).since == 0
    assert search.merit == 3.0
    assert search.honest_error == 1.5
    assert search.at_best() is search
    assert (search.small, search.stretch, search.best) == (0, 1.0, None)


def test_the_least_merit_is_kept():
    """Error on unseen rows and penalty; as good is not better; iterations since then are counted."""
    first = search_at(0.5, 3.0, 2.0).noted(0.25)
    assert (first.best.merit, first.best.unseen, first.best.value, first.best.error, first.since) == (
        2.25,
        2,
        3,
        1.5,
        0,
    )
    assert first.merit == 2.25
    assert first.honest_error == 2.0
    worse = search_at(0.7, 1.0, 2.0, best=first.best, since=first.since).noted(0.25)
    assert worse.since == 1
    assert worse.best is first.best
    assert worse._replace(unseen=9.0).noted(0.0).since == 2
    assert worse._replace(unseen=float("nan")).noted(0.0).since == 2
    better = worse._replace(unseen=1.9).noted(0.25)
    assert (better.best.merit, better.since) == (2.15, 0)
    assert better.best.x.tolist() == [0.7]
    back = worse._replace(log_lam=5.0).at_best()
    assert back.descent.x.tolist() == [0.5]
    assert (back.descent.value, back.log_lam, back.error, back.unseen) == (3.0, -1.0, 1.5, 2.0)


def test_what_is_said_by_default():
    """A move that goes on and has no unseen rows."""
    move = Move(np.ones(1), 1.0, 1.0, 0.0, 0.0, 0.0)
    assert move.ended == ""
    assert np.isnan(move.unseen)
    assert np.isnan(Search(begin(np.ones(1), np.zeros(1), np.ones(1))).error)
