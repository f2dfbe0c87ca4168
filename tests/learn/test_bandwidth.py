"""Which blocks a stage takes, and the way of a fit through starts and stages."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.learn.bandwidth import ROUGH, Bandwidth, Start
from dkl.learn.bandwidth_steps import Problem
from dkl.learn.iterate import iterate
from dkl.learn.objectives import CV
from dkl.learn.parameters import Scales
from dkl.learn.run import Limits, Run
from dkl.learn.stages import blocks_of_step, ladder, spread_blocks
from dkl.prepare.draw import build_map
from dkl.store.checkpoint import Checkpoint
from dkl.sums.gram import GramProgram
from dkl.sums.spread import spread_of
from dkl.sums.targets import ValueMoments, value_targets


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 64, 1000])
def test_every_beginning_is_spread(count):
    """A permutation; its first k members lie at most two strides of n / k apart."""
    order = spread_blocks(count)
    assert sorted(order) == list(range(count))
    for k in (1, 2, 5, 17, 200):
        if k <= count // 2:
            gaps = np.diff([0, *np.sort(order[:k]), count])
            assert gaps.max() <= 2 * 2 ** np.ceil(np.log2(count / k))


def rows_of(n):
    return Rows([Table("memory", np.zeros((n, 1), np.int8))], ["X"])


@pytest.mark.parametrize(
    ("n", "block", "features", "share", "expected"),
    [
        (5_000, 500, 100, 1.0, [10]),  # fewer rows than a first stage wants
        (100_000, 1_000, 100, 1.0, [10, 40, 100]),
        (100_000, 1_000, 5_000, 1.0, [50, 100]),  # ten rows for each feature
        (100_000, 1_000, 100, 0.5, [10, 50]),
        (100_000, 1_000, 100, 0.001, [8]),
        (1_000_000, 10_000, 100, 1.0, [8, 32, 100]),  # eight blocks at least
    ],
)
def test_stages(n, block, features, share, expected):
    """Blocks of each stage: nested, in order, ending with the share."""
    blocks = [(i, min(i + block, n)) for i in range(0, n, block)]
    stages = ladder(rows_of(n), blocks, features, share)
    assert [len(stage) for stage in stages] == expected
    for small, large in pairwise(stages):
        assert set(small) <= set(large)
    for stage in stages:
        assert stage == sorted(stage)


@pytest.mark.parametrize(
    ("n", "features", "share", "expected"),
    [
        (5_000, 100, None, 5_000),  # fewer rows than an iteration wants
        (100_000, 100, None, 10_000),
        (3_000_000, 100, None, 10_000),
        (100_000, 5_000, None, 50_000),  # ten rows for each feature
        (100_000, 100, 0.5, 50_000),
        (100_000, 100, 1.0, 100_000),
    ],
)
def test_turns(n, features, share, expected):
    """So many rows in every iteration, spread over the data; all have their turn; a fold that is missed doubles."""
    rows, seen, before = rows_of(n), set(), None
    most = -(-n // expected) + 1
    for number in range(min(most, 30)):
        blocks = blocks_of_step(rows, features, share, number, 0)
        count = sum(stop - start for start, stop in blocks)
        assert abs(count - expected) <= 0.02 * n
        assert blocks == sorted(set(blocks))
        if share is None and n > expected:
            assert max(np.diff([0, *(start for start, _ in blocks), n])) <= n / 2
            assert blocks != before
        before, seen = blocks, seen | set(blocks)
    if most <= 30:
        assert sum(stop - start for start, stop in seen) == n
    twice = sum(stop - start for start, stop in blocks_of_step(rows, features, share, 0, 1))
    assert twice == min(n, twice)
    assert twice >= min(n, 1.9 * expected)


# one fit's way through its starts and stages, on rows in memory

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, :1]) + 0.1 * RNG.normal(size=(N, 1))
MAP = build_map(
    {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "frequencies": "iid", "form": "paired", "n_components": 12}
    | {"groups": "each", "sigma": 0.3},
    3, {}, np.random.default_rng(0), None,
)[0]  # fmt: skip
TARGETS = value_targets(
    ValueMoments(N, spread_of(Y, np.ones(N)), np.abs(Y).sum(axis=0), (Y * Y).sum(axis=0)), True
)  # fmt: skip


def problem_of(tol=1e-3, **penalties):
    return Problem(CV, Scales(MAP, np.arange(3), **penalties), TARGETS, True, None, np.sqrt((X * X).sum(axis=0)), tol)


ONE = (Start(),)


def learned(starts=ONE, max_iter=50, max_time=None, problem=None, checkpoint=None, finish=False, share=1.0):
    tables = [Table("memory", X), Table("memory", Y), None, None]
    rows = Rows(tables, ["X", "y", "sample_weight", "folds"])
    problem = problem or problem_of()
    first = GramProgram(MAP.at(np.float64), TARGETS, N, 3, 1)
    run = Run(engine_for(False), rows, Progress(0), Limits(max_iter, problem.tol, max_time), checkpoint, finish)
    result, history, reason = iterate(run, Bandwidth(problem, first, tuple(starts), share))
    return SimpleNamespace(**vars(result), history=history, reason=reason)


def test_one_start():
    """Falls to a minimum; two passes for each iteration, and one for each step that was too long."""
    found = learned()
    columns = found.history.columns
    assert (found.reason, found.share, found.moved, found.refit) == ("converged", 1.0, True, None)
    assert (np.diff(columns["objective"]) < 0).all()
    assert columns["stage"] == columns["start"] == [0] * len(found.history)
    assert columns["passes"][0] == 2
    assert (np.diff(columns["passes"]) >= 2).all()
    assert columns["rows"] == [N] * len(found.history)
    assert found.alpha == columns["alpha"][-1]
    np.testing.assert_allclose(columns["sigma"][-1], 0.3 * np.exp(found.x))
    assert 0 <= found.decrease <= 1e-3


def test_the_tolerance_is_the_one_given():
    """A coarser one ends sooner, and further from the minimum."""
    coarse, fine = (learned(problem=problem_of(tol)).history.columns["objective"] for tol in (0.1, 1e-5))
    assert len(coarse) < len(fine)
    assert coarse[-1] > fine[-1]


def test_iterations_are_counted():
    """So many steps after the first point; none at all leaves it where it began."""
    for most in (1, 3):
        found = learned(max_iter=most)
        assert (found.reason, len(found.history)) == ("max_iter", most + 1)
    still = learned(max_iter=0)
    assert (still.reason, still.moved, len(still.history)) == ("max_iter", False, 1)
    np.testing.assert_array_equal(still.x, 0)


def test_no_time_at_all():
    """One point, and a reason that more time would take away."""
    found = learned(max_time=0.0)
    assert (found.reason, len(found.history), found.moved) == ("max_time", 1, False)


def test_the_best_start_goes_on():
    """Two starts end roughly, the lowest is taken up again to the tolerance."""
    found = learned((Start(30.0), Start(1.0)))
    stage, start = (np.array(found.history.columns[name]) for name in ("stage", "start"))
    assert set(zip(stage.tolist(), start.tolist(), strict=True)) == {(0, 0), (0, 1), (1, 1)}
    ends = [np.array(found.history.columns["objective"])[(stage == 0) & (start == k)].min() for k in (0, 1)]
    assert ends[1] < ends[0]
    alone = learned()
    assert found.history.columns["objective"][-1] == pytest.approx(alone.history.columns["objective"][-1], rel=1e-2)
    assert ROUGH == 10
    assert (Start().factor, Start().stretch) == (1.0, 1.0)


def test_rough_stages_end_earlier():
    """At ten times the tolerance: fewer iterations than one that goes to the end."""
    rough = learned((Start(3.0), Start(3.0)), problem=problem_of(1e-3))
    fine = learned((Start(3.0),), problem=problem_of(1e-3))
    first = (np.array(rough.history.columns["stage"]) == 0) & (np.array(rough.history.columns["start"]) == 0)
    assert first.sum() < len(fine.history)


def test_l1_and_the_stage_without_it():
    """Inputs that do not matter are switched off; then the rest is learned without l1, if the error falls."""
    found = learned(problem=problem_of(1e-4, l1=0.1))
    assert found.x[0] > 1
    assert found.x[1:].tolist() == [0, 0]
    stage, errors = (np.array(found.history.columns[name]) for name in ("stage", "validation_error"))
    assert stage.tolist() == sorted(stage)
    assert set(stage) == {0, 1}
    before, after = found.refit
    assert (before, after) == (pytest.approx(errors[stage == 0][-1]), pytest.approx(errors[-1]))
    assert after < before
    np.testing.assert_allclose(found.history.columns["sigma"][-1], 0.3 * found.x)
    assert found.reason == "converged"


def test_a_fit_in_pieces_is_the_same_fit(tmp_path):
    """Ended after an iteration or two, and gone on with from its checkpoint: the same bits as in one go."""
    whole = learned((Start(3.0), Start(1.0)), max_iter=6)
    path, fit = str(tmp_path / "fit.ckpt"), {"estimator": "E"}
    for time in (0.0, 0.0, None):
        pieces = learned((Start(3.0), Start(1.0)), max_iter=6, max_time=time, checkpoint=Checkpoint(path, fit))
    for name in ("objective", "alpha", "passes", "stage", "start", "sigma"):
        np.testing.assert_array_equal(pieces.history.columns[name], whole.history.columns[name])
    np.testing.assert_array_equal(pieces.x, whole.x)
    assert (pieces.reason, pieces.decrease) == (whole.reason, whole.decrease)


def test_finishing_takes_what_there_is(tmp_path):
    """Without another iteration; before the first one there is nothing to take."""
    path, fit = str(tmp_path / "fit.ckpt"), {"estimator": "E"}
    with pytest.raises(ValueError, match="nothing has been learned yet"):
        learned(checkpoint=Checkpoint(path, fit), finish=True)
    some = learned(max_iter=2, checkpoint=Checkpoint(path, fit))
    again = learned(max_iter=9, checkpoint=Checkpoint(path, fit), finish=True)
    np.testing.assert_array_equal(again.x, some.x)
    assert len(again.history) == len(some.history)
    assert again.reason == "max_iter"


def test_more_iterations_go_on_from_the_end(tmp_path):
    """A further limit continues the same descent; a nearer one changes nothing."""
    path, fit = str(tmp_path / "fit.ckpt"), {"estimator": "E"}
    learned(max_iter=2, checkpoint=Checkpoint(path, fit))
    same = learned(max_iter=1, checkpoint=Checkpoint(path, fit))
    assert (len(same.history), same.reason) == (3, "max_iter")
    more = learned(max_iter=4, checkpoint=Checkpoint(path, fit))
    whole = learned(max_iter=4)
    np.testing.assert_array_equal(more.history.columns["objective"], whole.history.columns["objective"])
    np.testing.assert_array_equal(more.x, whole.x)


@pytest.mark.parametrize(("below", "off"), [(1e-9, False), (0.05, True), (1e4, False)])
def test_a_sigma_that_has_all_but_vanished(below, off, monkeypatch):
    """Is switched off, in one more row of the history and two passes, unless that costs more than the tolerance."""
    problem = problem_of(1e-2, l1=0.07)
    monkeypatch.setattr("dkl.learn.parameters.VANISHED", 1e-9)
    as_it_is = learned(problem=problem)
    monkeypatch.setattr("dkl.learn.parameters.VANISHED", below)
    found = learned(problem=problem)
    assert as_it_is.x[2] > 0
    assert (found.x[2] == 0) == off
    assert found.x[0] > 1
    sigma, passes = (
        [np.array(one.history.columns[name])[np.array(one.history.columns["stage"]) == 0] for one in (as_it_is, found)]
        for name in ("sigma", "passes")
    )
    assert len(sigma[1]) == len(sigma[0]) + off
    np.testing.assert_array_equal(sigma[1][-1], sigma[0][-1] * [1, 1, not off])
    if off:
        assert passes[1][-1] == passes[0][-1] + 2
