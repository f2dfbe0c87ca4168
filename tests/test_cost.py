"""Bytes and flops of a fit against a ledger: every array that is alive, by shape and item size."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from dkl.engine.shape import OVERHEAD, STATE, SWEEP, TRIALS, Shape

from dkl.engine.memory import _parallel, duration, gib, make_plan
from dkl.features.projected import TILE as PROJECTED
from dkl.kernels.values import TILE as VALUES
from dkl.learn import log_loss
from dkl.sums.pullback import TILE
from dkl.sums.symmetric import LEAF, largest_tile, packed_size
from dkl.sums.top import ROWS

PLAIN = Shape(1009, 7, 22, 3, 101, 53, False, np.dtype(np.float64), 7 * 8, outputs=5)
NARROW = replace(PLAIN, dtype=np.dtype(np.float32), is_lazy=True, paired=True)
SPARSE = replace(NARROW, inputs=70, row_bytes=26, is_class=True, terms=3)
SHAPES = {
    "plain": PLAIN,
    "narrow": NARROW,
    "sparse": SPARSE,
    "alphas": replace(PLAIN, alphas=13, reduced=True),
    "one fold": replace(PLAIN, alphas=13, reduced=True, folds=1),
    "many folds": replace(PLAIN, folds=11),
    "wide": replace(NARROW, features=1030),
    "odd": replace(NARROW, features=23, objective="cv"),
    "terms": replace(PLAIN, terms=3),
    "channels": replace(PLAIN, outputs=0, folds=1, widths=(22, 17, 30)),
    "kept": replace(PLAIN, kept=37),
    "much kept": replace(PLAIN, kept=4001),
    "beneath": replace(PLAIN, beneath=92, paired=True),
    "beneath narrow": replace(NARROW, beneath=92),
    "landmarks": replace(PLAIN, landmarks=31, drawn=False),
    "swept": replace(PLAIN, landmarks=31, drawn=False, swept=True, outputs=0, folds=1),
    **{f"{name} wide": replace(PLAIN, objective=name) for name in ("validation", "cv", "joint", "gcv", "log_loss")},
    **{f"{name} narrow": replace(NARROW, objective=name) for name in ("cv", "gcv", "log_loss")},
    "frequencies": replace(NARROW, objective="cv", by_frequency=True),
}


def held(*arrays):
    """Bytes of arrays, each (item size, *shape)."""
    return sum(prod(array) for array in arrays)


def one_row(s):
    """Bytes of a row as computed with: values and indices of a sparse one; its terms beside it."""
    sparse = s.row_bytes < s.inputs
    row = held((s.row_bytes,), (s.row_bytes,)) if sparse else held((s.dtype.itemsize, s.inputs))
    return row + (0 if s.terms == 1 else s.terms * row)


def waves(s):
    """(frequencies, columns of t(X))."""
    of = s.beneath if s.beneath else s.features
    return (0 if not s.drawn else of // 2 if s.paired else of), s.inputs * s.terms


def systems(s):
    """Ridge systems of learning."""
    return {None: 0, "cv": s.folds, "log_loss": s.folds}.get(s.objective, 1)


def sums(s):
    """Grams of all channels and folds; what calibration keeps; landmarks with their keys and numbers."""
    grams = [(8, s.folds, packed_size(d) + d * s.outputs + d) for d in (s.widths or (s.features,))]
    return max(held(*grams), held((8, s.kept, s.outputs)), held((8, s.landmarks, s.inputs), (8, s.landmarks, 2)))


def second_pass(s):
    """Features, cotangents, cosines of the phase form, six factors; curvature of gcv; omega and its sums twice."""
    if s.objective is None:
        return 0
    item, d, (frequencies, columns) = s.dtype.itemsize, s.features, waves(s)
    tile = held((item, TILE, d), (item, TILE, d), (6 * item, TILE, systems(s) * s.outputs))
    tile += 0 if s.paired else held((item, TILE, d))
    tile += held((item, TILE, d), (item, TILE, d)) if s.objective == "gcv" else 0
    return tile + held((item, columns, frequencies), (16, columns, frequencies), (16, columns, frequencies))


def pass_of_scores(s):
    """Features twice, scores and losses of all trials, six numbers of a class; slopes of every fold, exact."""
    if s.objective != "log_loss":
        return 0
    item, d, c = s.dtype.itemsize, s.features, s.outputs
    tile = held((item, TILE, d), (item, TILE, d), (item, TILE, TRIALS, c), (16, TILE, TRIALS, c), (48, TILE, c))
    return tile + held((16, s.folds, c, d), (16, s.folds, c))


def calibration(s):
    """Features of a tile, its scores and the kept ones, with their sorted copies."""
    item, c = s.dtype.itemsize, s.outputs
    return held((item, ROWS, s.features), (32, c, ROWS), (32, c, s.kept)) if s.kept else 0


def landmarks(s):
    """Six temporaries of a tile of kernel values, its rows and the landmarks twice, and two samples."""
    many = s.landmarks
    rows = held((16, VALUES, s.inputs), (16, many, s.inputs), (16, many, s.inputs))
    return held((48, VALUES, many)) + rows if many else 0


def thread(s):
    """Blocks as read and cast, targets, tiles, cross, sums; or what learning and calibration take instead."""
    item, d = s.dtype.itemsize, s.features
    block = s.block * (2 * one_row(s) + (2 * s.row_bytes if s.is_lazy else 0))
    block += held((32, s.block) if s.is_class else (24, s.block, s.outputs))
    block += held((8, 1024, s.inputs * s.terms), (16, 1024, s.beneath or d)) if item == 4 else 0
    tile = held((item, s.tile, d), (item, largest_tile(d)), (item, PROJECTED, s.beneath)) + landmarks(s)
    tile += held((item, s.tile, d)) if s.row_bytes < s.inputs else 0
    tile += held((item if s.is_class else item + 16, s.outputs, d))
    return block + max(tile + sums(s), second_pass(s), pass_of_scores(s), calibration(s))


def parameters(s):
    """Frequencies, twice in both precisions; weights and adjoints; trials; axes; landmarks; the curvature of gcv."""
    item, d, c, (frequencies, columns) = s.dtype.itemsize, s.features, s.outputs, waves(s)
    both = 8 + item
    size = held((2 * both, frequencies, columns), (64, c), (2 * both, d, systems(s), c), (both, s.beneath, d))
    size += held((2 * both, s.landmarks, s.inputs), (2 * both, s.landmarks, d))
    if s.objective == "log_loss":
        size += held((both, TRIALS, d, systems(s), c))
    return size + (held((both, d, d)) if s.objective == "gcv" else 0)


def solve(s):
    """Sums; nine matrices and six sets of weights for at most four folds at a time; the systems; grams of channels."""
    d, c, (frequencies, columns) = s.features, s.outputs, waves(s)
    size = OVERHEAD + sums(s) + held((72, min(4, s.folds), d, d), (48, min(4, s.folds), d, c))
    size += held((24, systems(s), d, d), (64, systems(s), d, c))
    if s.objective == "log_loss":
        size += held((8, systems(s), d, d), (16, systems(s), TRIALS, d, c))
    size += held(*((8, width, width) for width in s.widths))
    return size + (held((8, STATE, columns, frequencies)) if s.by_frequency else 0)


def flops(s):
    """A row: projection, half the gram in leaves, ten for a cosine, the cross term, landmarks."""
    d, (frequencies, columns) = s.features, waves(s)
    row = 2 * frequencies * columns + d * d + d * min(LEAF, d) + 10 * d + (d if s.is_class else 2 * s.outputs * d)
    if s.landmarks:
        row += 2 * s.landmarks * d + 2 * s.landmarks * s.inputs * (SWEEP if s.swept else 1)
    return s.rows * row


def solve_flops(s):
    """A third of d^3 and four products for each system: of every fold and alpha that is tried, and the last one."""
    d, tried = s.features, s.folds * s.alphas if s.folds > 1 and s.objective is None else 0
    turns = (s.folds if tried else 1) if s.reduced else 0
    return (1 + tried) * (d**3 / 3 + 4 * s.outputs * d**2) + 9 * turns * d**3


def learning_flops(s):
    """A row: projection there and back, low-rank products, and what gcv or the log loss adds."""
    d, c, (frequencies, columns) = s.features, s.outputs, waves(s)
    row = 4 * columns * frequencies + 8 * systems(s) * c * d + 15 * d
    if s.objective == "gcv":
        row += 2 * d**2
    if s.objective == "log_loss":
        row += 2 * columns * frequencies + 4 * c * d + 10 * d
    return s.rows * row


@pytest.mark.parametrize("name", SHAPES)
def test_every_count_against_the_ledger(name):
    """Threads, parameters, sums, the solve; flops of a pass, of the solve, of learning."""
    s = SHAPES[name]
    assert s.sums_bytes == sums(s)
    assert s.pullback_bytes == second_pass(s)
    assert s.score_bytes == pass_of_scores(s)
    assert s.calibration_bytes == calibration(s)
    assert s.thread_bytes == thread(s)
    assert s.parameter_bytes == parameters(s)
    assert s.solve_bytes == solve(s)
    assert s.flops == flops(s)
    assert s.solve_flops == pytest.approx(solve_flops(s), rel=1e-14)
    assert s.learning_flops == learning_flops(s)
    assert s.bytes_read == s.rows * s.row_bytes


class Machine:
    """What a plan asks of an engine: two workers of four threads, one of them nearly full."""

    name, threads = "cluster", 8

    def resources(self):
        """Used and allowed bytes of each worker."""
        return [{"used": 1000, "limit": 10**12, "threads": 4}, {"used": 5000, "limit": 10**9, "threads": 4}]

    def solve_memory(self):
        """Bytes the scheduler uses, and may use."""
        return 300, 10**8

    def run_once(self, call, dtype):
        """Flops each second, and seconds of a cosine."""
        return 1e6, 1e-3


def test_a_plan_of_the_tightest_worker():
    """Threads beyond the blocks are idle; six finished sums may be held; seconds from the rate of one thread."""
    s = replace(PLAIN, objective="cv", rows=303)
    plan = make_plan(Machine(), s, calibrate=True)
    assert _parallel(s) == 3
    assert _parallel(replace(s, rows=304)) == 4
    assert plan.worker_bytes == 5000 + OVERHEAD + 3 * (thread(s) + sums(s)) + parameters(s) + 6 * sums(s)
    assert (plan.worker_limit, plan.workers, plan.threads) == (10**9, 2, 8)
    assert (plan.solve_bytes, plan.solve_limit) == (300 + solve(s), 10**8)
    cosines = 303 * 22 * 1e-3
    first = (flops(s) / 1e6 + cosines) / 3
    last = solve_flops(s) / 0.4e6
    assert plan.seconds == pytest.approx(first)
    assert plan.solve_seconds == pytest.approx(last)
    again = (learning_flops(s) / 1e6 + 2 * cosines) / 3
    assert plan.iteration_seconds == pytest.approx(first + again + 3 * s.folds * last)
    assert plan.tightness == pytest.approx(plan.solve_bytes / 10**8)
    assert plan.fits
    tight = replace(plan, worker_limit=plan.worker_bytes, solve_limit=plan.solve_bytes)
    assert tight.fits
    tight.check()
    for short in (
        replace(plan, worker_limit=plan.worker_bytes - 1),
        replace(plan, solve_limit=plan.solve_bytes - 1),
    ):
        assert not short.fits
        assert "does NOT fit" in str(short)
        with pytest.raises(MemoryError, match="would need"):
            short.check()


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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.012, "0.012 s"),
        (119, "1.2e+02 s"),
        (120, "2 minutes"),
        (7199, "120 minutes"),
        (7200, "2 hours"),
        (1e7, "2,778 hours"),
    ],
)
def test_seconds_for_a_person(seconds, text):
    """Seconds, minutes or hours."""
    assert duration(seconds) == text


def test_a_shape_that_says_nothing_more():
    """Ridge in the phase form without outputs: everything else is off, and counts once where it is a factor."""
    sizes = (1009, 7, 22, 3, 101, 53, False, np.dtype(np.float64), 56)
    off = {"is_class": False, "paired": False, "by_frequency": False, "reduced": False, "swept": False}
    none = {"outputs": 0, "kept": 0, "beneath": 0, "landmarks": 0, "widths": (), "objective": None}
    assert Shape(*sizes) == Shape(*sizes, **off, **none, alphas=1, terms=1, drawn=True)


def test_no_more_trials_than_are_counted():
    """The longest list of alphas that a pass of scores takes side by side."""
    assert max(map(len, (log_loss.FIRST, log_loss.LATER, log_loss.LAST))) == TRIALS
