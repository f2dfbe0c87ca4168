"""Every program of a pass (found as in test_costs.py): sums merged in any order, of any cut into tasks, are the same.

A new program is tested by being there, and by its example in test_costs.py. Oracles: one task that takes all blocks in
order, and of what can be counted by hand the count.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from dkl.sums.top import TopScores
from tests.contracts.test_costs import EXAMPLES, N, programs

ROWS, BLOCK = 2000, 223
BLOCKS = [(start, min(start + BLOCK, ROWS)) for start in range(0, ROWS, BLOCK)]
BAD = 400, 800
"""Rows that no program takes."""


def bits(value: Any) -> Any:
    """Everything in a record of sums, bit for bit."""
    if hasattr(value, "tree"):
        return bits(value.tree.total()), value.refusal
    if isinstance(value, TopScores):  # which are in no order
        return value.rows, np.sort(value.scores, axis=1).tobytes()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: bits(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    return {name: bits(one) for name, one in vars(value).items()} if hasattr(value, "__dict__") else value


def summed(program: Any, data: tuple, blocks: list[int]) -> Any:
    """What one task adds up, in the order of its blocks."""
    sums, space = program.start(), program.workspace()
    for block in blocks:
        start, stop = BLOCKS[block]
        program.add(sums, space, block, start, tuple(None if part is None else part[start:stop] for part in data))
    return sums


def merged(parts: list[Any], order: Any) -> Any:
    """The sums of several tasks, merged in some order."""
    total = parts[order[0]].copy()
    for number in order[1:]:
        total.merge(parts[number])
    return total


def cuts(count: int) -> dict[str, list[list[int]]]:
    """Ways to deal out blocks to tasks."""
    rng, every = np.random.default_rng(0), list(range(count))
    owner = rng.integers(0, 4, count)
    return {
        "each alone": [[block] for block in every],
        "pairs": [every[i : i + 2] for i in range(0, count, 2)],
        "one long, one short": [every[:-1], every[-1:]],
        "as threads take them": [list(rng.permutation(np.flatnonzero(owner == k))) for k in range(4)],
    }


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", EXAMPLES)
def test_any_order_and_any_cut(name: str, dtype: Any) -> None:
    """The same bits, whoever added what to what."""
    make, data = EXAMPLES[name]
    program = make(dtype)
    right = bits(summed(program, data, list(range(len(BLOCKS)))))
    for cut, tasks in cuts(len(BLOCKS)).items():
        parts = [summed(program, data, task) for task in tasks]
        for order in (range(len(tasks)), range(len(tasks))[::-1], np.random.default_rng(1).permutation(len(tasks))):
            assert bits(merged(parts, order)) == right, (cut, list(order))


@pytest.mark.parametrize("name", EXAMPLES)
def test_copies_and_travel(name: str) -> None:
    """A copy can be added to without its original; programs and sums travel by pickle, to the same bits."""
    make, data = EXAMPLES[name]
    program = make(np.float64)
    sums = summed(program, data, [0, 1])
    before = bits(sums)
    copy = sums.copy()
    assert bits(copy) == before
    copy.merge(summed(program, data, [2, 3]))
    assert bits(copy) != before
    assert bits(sums) == before
    arrived = pickle.loads(pickle.dumps(program))
    assert bits(summed(arrived, data, [0, 1])) == before
    assert bits(pickle.loads(pickle.dumps(sums))) == before


UNCHECKED = {name for name in EXAMPLES if name in ("labels", "counts") or name.startswith("networks")}
"""Programs whose first column can hold anything, or was checked when it was prepared."""


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in UNCHECKED])
def test_the_first_bad_row_is_named(name: str) -> None:
    """Of several refused rows the first counts, in whatever order blocks come."""
    make, data = EXAMPLES[name]
    program = make(np.float64)
    first = np.array(data[0], dtype=float)
    first[list(BAD)] = np.nan
    data = (first, *data[1:])
    parts = [summed(program, data, [block]) for block in range(5)]
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]):
        row, said = merged(parts, order).refusal
        assert row == BAD[0]
        assert str(BAD[0]) in said


def test_every_program_is_swept() -> None:
    """Those that the examples make are those that there are."""
    made = {type(make(np.float64)) for make, _ in EXAMPLES.values()}
    assert set(programs()) <= made
    assert len(BLOCKS) > 8
    assert ROWS <= N
