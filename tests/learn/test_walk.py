"""What is told on the way: rows of a pass, rows of the history, and a line at most every fifth of a second."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from dkl.engine.interrupt import Interruption
from dkl.engine.progress import Progress, listening
from dkl.learn.search import Move
from dkl.learn.standing import open_standing
from dkl.learn.walk import INTERRUPTED, LIMITS, Walk
from dkl.store.checkpoint import Checkpoint
from tests.engine.test_progress import Screen

BLOCKS = [(10, 14), (20, 27), (27, 28)]
MOVE = Move(np.ones(2), 2.0, 1.5, 0.0, 0.25, 0.1)


class Engine:
    """Adds nothing up; remembers what it was asked."""

    def sum(self, program, rows, progress, blocks):
        """The label, the rows and the blocks of the pass."""
        return progress.label, progress.total, blocks


def walk_of(screen, max_time=None):
    """A walk that has just begun."""
    problem = SimpleNamespace(alpha=3.0)
    return Walk(Engine(), None, problem, Progress(1, screen), open_standing(None), max_time, 50, None)


def test_a_pass_counts_the_rows_of_its_blocks():
    """Twelve rows in three blocks, and one pass more."""
    walk, events = walk_of(Screen()), []
    with listening(events.append):
        assert walk.sweep("program", BLOCKS, "adding up") == ("adding up", 12, BLOCKS)
    assert walk.standing.passes == 1
    assert [(event["event"], event["name"]) for event in events] == [("pass", "adding up")]


def test_an_iteration_is_noted():
    """A row of the history and an event; a line only if the last one is older than a fifth of a second."""
    screen, events = Screen(), []
    walk = walk_of(screen)
    with listening(events.append):
        walk.standing.passes += 2
        walk.note(MOVE, BLOCKS)
        assert screen.getvalue() == ""
        walk.begun -= 100
        walk.standing.passes += 2
        walk.note(MOVE, BLOCKS)
        assert screen.getvalue() == "\rlearning on 12 rows: iteration 1, objective 2, gradient 0.1, 100 s"
        walk.note(MOVE, BLOCKS)
    assert screen.getvalue().count("\r") == 1
    assert walk.standing.history.columns["rows"] == [12] * 3
    assert [event["rows"] for event in events] == [12] * 3
    assert [event["alpha"] for event in events] == [3.0] * 3
    assert [event["number"] for event in events] == [0, 1, 2]


def test_lateness():
    """Never without max_time; with it, once that many seconds have passed since the beginning."""
    assert not walk_of(Screen()).late()
    walk = walk_of(Screen(), 50.0)
    assert not walk.late()
    walk.begun = time.monotonic() - 51
    assert walk.late()


class Ending(Walk):
    """A walk whose iterations are given: it notes so many moves, or is interrupted after them."""

    moves, interrupted, reopened = 2, False, 0

    def to_the_end(self):
        """All moves that are left."""
        while not self.standing.reason:
            if len(self.standing.history) >= self.moves:
                if self.interrupted:
                    raise Interruption
                self.standing.reason = "max_iter"
                return
            self.standing.passes += 2
            self.note(MOVE, BLOCKS)

    def reopen(self):
        """Counted."""
        self.reopened += 1


def ending(standing=None, max_iter=50, max_time=None, tol=1e-3, checkpoint=None, starts=1):
    problem = SimpleNamespace(alpha=3.0, tol=tol)
    at = standing or open_standing(None)
    return Ending(None, None, problem, Progress(0), at, max_time, max_iter, checkpoint, starts)


def test_to_the_end():
    """The limits it was learned with are noted; a second Ctrl-C may end it once there is something to keep."""
    walk = ending(max_time=9)
    walk.run()
    assert walk.standing.reason == "max_iter"
    assert walk.standing.limits == {"max_iter": 50, "max_time": 9.0, "tol": 1e-3}
    assert isinstance(walk.standing.limits["max_time"], float)
    assert walk.watch.ready
    assert len(walk.standing.history) == 2
    assert walk.reopened == 0


def test_interrupted():
    """The standing stays where it is."""
    walk = ending()
    walk.interrupted = True
    walk.run()
    assert walk.standing.reason == INTERRUPTED == "interrupted"
    assert len(walk.standing.history) == 2
    assert LIMITS == ("max_iter", "tol", "max_time")


def test_finishing():
    """Nothing to finish with is refused; something is taken as it is; an end stays an end."""
    walk = ending()
    with pytest.raises(ValueError, match="nothing has been learned yet that could be finished with"):
        walk.run(finish=True)
    walk.note(MOVE, BLOCKS)
    walk.run(finish=True)
    assert (walk.standing.reason, len(walk.standing.history)) == ("interrupted", 1)
    assert walk.standing.limits == {}
    ended = ending()
    ended.run()
    again = ending(ended.standing, max_iter=99)
    again.run(finish=True)
    assert (again.standing.reason, again.reopened, len(again.standing.history)) == ("max_iter", 0, 2)
    assert again.standing.limits["max_iter"] == 50


def test_a_limit_further_away_reopens(tmp_path):
    """And what was added up at the sigma that is now left is removed."""
    ended = ending()
    ended.run()
    near = ending(ended.standing, max_iter=40)
    near.run()
    assert (near.reopened, near.standing.limits["max_iter"]) == (0, 50)
    checkpoint = Checkpoint(str(tmp_path / "fit.ckpt"), {"estimator": "E"})
    (tmp_path / "fit.ckpt" / "sums-3").mkdir()
    far = ending(ended.standing, max_iter=60, checkpoint=checkpoint)
    far.moves = 3
    far.run()
    assert (far.reopened, far.standing.reason, far.standing.limits["max_iter"]) == (1, "max_iter", 60)
    assert len(far.standing.history) == 3
    assert not (tmp_path / "fit.ckpt" / "sums-3").exists()
    bare = ending(far.standing, max_iter=70)
    bare.run()
    assert bare.reopened == 1


def test_numbers_of_steps_only_rise(tmp_path):
    """Whatever a standing is called, its number is above all before."""
    path = str(tmp_path / "fit.ckpt")
    walk = ending(checkpoint=Checkpoint(path, {"estimator": "E"}))
    assert walk.saved == 0
    numbers = []
    for number in (3, 2, 9):
        walk.save(number, ({"name": number}, {"x": (("i",), np.ones(2))}))
        numbers.append(walk.saved)
    assert numbers == [3, 4, 9]
    again = ending(checkpoint=Checkpoint(path, {"estimator": "E"}))
    assert again.saved == 9
    assert Checkpoint(path, {"estimator": "E"}).open_step()[1]["name"] == 9
    assert ending().saved == 0


def test_time_goes_on_where_it_was():
    """Seconds of an earlier process count."""
    at = open_standing(None)
    at.seconds = 40.0
    walk = ending(at, max_time=50)
    assert not walk.late()
    walk.standing.passes += 2
    walk.note(MOVE, BLOCKS)
    assert 40 <= walk.standing.seconds < 45
    at.seconds = 60.0
    assert ending(at, max_time=50).late()
    assert ending(at, max_time=50).told_before == 0.0


def test_where_it_is_in_words():
    """Start or stage, and the iteration to come."""
    walk = ending(starts=3)
    assert walk.where() == "start 1 of 3, iteration 0"
    walk.standing.passes += 2
    walk.note(MOVE, BLOCKS)
    assert walk.where() == "start 1 of 3, iteration 1"
    walk.standing.passes += 2
    walk.note(MOVE, BLOCKS)
    assert walk.where() == "start 1 of 3, iteration 2"
    assert "start 1 of 3, iteration 1, objective 2, gradient 0.1" in walk.line()
    walk.standing.stage, walk.standing.start = 1, 2
    assert walk.where() == "stage 2, iteration 0"
    assert ending().where() == "iteration 0"
    drifting = ending()
    drifting.beginning = 0
    assert drifting.where() == "iteration 1"


def test_a_row_of_the_history():
    """Everything a move says, alpha as given or in the user's units, and where it stood."""
    walk = walk_of(Screen())
    walk.problem = SimpleNamespace(alpha=None, targets=SimpleNamespace(weight_unit=4.0))
    walk.standing.stage, walk.standing.start, walk.standing.passes = 2, 1, 7
    walk.note(MOVE._replace(log_lam=float(np.log(0.5)), unseen=9.0), BLOCKS)
    row = {name: column[-1] for name, column in walk.standing.history.columns.items()}
    assert row["alpha"] == 2.0
    assert (row["objective"], row["validation_error"], row["unseen_error"], row["error_rate"]) == (2.0, 1.5, 9.0, 0.25)
    assert (row["gradient_norm"], row["passes"], row["stage"], row["start"], row["rows"]) == (0.1, 7, 2, 1, 12)
    assert row["sigma"].tolist() == [1, 1]
    assert walk.watch.ready
