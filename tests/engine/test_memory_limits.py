"""Bytes of this process, of the machine and its container; the tightest worker; what a plan prints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import psutil
import pytest
from dkl.engine.shape import Shape

from dkl.engine import memory
from dkl.engine.memory import Plan, count, make_plan

SHAPE = Shape(1000, 7, 22, 1, 100, 53, False, np.dtype(np.float64), 56, outputs=5)
PLAN = Plan(SHAPE, "cluster", 3, 12, 3 * 2**20, 2**30, 5 * 2**30, 8 * 2**30)


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    """Files in place of the container's."""
    monkeypatch.setattr(memory, "Path", lambda path: tmp_path / path.replace("/", "_"))

    def write(new=None, old=None):
        for path, text in (("memory.max", new), ("memory/memory.limit_in_bytes", old)):
            if text is not None:
                (tmp_path / f"/sys/fs/cgroup/{path}".replace("/", "_")).write_text(text)

    return write


def test_no_container(cgroup):
    """The machine's own memory; a container that says `max` is none."""
    total = psutil.virtual_memory().total
    assert memory.memory_limit() == total
    cgroup(new="max\n")
    assert memory.memory_limit() == total


@pytest.mark.parametrize("files", [{"new": "12345678\n"}, {"old": "12345678\n"}, {"new": "max", "old": "12345678"}])
def test_the_limit_of_a_container(cgroup, files):
    """By either file, whichever is there."""
    cgroup(**files)
    assert memory.memory_limit() == 12345678


def test_the_least_limit(cgroup):
    """Of both files, and of the machine."""
    cgroup(new="12345678", old="999")
    assert memory.memory_limit() == 999
    cgroup(new=str(2**62), old=str(2**62))
    assert memory.memory_limit() == psutil.virtual_memory().total


def test_what_may_still_be_taken(cgroup):
    """The rest of the container, never below zero; or of the machine, if that is less."""
    assert abs(memory.process_bytes() - psutil.Process().memory_info().rss) < 2**26
    cgroup(new="1000")
    assert memory.available_bytes() == 0
    used, limit = memory.memory_here()
    assert abs(limit - used) < 2**26
    cgroup(new=str(memory.process_bytes() + 2**28))
    assert 2**27 < memory.available_bytes() < 2**29
    used, limit = memory.memory_here()
    assert 2**27 < limit - used < 2**29
    cgroup(new=str(2**62))
    assert memory.available_bytes() <= psutil.virtual_memory().total


class Machine:
    """What a plan asks of an engine: workers as given."""

    name, threads = "cluster", 8

    def __init__(self, *workers):
        self.workers = workers

    def resources(self):
        """Threads, used and allowed bytes of each worker."""
        return [dict(zip(("threads", "used", "limit"), worker, strict=True)) for worker in self.workers]

    def solve_memory(self):
        """Bytes of the solve."""
        return 0, 10**12

    def run_once(self, call, dtype):
        """Flops each second, and seconds of a cosine."""
        return 1e6, 1e-3


def test_the_tightest_worker_is_the_one_with_the_largest_share():
    """Neither the one that needs most, nor the one that has least."""
    most, least, tight = (2, 10**12, 10**15), (2, 0, 10**9), (2, 10**11, 10**11 + 10**8)
    for workers in ((most, least, tight), (tight, least, most), (least, tight, most)):
        plan = make_plan(Machine(*workers), SHAPE)
        assert plan.worker_limit == 10**11 + 10**8
        assert plan.workers == 3
        assert (plan.seconds, plan.solve_seconds, plan.iteration_seconds) == (None, None, None)


def test_seconds_in_float32():
    """A solve is in float64, which takes a thread twice as long as what was measured; learning may be none."""
    shape = replace(SHAPE, dtype=np.dtype(np.float32))
    plans = [make_plan(Machine((2, 0, 10**12)), one, calibrate=True) for one in (SHAPE, shape)]
    assert plans[0].solve_seconds == pytest.approx(SHAPE.solve_flops / 0.4e6)
    assert plans[1].solve_seconds == pytest.approx(2 * plans[0].solve_seconds)
    assert plans[1].iteration_seconds is None


def test_blocks_of_nothing():
    """At least one thread has work."""
    assert memory._parallel(replace(SHAPE, rows=0)) == 1
    assert memory._parallel(replace(SHAPE, rows=5, block=0)) == 5
    assert memory._parallel(replace(SHAPE, rows=200)) == 2


