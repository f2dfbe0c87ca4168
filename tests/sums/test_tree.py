"""Tree sums: the same bits for any arrival order and any grouping."""

import functools
import math
import operator

import numpy as np
import pytest

from dkl.features.rows import Refusal
from dkl.sums.tree import RunningSum, TreeProgram, TreeSum, TreeTotal


def bits(tree):
    return np.float64(tree.total()).tobytes()


def draw(count, rng):
    return (rng.normal(size=count) * 10.0 ** rng.integers(-8, 8, count)).tolist()


def gather(values, blocks):
    tree = TreeSum()
    for block in blocks:
        tree.add(int(block), values[block])
    return tree


@pytest.mark.parametrize("count", range(1, 71))
def test_arrival_and_grouping_do_not_change_the_bits(count):
    """Blocks in random orders, spread over random partial trees merged in random order."""
    rng = np.random.default_rng(count)
    values = draw(count, rng)
    expected = bits(gather(values, range(count)))
    for _ in range(10):
        order = rng.permutation(count)
        assert bits(gather(values, order)) == expected
        groups = np.split(order, np.sort(rng.integers(0, count + 1, rng.integers(0, 6))))
        total = TreeSum()
        for group in groups:
            total.merge(gather(values, group))
        assert bits(total) == expected


@pytest.mark.parametrize("count", [2, 7, 26])
def test_left_half_comes_first(count):
    """Records whose + is not commutative, as letters, are put together in the order of the blocks."""
    letters = "abcdefghijklmnopqrstuvwxyz"[:count]
    for seed in range(20):
        left, right = np.array_split(np.random.default_rng(seed).permutation(count), 2)
        tree = gather(letters, left)
        tree.merge(gather(letters, right))
        assert tree.total() == letters


@pytest.mark.parametrize("count", [1, 2, 3, 8, 33, 70])
def test_total_is_the_sum(count):
    """Equal to math.fsum up to rounding of the sum of sizes."""
    values = draw(count, np.random.default_rng(count))
    total = gather(values, range(count)).total()
    assert abs(total - math.fsum(values)) <= 1e-12 * math.fsum(map(abs, values))


def test_plain_sums_do_depend_on_the_order():
    """The data above would show a tree that adds as blocks arrive (from Python 3.12 on, `sum` itself compensates)."""
    values = draw(70, np.random.default_rng(70))
    orders = (np.random.default_rng(i).permutation(70) for i in range(5))
    assert len({functools.reduce(operator.add, [values[i] for i in order]) for order in orders}) > 1


def test_complete_subtrees_are_kept_small():
    """64 blocks in any order are one node at the end; 70 blocks are the binary digits of 70."""
    values = draw(70, np.random.default_rng(0))
    assert len(gather(values, np.random.default_rng(1).permutation(64)).nodes) == 1
    assert len(gather(values, np.random.default_rng(2).permutation(70)).nodes) == 3


class SumOfRows(TreeProgram):
    rows_wanted = 10

    def value(self, data):
        bad = np.flatnonzero(data[0] < 0)
        if len(bad):
            raise Refusal(int(bad[0]), "negative at row {row}")
        return float(data[0].sum())


def test_program_adds_blocks_piece_by_piece():
    """Blocks longer than rows_wanted, an empty one, and a copy that does not share its nodes."""
    program, x = SumOfRows(), np.arange(35.0)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (x[:25],))
    before = sums.copy()
    program.add(sums, None, 1, 25, (x[25:],))
    program.add(sums, None, 2, 35, (x[:0],))
    assert (before.tree.total(), sums.tree.total()) == (x[:25].sum(), x.sum())


def test_first_refused_row_wins():
    """The row is counted from the start of the data; of two refusals the earlier one stays, whatever the order."""
    program, x = SumOfRows(), np.ones(25)
    x[[17, 23]] = -1
    late, early = TreeTotal(), TreeTotal()
    program.add(late, None, 7, 700, (x,))
    program.add(early, None, 1, 100, (x,))
    assert late.refusal == (717, "negative at row 717")
    for a, b in ((late, early), (early, late)):
        merged = a.copy()
        merged.merge(b)
        assert merged.refusal == (117, "negative at row 117")


def test_base_program_says_what_is_missing():
    """A subclass that forgot `value` is named."""
    with pytest.raises(TypeError, match="TreeProgram does not say what a block is worth"):
        TreeProgram().value((np.ones(3),))


def test_rows_that_are_looked_at_together():
    """They decide what is added to what, and so the last bits of a sum; every program is called something."""
    assert TreeProgram.rows_wanted == 8192
    program = SumOfRows()
    program.rows_wanted = 4
    sums, plain = program.start(), np.arange(11.0) / 7
    program.add(sums, None, 0, 0, (plain,))
    assert sums.tree.total() == float(plain[:4].sum()) + float(plain[4:8].sum()) + float(plain[8:].sum())


def test_what_overflows_is_quiet():
    """Infinite sums are refused when they are looked at, without a warning before."""
    program = SumOfRows()
    sums = program.start()
    for block in range(3):
        program.add(sums, None, block, 0, (np.full(30, 1e308),))
    assert sums.tree.total() == np.inf


def test_a_running_sum():
    """One value; nothing plus something is that."""
    one, two = RunningSum(), RunningSum()
    assert one.total() is None
    one.merge(two)
    assert one.value is None
    one.add(5, "a")
    two.merge(one)
    kept = two.copy()
    two.add(0, "b")
    one.merge(two)
    assert (one.total(), two.total(), kept.total()) == ("aab", "ab", "a")
