"""Bytes of this process, of the machine and its container; the tightest worker; what a plan prints."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import psutil
import pytest

from dkl.cost import Cost, Sizes, SolveCost
from dkl.engine import memory
from dkl.engine.memory import HELD, OVERHEAD, Plan, about, count, duration, gib, large, make_plan, pass_bytes
from dkl.engine.protocol import Resources

SIZES = Sizes(1000, 7, np.dtype(np.float64), outputs=5, row_bytes=56)
COST = Cost("gram", 100, 22, flops=1234.0, cosines=22.0, solve=SolveCost(10**6, 5e6))
PLAN = Plan(SIZES, COST, "cluster", 3, 12, 3 * 2**20, 2**30, 5 * 2**30, 8 * 2**30)


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
        return [Resources(*worker) for worker in self.workers]

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
        plan = make_plan(Machine(*workers), SIZES, [COST])
        assert plan.worker_limit == 10**11 + 10**8
        assert plan.workers == 3
        assert (plan.seconds, plan.solve_seconds, plan.iteration_seconds) == (None, None, None)


def test_seconds_in_float32():
    """A solve is in float64, which takes a thread twice as long as what was measured; learning may be none."""
    narrow = replace(SIZES, dtype=np.dtype(np.float32))
    plans = [make_plan(Machine((2, 0, 10**12)), one, [COST], measure=True) for one in (SIZES, narrow)]
    assert plans[0].solve_seconds == pytest.approx(5e6 / 0.4e6)
    assert plans[1].solve_seconds == pytest.approx(2 * plans[0].solve_seconds)
    assert plans[1].iteration_seconds is None


def test_blocks_of_nothing():
    """At least one thread has work."""
    assert memory.blocks_of(replace(SIZES, rows=0), COST) == 1
    assert memory.blocks_of(replace(SIZES, rows=5), replace(COST, rows_wanted=0)) == 5
    assert memory.blocks_of(replace(SIZES, rows=200), COST) == 2
    assert memory.blocks_of(replace(SIZES, rows=201), COST) == 3


def test_a_plan_adds_up_what_is_stated():
    """Each pass by hand: threads with a block, tiles and two sums; parameters; six held sums, or one larger one."""
    large = Cost("a", 300, 22, columns=7, row_bytes=24, thread_bytes=5000, sums_bytes=70_000, parameter_bytes=11)
    small = Cost("b", 500, columns=21, thread_bytes=900_000, sparse_bytes=3, sums_bytes=16, parameter_bytes=13)
    lazy = replace(SIZES, is_lazy=True, row_bytes=28)
    first = OVERHEAD + 4 * (300 * (2 * 28 + 2 * 56 + 24) + 5000 + 2 * 70_000) + 11 + HELD * 70_000
    other = OVERHEAD + 2 * (500 * (2 * 28 + 2 * 4 * 56) + 900_000 + 2 * 16) + 13 + HELD * 16 + (70_000 - 16)
    assert pass_bytes(lazy, [large, small], large, 16) == first
    assert pass_bytes(lazy, [large, small], small, 16) == other
    sparse = replace(SIZES, inputs=70, row_bytes=26)
    row = 2 * 4 * 2 * 26
    found = pass_bytes(sparse, [small], replace(small, columns=210), 1)
    assert found == OVERHEAD + 500 * row + 900_000 + 3 + 2 * 16 + 13 + HELD * 16
    plan = make_plan(Machine((16, 1000, 10**12)), lazy, [large, small])
    assert plan.worker_bytes == 1000 + max(first, other)


def test_the_worst_solve_and_the_time_of_an_iteration():
    """Sums and what the solver takes, of one pass; solves that are made once, and passes that are made again."""
    once = replace(COST, sums_bytes=10**6)
    again = Cost("a", 1000, flops=500.0, cosines=3.0, sums_bytes=10, solve=SolveCost(4 * 10**6, 2e6)).again()
    last = Cost("b", 500, flops=100.0, solve=SolveCost(0, 1e6))
    plan = make_plan(Machine((8, 0, 10**12)), SIZES, [once, again, replace(again, solve=SolveCost()), last], True)
    assert plan.solve_bytes == OVERHEAD + 10 + 4 * 10**6
    assert plan.seconds == pytest.approx(1000 * (1234 / 1e6 + 22 * 1e-3) / 8)
    assert plan.solve_seconds == pytest.approx((5e6 + 1e6) / 0.4e6)
    assert plan.iteration_seconds == pytest.approx(2 * 1000 * (500 / 1e6 + 3e-3) + 2e6 / 0.4e6)
    assert (plan.flops, plan.bytes_read) == (1_234_000, 56_000)
    passes = 1000 * (1234 / 1e6 + 22 * 1e-3) / 8 + 1000 * 100 / 1e6 / 2
    assert plan.total_seconds == pytest.approx(passes + (5e6 + 1e6) / 0.4e6)
    assert (plan.passes, plan.learns) == (2, True)


def test_passes_are_counted():
    """A pass that a fit makes 80 times costs that often, with its solve; what is made once is counted once."""
    once, step = replace(COST, solve=SolveCost(0, 3e9)), Cost("b", 1000, flops=100.0, solve=SolveCost(0, 1e5)).made(80)
    plan = make_plan(Machine((1, 0, 10**12)), SIZES, [step, once], True)
    assert plan.iteration_seconds is None
    assert plan.seconds == pytest.approx(0.1)
    assert plan.solve_seconds == pytest.approx((3e9 + 80 * 1e5) / 0.4e6)
    assert plan.total_seconds == pytest.approx(80 * 0.1 + 1000 * (1234 / 1e6 + 22e-3) / 8 + plan.solve_seconds)
    assert plan.passes == 81
    text = str(plan)
    assert "passes  about 81" in text
    assert "time of the solves  about 2 hours" in text
    assert "time to learn" not in text
    assert re.search(r"time in all +about 2 hours$", text)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2**17, "128.0 KiB"),
        (2**18, "0.2 MiB"),
        (3 * 2**20, "3.0 MiB"),
        (2**27 - 2**20, "127.0 MiB"),
        (2**27, "0.12 GiB"),
    ],
)
def test_bytes_for_a_person(number, text):
    """KiB, MiB or GiB."""
    assert gib(number) == text


def test_estimates_of_nothing():
    """What takes no time is not said to the microsecond."""
    assert about(1.6e-6) == "less than 0.01 s"
    assert about(100.0) == "about 100 s"


@pytest.mark.parametrize(
    ("number", "text"),
    [(20.0, "20"), (999_000.0, "999,000"), (1.234e6, "1.2 million"), (4.26e11, "430 billion"), (2.3e13, "23 trillion"),
     (5.04e18, "5,000 quadrillion")],
)  # fmt: skip
def test_flops_for_a_person(number, text):
    """Two digits and a word."""
    assert large(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.012, "0.012 s"),
        (9.96, "10 s"),
        (119, "119 s"),
        (120, "2 minutes"),
        (7199, "120 minutes"),
        (7200, "2 hours"),
        (1e7, "2,778 hours"),
    ],
)
def test_seconds_for_a_person(seconds, text):
    """Seconds, minutes or hours."""
    assert duration(seconds) == text


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
        "   flops per pass  1.2 million",
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
    plain = replace(PLAN, sizes=replace(SIZES, outputs=0))
    assert plain._model() == "22 features"
    assert replace(plain, cost=replace(COST, features=1))._model() == "1 feature"
    assert replace(plain, cost=replace(COST, features=7, maps=2))._model() == "7 features of 2 channels"
    assert (count(0, "fold"), count(2000, "fold")) == ("0 folds", "2,000 folds")


def test_tightness_and_refusal():
    """The larger of both shares, which may be all of it; a limit of zero divides nothing."""
    full = replace(PLAN, worker_limit=PLAN.worker_bytes, solve_limit=PLAN.solve_bytes)
    assert full.fits
    full.check()
    for short in (replace(full, worker_limit=full.worker_bytes - 1), replace(full, solve_limit=full.solve_bytes - 1)):
        assert not short.fits
        assert "does NOT fit" in str(short)
    assert PLAN.tightness == 5 / 8
    assert replace(PLAN, worker_limit=2**20).tightness == 3
    assert replace(PLAN, worker_limit=0, solve_limit=0).tightness == 5 * 2**30
    PLAN.check()
    with pytest.raises(MemoryError, match=r"use solver='cg' \(needs 1 B\), fewer components \(now 22\) or smaller"):
        replace(PLAN, worker_limit=2**20, instead="solver='cg' (needs 1 B)").check()
    one = "use fewer components (now 22) or smaller blocks (now 100 rows: rechunk X)"
    with pytest.raises(MemoryError) as caught:
        replace(PLAN, worker_limit=2**20).check()
    assert str(caught.value) == f"a worker would need 3.0 MiB but may use 1.0 MiB; {one}"
    with pytest.raises(MemoryError) as caught:
        replace(PLAN, solve_limit=2**30).check()
    assert str(caught.value) == f"the solve would need 5.00 GiB but may use 1.00 GiB; {one}"
    here = replace(PLAN, engine="embedded", cost=replace(COST, folds=2))
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
    monkeypatch.setattr(memory, "MEASURE_SECONDS", 20.0)
    # looks: begin 0, loop 1; start 3, middle 6, end 10; loop 15; start 21, middle 28, end 36; loop 45 ends it
    rate, cosine = memory.measured_speed("float32")
    assert rate == pytest.approx(np.median([2 * 1024 * 512 * 512 / 3, 2 * 1024 * 512 * 512 / 7]))
    assert cosine == pytest.approx(np.median([4 / (1024 * 512), 8 / (1024 * 512)]))
