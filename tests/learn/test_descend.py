"""Which blocks a stage takes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.tables import Table
from dkl.learn.descend import ladder, spread_blocks


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
        (100_000, 1_000, 100, 0.001, [1]),
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
