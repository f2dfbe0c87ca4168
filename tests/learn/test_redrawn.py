"""Learning by the log loss on rows in memory: iterations, what is looked at again, checkpoints, alpha in the end."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress, listening
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.learn import redrawn as redraw
from dkl.learn.iterate import iterate
from dkl.learn.objectives import CV, Unweighted
from dkl.learn.parameters import Scales
from dkl.learn.redrawn import RedrawnBandwidth, least_log_loss
from dkl.learn.redrawn_steps import LAST, SHARPNESS, Redrawn, chosen, trials
from dkl.learn.run import Limits, Run
from dkl.prepare.draw import build_map
from dkl.solvers import adam
from dkl.store.checkpoint import Checkpoint
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets

RNG = np.random.default_rng(0)
N, UNIT = 200, 4.0
X = RNG.normal(size=(N, 2))
CODE = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
MAP = build_map(
    {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "frequencies": "iid", "form": "paired", "n_components": 10}
    | {"groups": "each", "sigma": 0.5},
    2, {}, np.random.default_rng(0), None,
)[0]  # fmt: skip
WEIGHT = np.full(N, UNIT)
TARGETS = Targets(float(N), 2, classes=np.arange(2), weight_unit=UNIT)
PROGRAM = GramProgram(MAP.at(np.float64), TARGETS, N, 3, 1)


def rows_of(weight=WEIGHT):
    tables = [Table("memory", X), Table("memory", CODE), Table("memory", weight), None]
    return Rows(tables, ["X", "y", "sample_weight", "folds"])


def learned(steps=3, max_time=None, checkpoint=None, finish=False, share=None, alpha=None, weight=WEIGHT):
    """The result, and the names of all passes."""
    size = np.sqrt((X * X).sum(axis=0))
    problem = Redrawn(CV, Scales(MAP, np.arange(2)), TARGETS, True, alpha, size, 1e-3, "iid", 7, steps)
    events, limits = [], Limits(steps, 1e-3, max_time)
    run = Run(engine_for(False), rows_of(weight), Progress(0), limits, checkpoint, finish)
    with listening(events.append):
        result, history, reason = iterate(run, RedrawnBandwidth(problem, PROGRAM, share))
    found = SimpleNamespace(**vars(result), history=history, reason=reason)
    return found, [event["name"] for event in events if event["event"] == "pass"]


def test_passes_of_an_iteration():
    """Three, and one more where alpha and k are looked at: at the first and at every tenth."""
    found, passes = learned(12)
    assert redraw.EVERY == 10
    tried = [name for name in passes if name.endswith("alpha")]
    assert tried == ["iteration 1: alpha", "iteration 11: alpha"]
    assert len(passes) == 3 * 12 + 2
    assert found.history.columns["passes"][-1] == len(passes)
    assert passes[:4] == [f"iteration 1: {what}" for what in ("adding up X", "alpha", "scores", "gradient")]
    assert len(set(found.history.columns["alpha"][:10])) == 1


def test_the_mean_of_the_second_half():
    """Of four steps the last two count; sigma of each row is where its step began."""
    found, _ = learned(4)
    points = np.log(np.array(found.history.columns["sigma"]) / 0.5)
    np.testing.assert_array_equal(points[0], 0)
    assert np.abs(points[1]).max() == pytest.approx(adam.STEP)
    assert (found.reason, found.share, len(found.history)) == ("max_iter", 1.0, 4)
    assert np.isnan(found.decrease)
    assert found.alpha == found.history.columns["alpha"][-1]
    assert np.abs(found.x - points[3]).max() < 2 * adam.STEP
    longer, _ = learned(5)
    np.testing.assert_array_equal(longer.history.columns["sigma"][1], found.history.columns["sigma"][1])


def test_a_given_alpha_stays():
    """In the user's units."""
    found, _ = learned(2, alpha=0.75)
    np.testing.assert_allclose(found.history.columns["alpha"], 0.75)
    assert found.alpha == pytest.approx(0.75)


def test_time_ends_it():
    """After one iteration at least."""
    found, _ = learned(9, max_time=0.0)
    assert (found.reason, len(found.history)) == ("max_time", 1)


def test_pieces_of_a_fit_are_the_same_fit(tmp_path):
    """Gone on with from a checkpoint, with the same bits; a lower limit ends it, finish takes what there is."""
    path, fit = str(tmp_path / "fit.ckpt"), {"estimator": "E"}
    whole, _ = learned(4)
    learned(4, max_time=0.0, checkpoint=Checkpoint(path, fit))
    pieces, _ = learned(4, checkpoint=Checkpoint(path, fit))
    np.testing.assert_array_equal(pieces.x, whole.x)
    np.testing.assert_array_equal(pieces.history.columns["objective"], whole.history.columns["objective"])
    less, passes = learned(3, checkpoint=Checkpoint(path, fit))
    assert (len(less.history), less.reason, passes) == (4, "max_iter", [])
    longer, _ = learned(8, checkpoint=Checkpoint(path, fit))
    assert (len(longer.history), longer.reason) == (8, "max_iter")
    points = np.log(np.array(longer.history.columns["sigma"]) / 0.5)
    assert np.abs(longer.x - points[5:].mean(axis=0)).max() < adam.STEP


@pytest.mark.parametrize("alpha", [0.5, 40.0])
def test_alpha_in_the_end(alpha):
    """The best of five multiples, in the user's units, from the sums that are there."""
    sums, space = PROGRAM.start(), PROGRAM.workspace()
    PROGRAM.add(sums, space, 0, 0, (X, CODE, WEIGHT, None))
    found = least_log_loss(Run(engine_for(False), rows_of(), Progress(0)), PROGRAM, sums, alpha, True)
    near = float(np.log(alpha / UNIT))
    tried, kept = trials(sums, program=PROGRAM, fit_intercept=True, alpha=None, near=near, factors=LAST)
    scored, space = kept["trials"].start(), kept["trials"].workspace()
    kept["trials"].add(scored, space, 0, 0, (X, CODE, WEIGHT, None))
    best = chosen(scored, log_lams=tried, sharpness=SHARPNESS)
    assert found == pytest.approx(np.exp(best.log_lam) * UNIT)
    assert found / alpha == pytest.approx(LAST[np.argmin(np.abs(LAST - found / alpha))])


def test_blocks_that_miss_a_fold_grow():
    """A tenth of the rows has next to no weight: twice as many, and so on; not even all rows help a fold without."""
    few = np.where(np.arange(N) < 12, UNIT, 0.0)
    found, passes = learned(1, share=0.1, weight=few)
    assert found.history.columns["rows"][0] >= 40
    assert passes[:2] == ["iteration 1: adding up X"] * 2
    with pytest.raises(Unweighted, match="have no weight; use more rows, or other folds"):
        learned(1, share=0.1, weight=np.where(np.arange(N) < 1, UNIT, 0.0))
