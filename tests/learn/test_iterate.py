"""The loop with a method that only counts: history, events, progress, limits, Ctrl-C, checkpoints and resuming."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.interrupt import Interruption
from dkl.engine.progress import Progress, listening
from dkl.engine.tables import Table
from dkl.learn.history import Column, History
from dkl.learn.iterate import allows_more, iterate
from dkl.learn.run import INTERRUPTED, Limits, Method, Row, Run, Step
from dkl.learn.watchers import Loop, certificate_of, line_of
from dkl.store.checkpoint import Checkpoint
from tests.engine.test_progress import Screen

FIT = {"estimator": "E"}


class Count(NamedTuple):
    number: int = 0
    x: np.ndarray = np.zeros(2)


@dataclass
class Counting(Method[Count, int]):
    """Each step adds one; every third has no row; it ends by itself at `last`."""

    last: int = 6
    interrupted: int | None = None
    slow: float = 0.0
    reopenings: int = 0
    resumptions: int = 0
    state: ClassVar[type] = Count
    history: ClassVar = {"objective": Column("what is minimised"), "x": Column("the point", dim="input")}

    def begin(self, run):
        return Count()

    def resumed(self, run, state):
        self.resumptions += 1
        return state

    def reopened(self, run, state):
        self.reopenings += 1
        return state

    def step(self, run, state):
        if state.number == self.interrupted:
            raise Interruption
        time.sleep(self.slow)
        number = state.number + 1
        state = Count(number, state.x + number)
        row = Row(f"iteration {number}", 12, {"objective": 10.0 - number, "x": state.x}) if number % 3 else None
        limited = "max_iter" if number >= run.limits.max_iter else ""
        return Step(state, row, "converged" if number >= self.last else limited, saved=number % 3 > 0)

    def end(self, run, state, history):
        return state.number


def run_of(checkpoint=None, finish=False, screen=None, **limits):
    rows = Rows([Table("memory", np.zeros((12, 1)))], ["X"])
    return Run(Embedded(), rows, Progress(int(screen is not None), screen), Limits(**limits), checkpoint, finish)


def test_steps_rows_and_events():
    """A row for each step that has one; an event with its plain values; seconds, rows and passes beside them."""
    run, events = run_of(), []
    run.meter.passes = 5
    with listening(events.append):
        done = iterate(run, Counting())
    assert (done.result, done.reason, len(done.history)) == (6, "converged", 4)
    assert done.history.columns["objective"] == [9.0, 8.0, 6.0, 5.0]
    assert done.history.columns["rows"] == [12] * 4
    assert done.history.columns["passes"] == [5] * 4
    assert [event["number"] for event in events] == [0, 1, 2, 3]
    assert "x" not in events[0]
    assert events[0]["objective"] == 9.0


def test_a_line_at_most_every_fifth_of_a_second():
    """And the last one is left standing."""
    screen = Screen()
    iterate(run_of(screen=screen), Counting(slow=0.06))
    lines = [line for line in screen.getvalue().replace("\n", "\r").split("\r") if line.strip()]
    assert lines[0].startswith("learning on 12 rows: iteration 4, objective 6, 0 s")
    assert lines[-1].startswith("learning on 12 rows: iteration 5, objective 5, 0 s")
    assert len(lines) == 2


def test_the_line_of_weights_has_the_certificate():
    """And what it has to be: that of the run, or of the row; nothing is called learning where nothing is learned."""
    history = History({"objective": Column("o"), "residual": Column("r")})
    history.append({"objective": 0.25, "residual": 3e-3, "seconds": 7.0, "rows": 39_977, "passes": 3})
    loop = Loop(None, history, row=Row("weights, iteration 22", 39_977, {}))
    assert line_of(loop, 1e-4) == "weights on 39,977 rows: iteration 22, objective 0.25, residual 3e-03 of 1e-04, 7 s"
    loop.row = Row("choice, iteration 2", 39_977, {}, 1e-3)
    assert line_of(loop, 1e-4).startswith("weights on 39,977 rows: choice, iteration 2, objective 0.25")
    assert certificate_of(loop, 1e-4) == "residual 3e-03 of 1e-03"
    assert line_of(loop) == "learning on 39,977 rows: choice, iteration 2, objective 0.25, 7 s"
    assert certificate_of(loop, None) == ""


@pytest.mark.parametrize(
    ("limits", "reason", "number"), [({"max_iter": 2}, "max_iter", 2), ({"max_time": 0.0}, "max_time", 1)]
)
def test_limits(limits, reason, number):
    """A limit of the method, and the time of any method, which ends after the step under way."""
    done = iterate(run_of(**limits), Counting())
    assert (done.reason, done.result) == (reason, number)


def test_an_interruption_keeps_the_last_state():
    """Whatever the method was doing."""
    done = iterate(run_of(), Counting(interrupted=4))
    assert (done.reason, done.result, len(done.history)) == (INTERRUPTED, 4, 3)
    assert INTERRUPTED == "interrupted"


def checkpoint_at(tmp_path):
    return Checkpoint(str(tmp_path / "fit.ckpt"), FIT)


def test_pieces_are_the_same_as_the_whole(tmp_path):
    """Stopped by time after every step, resumed from disk: the same state, rows and passes; seconds add up."""
    whole = iterate(run_of(), Counting())
    for _ in range(20):
        pieces = iterate(run_of(checkpoint_at(tmp_path), max_time=0.0), Counting())
        if pieces.reason == "converged":
            break
        pieces = iterate(run_of(checkpoint_at(tmp_path), finish=True), Counting())
        assert pieces.reason == "max_time"
    else:
        done = iterate(run_of(checkpoint_at(tmp_path)), Counting())
        assert done.reason == "converged"
        pieces = done
    for name in ("objective", "rows", "passes"):
        assert pieces.history.columns[name] == whole.history.columns[name]
    np.testing.assert_array_equal(pieces.history.columns["x"], whole.history.columns["x"])
    assert pieces.result == whole.result


def test_resuming_what_has_ended_changes_nothing(tmp_path):
    """Unless its limit is further away: then it is reopened, and sums of the point that is left are removed."""
    iterate(run_of(checkpoint_at(tmp_path), max_iter=2), Counting())
    same = Counting()
    assert iterate(run_of(checkpoint_at(tmp_path), max_iter=1), same).result == 2
    assert (same.resumptions, same.reopenings) == (1, 0)
    (tmp_path / "fit.ckpt" / "sums-3").mkdir()
    more = Counting()
    done = iterate(run_of(checkpoint_at(tmp_path), max_iter=4), more)
    assert (done.result, done.reason, more.reopenings) == (4, "max_iter", 1)
    assert not (tmp_path / "fit.ckpt" / "sums-3").exists()


def test_finishing(tmp_path):
    """Takes what there is, without a step; before the first there is nothing to take."""
    with pytest.raises(ValueError, match="resume='finish' takes the best point so far, and nothing has been learned"):
        iterate(run_of(checkpoint_at(tmp_path), finish=True), Counting())
    with pytest.raises(KeyboardInterrupt):
        iterate(run_of(checkpoint_at(tmp_path)), Killed())
    done = iterate(run_of(checkpoint_at(tmp_path), finish=True), Counting())
    assert (done.reason, done.result) == (INTERRUPTED, 2)
    ended = iterate(run_of(checkpoint_at(tmp_path)), Counting())
    assert (ended.reason, ended.result) == ("converged", 6)
    assert iterate(run_of(checkpoint_at(tmp_path), finish=True), Counting()).reason == "converged"


class Killed(Counting):
    """Dies after its second step."""

    def step(self, run, state):
        if state.number == 2:
            raise KeyboardInterrupt
        return super().step(run, state)


def test_numbers_of_steps_only_rise(tmp_path):
    """Every state that is written has a number above all before, in this process and in a later one."""
    first = checkpoint_at(tmp_path)
    iterate(run_of(first, max_iter=2), Counting())
    assert first.newest("step") == 2
    iterate(run_of(checkpoint_at(tmp_path), max_iter=5), Counting())
    assert checkpoint_at(tmp_path).newest("step") == 4


def test_time_of_earlier_processes_counts(tmp_path):
    """A second process has what the first one left."""
    iterate(run_of(checkpoint_at(tmp_path), max_iter=2), Counting(slow=0.1))
    done = iterate(run_of(checkpoint_at(tmp_path), max_iter=9, max_time=0.25), Counting(slow=0.1))
    assert done.reason == "max_time"
    assert done.result < 6


def test_a_checkpoint_of_another_kind_is_refused(tmp_path):
    """One sentence, which says how to begin anew."""
    checkpoint_at(tmp_path).save_step(1, {"stage": 1}, {"x": (("i",), np.ones(2))})
    with pytest.raises(
        ValueError,
        match=r"was written by another version of dkl; .*fit\(resume=False\)",
    ):
        iterate(run_of(checkpoint_at(tmp_path)), Counting())
    checkpoint = Checkpoint(str(tmp_path / "other.ckpt"), FIT)
    checkpoint.newest = lambda kind="sums": 3 if kind == "sums" else 0
    with pytest.raises(ValueError, match="is damaged: it has sums but not what was learned; remove it"):
        iterate(run_of(checkpoint), Counting())


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
    before = Limits(50, 1e-3, 10.0)
    assert allows_more(reason, before, before._replace(**limits)) == more
