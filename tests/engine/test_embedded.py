"""The engine in one process: every block once, whatever the threads; errors, shared values, what it knows of itself."""

from __future__ import annotations

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded, _Shared
from dkl.engine.memory import memory_here
from dkl.engine.progress import Progress, listening
from dkl.engine.tables import Table
from dkl.engine.threads import thread_count

X = np.arange(40.0).reshape(20, 2)


class Total:
    """A sum with the blocks and threads that it was made of."""

    def __init__(self):
        self.value, self.blocks, self.threads, self.refusal = 0.0, [], set(), None

    def merge(self, other):
        """self += other."""
        self.value += other.value
        self.blocks += other.blocks
        self.threads |= other.threads


class Program:
    """Adds up rows in blocks of four; a negative number is an error."""

    rows_wanted = 4

    def __init__(self, pause=0.0):
        self.pause, self.spaces = pause, 0

    def start(self):
        """Nothing."""
        return Total()

    def workspace(self):
        """Its number."""
        self.spaces += 1
        return self.spaces

    def add(self, sums, workspace, block, start, data):
        """One block."""
        time.sleep(self.pause)
        if (data[0] < 0).any():
            raise ZeroDivisionError(f"block {block}")
        sums.value += data[0].sum()
        sums.blocks.append((block, start))
        sums.threads.add(threading.current_thread())


def rows_of(array):
    """Rows in memory, or lazy ones."""
    return Rows([Table("dask" if hasattr(array, "dask") else "memory", array)], ["X"])


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_every_block_once(threads):
    """By one thread here, or by as many as there is work for; one event for the pass."""
    events, program = [], Program(0.01)
    with listening(events.append):
        found = Embedded(threads).sum(program, rows_of(X), Progress(0).name("adding"))
    assert found.value == X.sum()
    assert sorted(found.blocks) == [(0, 0), (1, 4), (2, 8), (3, 12), (4, 16)]
    assert program.spaces == min(threads, 5)
    assert (found.threads == {threading.main_thread()}) == (threads == 1)
    assert [(e["event"], e["name"], e["rows"]) for e in events] == [("pass", "adding", 20)]


def test_some_blocks_of_a_pass():
    """Those alone, and the caller shows the progress."""
    events, progress = [], Progress(0)
    progress.begin(20)
    with listening(events.append):
        found = Embedded(2).sum(Program(), rows_of(X), progress, [(4, 8), (16, 20)])
    assert found.value == X[4:8].sum() + X[16:].sum()
    assert sorted(found.blocks) == [(0, 4), (1, 16)]
    assert (progress.done, events) == (8, [])


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_ends_the_pass(threads):
    """It is raised, the pass has ended, and most of the rest is not begun."""
    bad, program, events = np.tile(X, (50, 1)), Program(0.005), []
    bad[1] = -1
    with listening(events.append), pytest.raises(ZeroDivisionError, match="block 0"):
        Embedded(threads).sum(program, rows_of(bad), Progress(0).name("adding"))
    assert [e["event"] for e in events] == ["pass"]
    assert events[0]["rows"] < 500


def test_shared_values():
    """A mean that all parts need is computed once, and let go after the last."""
    calls = []

    def note(block):
        calls.append(1)
        return block

    lazy = da.from_array(X, (4, 2))
    mean = da.from_delayed(dask.delayed(note)(lazy.mean(axis=0)), (2,), dtype=float)
    rows = rows_of(lazy + mean)
    assert Embedded(2).sum(Program(), rows, Progress(0)).value == pytest.approx(2 * X.sum(), rel=1e-12)
    assert len(calls) == 1
    parts = rows.cut([[block] for block in rows.blocks(4)])
    shared = _Shared(rows.shared(parts), parts)
    for i, part in enumerate(parts):
        assert part.needs
        values = shared.values_of(part)
        assert set(values) == set(part.needs)
        assert set(shared.values) >= set(values)
        shared.release(part)
        assert bool(shared.values) == (i < len(parts) - 1)
    assert len(calls) == 2


def test_parts_without_shared_values():
    """Nothing is computed for them."""
    rows = rows_of(X)
    parts = rows.cut([[(0, 20)]])
    assert _Shared(rows.shared(parts), parts).values_of(parts[0]) == {}


def test_what_it_knows():
    """Threads, bytes, and calls that happen here."""
    engine = Embedded(3)
    (worker,) = engine.resources()
    used, limit = memory_here()
    assert worker.threads == engine.threads == 3
    assert abs(worker.used - used) < 2**27
    assert 0 < worker.used < worker.limit
    assert engine.solve_memory()[1] > limit / 2
    with dask.config.set(num_workers=5):
        assert Embedded().threads == thread_count() == 5
    assert engine.run_once(divmod, 7, 2) == engine.load(divmod, 7, 2) == (3, 1)
    assert engine.apply(divmod, 9, 2) == (4, 1)
    value = object()
    assert engine.keep("x", value) is engine.take(value) is engine.fetch(value) is value
    assert engine.rebase(value, divmod, 1, 0) is value
    one, two = Total(), Total()
    one.value, two.value = 1.0, 2.0
    assert engine.combine(one, two) is one
    assert one.value == 3.0
    assert engine.solve(lambda sums, more: sums.value + more, one, more=4.0) == 7.0
    one.refusal = 12, "row 12 is bad"
    with pytest.raises(ValueError, match="row 12 is bad"):
        engine.solve(lambda sums: "nothing is solved for rows that were refused", one)
    assert engine.forget() is None
