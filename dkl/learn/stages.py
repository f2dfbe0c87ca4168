"""Which rows a stage of learning, or one step of it, takes: few first, spread over the data, then ever more.

Blocks here are even blocks (engine/blocks.py): their rows, and so what is learned, do not depend on chunks.
"""

from __future__ import annotations

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.row_readers import Range

GROWTH = 4
"""The share of blocks grows by this factor from stage to stage."""
FEW_ROWS, ROWS_PER_FEATURE, FEW_BLOCKS = 10_000, 10, 8
"""Rows of the first stage, rows for each feature there, and blocks, which are spread over the data, at least."""


def spread_blocks(count: int) -> np.ndarray:
    """Block numbers in an order whose every beginning is spread evenly: indices with their bits reversed."""
    bits = max(1, (count - 1).bit_length())
    order = np.array([int(f"{i:0{bits}b}"[::-1], 2) for i in range(2**bits)])
    return order[order < count]


def small_enough(rows: Rows, wanted: int, share: float | None) -> int:
    """Rows of a block, so that a share of the blocks is still spread over the data."""
    return wanted if share is None or share == 1 else min(wanted, max(1, int(share * rows.n_rows) // FEW_BLOCKS))


def ladder(rows: Rows, blocks: list[Range], features: int, share: float) -> list[list[Range]]:
    """Blocks of each stage: from about ten thousand rows, four times as many from stage to stage, to `share` of all."""
    last = max(min(FEW_BLOCKS, len(blocks)), round(share * len(blocks)))
    wanted = max(FEW_ROWS, ROWS_PER_FEATURE * features)
    count, counts = max(FEW_BLOCKS, -(-wanted * len(blocks) // rows.n_rows)), []
    while 2 * count <= last:
        counts.append(count)
        count *= GROWTH
    order = spread_blocks(len(blocks))
    return [[blocks[i] for i in np.sort(order[:count])] for count in (*counts, last)]


def blocks_of_step(rows: Rows, features: int, share: float | None, number: int, grown: int) -> list[Range]:
    """Blocks of one iteration, others for the next one: about ten thousand rows, or `share` of all, 2^grown times."""
    wanted = max(FEW_ROWS, ROWS_PER_FEATURE * features)
    blocks = rows.even_blocks(small_enough(rows, max(1, wanted // FEW_BLOCKS), share))
    every = len(blocks)
    count = -(-wanted * every // rows.n_rows) if share is None else round(share * every)
    count = min(every, max(FEW_BLOCKS, count) << grown)
    return [blocks[i] for i in np.sort(spread_blocks(every)[(number * count + np.arange(count)) % every])]