def test_the_whole_text():
    """Every line of a plan on a cluster, with times, that does not fit."""
    plan = replace(PLAN, seconds=90.0, solve_seconds=240.0, iteration_seconds=9000.0, worker_limit=2**20)
    lines = [
        "             data  1,000 rows x 7 inputs, float64, blocks of 100 rows",
        "            model  22 components, 5 outputs, 1 fold",
        "             runs  on 3 workers, 12 threads in all",
        "  peak per worker  3.0 MiB of 1.0 MiB",
        "peak of the solve  5.00 GiB of 8.00 GiB",
        "    read per pass  54.7 KiB",
        f"   flops per pass  {SHAPE.flops:.3g}",
        "    time per pass  about 90 s",
        "time of the solve  about 4 minutes",
        "    time to learn  about 2 hours for each iteration on all rows",
        "          verdict  does NOT fit: fit() will refuse it",
    ]
    assert str(plan) == "\n".join(lines)
    assert repr(plan) == str(plan)
    shown = str(replace(PLAN, engine="embedded"))
    assert "in this process" in shown
    assert "time" not in shown
    assert "verdict" not in shown
    assert "time" not in str(replace(PLAN, seconds=1.0))
    assert PLAN._repr_html_().count("<tr>") == 7


def test_words_for_the_model():
    """Features of a transformer, and its channels."""
    plain = replace(SHAPE, outputs=0)
    assert replace(PLAN, shape=plain)._model() == "22 features"
    assert replace(PLAN, shape=replace(plain, features=1))._model() == "1 feature"
    assert replace(PLAN, shape=replace(plain, widths=(3, 4)))._model() == "7 features of 2 channels"
    assert (count(0, "fold"), count(2000, "fold")) == ("0 folds", "2,000 folds")


def test_tightness_and_refusal():
    """The larger of both shares; a limit of zero divides nothing."""
    assert PLAN.tightness == 5 / 8
    assert replace(PLAN, worker_limit=2**20).tightness == 3
    assert replace(PLAN, worker_limit=0, solve_limit=0).tightness == 5 * 2**30
    PLAN.check()
    one = "use fewer components (now 22) or smaller blocks (now 100 rows: rechunk X)"
    with pytest.raises(MemoryError) as caught:
        replace(PLAN, worker_limit=2**20).check()
    assert str(caught.value) == f"a worker would need 3.0 MiB but may use 1.0 MiB; {one}"
    with pytest.raises(MemoryError) as caught:
        replace(PLAN, solve_limit=2**30).check()
    assert str(caught.value) == f"the solve would need 5.00 GiB but may use 1.00 GiB; {one}"
    here = replace(PLAN, engine="embedded", shape=replace(SHAPE, folds=2))
    many = "use fewer components (now 22), smaller blocks (now 100 rows: rechunk X) or fewer folds (now 2)"
    with pytest.raises(MemoryError) as caught:
        replace(here, worker_limit=2**20).check()
    assert str(caught.value) == f"this process would need 3.0 MiB but may use 1.0 MiB; {many}"
    with pytest.raises(MemoryError, match="the solve in this process would need"):
        replace(here, solve_limit=0).check()


class Clock:
    """Seconds that pass only when somebody looks: 1, then 2, then 3 and so on between looks."""

    def __init__(self):
        self.now = self.step = 0.0

    def perf_counter(self):
        """The next time."""
        self.now += self.step
        self.step += 1
        return self.now


def test_the_rate_of_a_thread(monkeypatch):
    """2 x 1024 x 512 x 512 flops in the time of a product, 1024 x 512 cosines in the time of those."""
    monkeypatch.setattr(memory, "time", Clock())
    monkeypatch.setattr(memory, "CALIBRATE_SECONDS", 20.0)
    # looks: begin 0, loop 1; start 3, middle 6, end 10; loop 15; start 21, middle 28, end 36; loop 45 ends it
    rate, cosine = memory.calibrated("float32")
    assert rate == pytest.approx(np.median([2 * 1024 * 512 * 512 / 3, 2 * 1024 * 512 * 512 / 7]))
    assert cosine == pytest.approx(np.median([4 / (1024 * 512), 8 / (1024 * 512)]))
