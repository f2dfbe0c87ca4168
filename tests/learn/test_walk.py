"""What is told on the way: rows of a pass, rows of the history, and a line at most every fifth of a second."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np

from dkl.engine.progress import Progress, listening
from dkl.learn.search import Move
from dkl.learn.standing import open_standing
from dkl.learn.walk import Walk
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
