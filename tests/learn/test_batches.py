"""Pieces and steps of an epoch: every row once, an order that the seed gives, and as many rows as were asked for."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.batches import PIECE, TOGETHER, Batches, default_batch, shelf_rows


def shelves_of(n: int, most: int) -> tuple[tuple[int, int], ...]:
    """Even ranges."""
    count = -(-n // most)
    return tuple((i * n // count, (i + 1) * n // count) for i in range(count))


def rows_of(batches: Batches, epoch: int) -> list[np.ndarray]:
    """The rows of each step."""
    steps = []
    for pieces in batches.epoch(epoch):
        rows = []
        for piece in pieces:
            start, stop = batches.shelves[piece.shelf]
            rows.append(np.arange(start, stop)[piece.rows(stop - start)])
        steps.append(np.concatenate(rows))
    return steps


@pytest.mark.parametrize(
    ("n", "most", "batch"), [(345, 8192, 32), (5000, 700, 256), (30_000, 900, 3000), (700, 512, 700)]
)
def test_an_epoch_has_every_row_once(n: int, most: int, batch: int) -> None:
    """In steps of about the batch, each in another order than in the epoch before."""
    batches = Batches(shelves_of(n, most), batch, 7)
    first, second = rows_of(batches, 0), rows_of(batches, 1)
    for steps in (first, second):
        np.testing.assert_array_equal(np.sort(np.concatenate(steps)), np.arange(n))
        sizes = np.array([len(step) for step in steps])
        assert len(steps) == batches.steps
        assert sizes.max() <= 1.3 * batch + 1
        assert max(piece.of for step in batches.epoch(0) for piece in step) >= max(1, most // (2 * PIECE)) or n < most
    if len(first) > 1:
        assert any(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))
        np.testing.assert_array_equal(np.concatenate(first), np.concatenate(rows_of(batches, 0)))
        other = Batches(batches.shelves, batch, 8)
        assert not np.array_equal(np.concatenate(first), np.concatenate(rows_of(other, 0)))


def test_sorted_classes_are_mixed() -> None:
    """Rows in the order of their class: a step has all classes, as it takes rows of several shelves at once."""
    n = 40_000
    codes = np.repeat(np.arange(4), n // 4)
    steps = rows_of(Batches(shelves_of(n, 5000), 2048, 0), 0)
    shares = np.array([np.bincount(codes[rows], minlength=4) / len(rows) for rows in steps])
    assert ((shares > 0).sum(axis=1) >= 2).all()
    assert (shares.max(axis=1) < 0.95).all()


def test_few_shelves_are_needed_at_a_time() -> None:
    """An epoch reads each shelf in one stretch of its steps, so that rows that do not stay are read once."""
    batches = Batches(shelves_of(90_000, 1000), 1500, 3)
    steps = batches.epoch(0)
    last = {piece.shelf: i for i, pieces in enumerate(steps) for piece in pieces}
    first = {piece.shelf: i for i, pieces in reversed(list(enumerate(steps))) for piece in pieces}
    for i in range(len(steps)):
        assert sum(first[shelf] <= i <= last[shelf] for shelf in last) <= 2 * TOGETHER


def test_held_out_pieces_and_shares() -> None:
    """A share that does not train makes fewer pieces, and the rest has pieces of its own."""
    batches = Batches(shelves_of(10_000, 5000), 512, 0, share=0.8)
    assert [batches.pieces_of(0), batches.pieces_of(1)] == [8, 8]
    held = batches.held_out()
    assert {(piece.shelf, piece.set) for piece in held} == {(0, 1), (1, 1)}
    assert len(held) == 4


def test_sizes_by_rows_and_columns() -> None:
    """Powers of two near a 64th of the rows; shelves of about two million numbers."""
    assert [default_batch(n) for n in (10, 345, 50_000, 581_012, 10**8)] == [32, 32, 1024, 8192, 8192]
    assert [shelf_rows(m) for m in (1, 54, 784, 10**6)] == [8192, 8192, 2674, 512]
