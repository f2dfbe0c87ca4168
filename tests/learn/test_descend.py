"""Which blocks a stage takes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.tables import Table
from dkl.learn.stages import ladder, spread_blocks, turn


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 64, 1000])
def test_every_beginning_is_spread(count):
    """A permutation; its first k members lie at most two strides of n / k apart."""
    order = spread_blocks(count)
    assert sorted(order) == list(range(count))
    for k in (1, 2, 5, 17, 200):
        if k <= count // 2:
            gaps = np.diff([0, *np.sort(order[:k]), count])
            assert gaps.max() <= 2 * 2 ** np.ceil(np.log2(count / k))


def rows_of(n):
    return Rows([Table("memory", np.zeros((n, 1), np.int8))], ["X"])


@pytest.mark.parametrize(
    ("n", "block", "features", "share", "expected"),
    [
        (5_000, 500, 100, 1.0, [10]),  # fewer rows than a first stage wants
        (100_000, 1_000, 100, 1.0, [10, 40, 100]),
        (100_000, 1_000, 5_000, 1.0, [50, 100]),  # ten rows for each feature
        (100_000, 1_000, 100, 0.5, [10, 50]),
        (100_000, 1_000, 100, 0.001, [8]),
        (1_000_000, 10_000, 100, 1.0, [8, 32, 100]),  # eight blocks at least
    ],
)
def test_stages(n, block, features, share, expected):
    """Blocks of each stage: nested, in order, ending with the share."""
    blocks = [(i, min(i + block, n)) for i in range(0, n, block)]
    stages = ladder(rows_of(n), blocks, features, share)
    assert [len(stage) for stage in stages] == expected
    for small, large in pairwise(stages):
        assert set(small) <= set(large)
    for stage in stages:
        assert stage == sorted(stage)


@pytest.mark.parametrize(
    ("n", "features", "share", "expected"),
    [
        (5_000, 100, None, 5_000),  # fewer rows than an iteration wants
        (100_000, 100, None, 10_000),
        (3_000_000, 100, None, 10_000),
        (100_000, 5_000, None, 50_000),  # ten rows for each feature
        (100_000, 100, 0.5, 50_000),
        (100_000, 100, 1.0, 100_000),
    ],
)
def test_turns(n, features, share, expected):
    """So many rows in every iteration, spread over the data; all have their turn; a fold that is missed doubles."""
    rows, seen, before = rows_of(n), set(), None
    most = -(-n // expected) + 1
    for number in range(min(most, 30)):
        blocks = turn(rows, features, share, number, 0)
        count = sum(stop - start for start, stop in blocks)
        assert abs(count - expected) <= 0.02 * n
        assert blocks == sorted(set(blocks))
        if share is None and n > expected:
            assert max(np.diff([0, *(start for start, _ in blocks), n])) <= n / 2
            assert blocks != before
        before, seen = blocks, seen | set(blocks)
    if most <= 30:
        assert sum(stop - start for start, stop in seen) == n
    twice = sum(stop - start for start, stop in turn(rows, features, share, 0, 1))
    assert twice == min(n, twice)
    assert twice >= min(n, 1.9 * expected)
