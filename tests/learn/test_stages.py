"""Blocks of stages and of turns, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.tables import Table
from dkl.learn.stages import (
    FEW_BLOCKS,
    FEW_ROWS,
    GROWTH,
    ROWS_PER_FEATURE,
    blocks_of_step,
    ladder,
    small_enough,
    spread_blocks,
)


def rows_of(n):
    return Rows([Table("memory", np.zeros((n, 1), np.int8))], ["X"])


def test_constants():
    """Ten thousand rows in eight blocks at least, ten rows for each feature, four times as many each time."""
    assert (FEW_ROWS, FEW_BLOCKS, ROWS_PER_FEATURE, GROWTH) == (10_000, 8, 10, 4)


@pytest.mark.parametrize(
    ("count", "order"),
    [(1, [0]), (2, [0, 1]), (3, [0, 2, 1]), (4, [0, 2, 1, 3]), (5, [0, 4, 2, 1, 3]), (8, [0, 4, 2, 6, 1, 5, 3, 7])],
)
def test_order(count, order):
    """Bits reversed."""
    assert spread_blocks(count).tolist() == order


@pytest.mark.parametrize(
    ("share", "size"), [(None, 500), (1.0, 500), (0.5, 500), (0.4, 500), (0.1, 125), (0.01, 12), (0.0001, 1)]
)
def test_small_enough(share, size):
    """An eighth of the share at most, one row at least."""
    assert small_enough(rows_of(10_000), 500, share) == size


def blocks_of(n, block):
    return [(i, min(i + block, n)) for i in range(0, n, block)]


@pytest.mark.parametrize(
    ("n", "block", "features", "share", "counts"),
    [
        (40_000, 1_000, 10, 1.0, [10, 40]),
        (40_000, 1_000, 10, 0.5, [10, 20]),
        (40_000, 1_000, 10, 0.475, [19]),
        (19_000, 1_000, 10, 1.0, [19]),
        (20_000, 1_000, 10, 1.0, [10, 20]),
        (40_000, 1_000, 1_001, 1.0, [11, 40]),
        (640_000, 2_000, 10, 1.0, [8, 32, 128, 320]),
        (5_000, 1_000, 10, 0.1, [5]),
    ],
)
def test_ladder(n, block, features, share, counts):
    """Stages while the next would be at least twice as long, then the share."""
    blocks = blocks_of(n, block)
    stages = ladder(rows_of(n), blocks, features, share)
    assert [len(stage) for stage in stages] == counts
    for stage, count in zip(stages, counts, strict=True):
        assert stage == [blocks[i] for i in sorted(spread_blocks(len(blocks))[:count])]


@pytest.mark.parametrize(
    ("n", "features", "share", "size", "count"),
    [
        (100_000, 10, None, 1_250, 8),
        (100_000, 2_000, None, 2_500, 8),
        (100_000, 10, 0.2, 1_250, 16),
        (100_000, 10, 0.01, 125, 8),
        (12_500, 10, None, 1_250, 8),
    ],
)
@pytest.mark.parametrize("number", [0, 1, 5])
@pytest.mark.parametrize("grown", [0, 1])
def test_turns(n, features, share, size, count, number, grown):
    """Consecutive pieces of the spread order, round and round; each fold that was missed doubles them."""
    rows = rows_of(n)
    blocks = rows.blocks(size)
    every = len(blocks)
    count = min(every, count * 2**grown)
    order = spread_blocks(every)
    expected = sorted(int(order[(number * count + i) % every]) for i in range(count))
    assert blocks_of_step(rows, features, share, number, grown) == [blocks[i] for i in expected]
