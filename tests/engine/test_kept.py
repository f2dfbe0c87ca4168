"""Rows kept between passes: read once if they fit, read again if they do not, the same sums either way."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import dask.array as da
import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.kept import LEAST_SHELVES, KeptRows, Piece, shelves_that_fit
from dkl.engine.progress import Progress
from dkl.engine.tables import open_table
from dkl.sums.tree import TreeProgram

N, MOST = 1000, 90
X = np.random.default_rng(0).normal(size=(N, 3))


@dataclass(frozen=True)
class Halves:
    """Even and odd rows apart; it counts what it is given."""

    seen: list[int] = field(default_factory=list)

    def prepared(self, start: int, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
        """Their arrays, and the numbers of the rows."""
        self.seen.append(start)
        (rows,) = data
        number = np.arange(start, start + len(rows))
        return tuple((np.asarray(rows)[number % 2 == k], number[number % 2 == k]) for k in (0, 1))


class Numbers(TreeProgram[np.ndarray]):
    """Which rows came, and their sum."""

    def value(self, data: tuple[Any, ...]) -> np.ndarray:
        """Counts by number, then the columns."""
        rows, number = data
        return np.concatenate([np.bincount(number, minlength=N), rows.sum(axis=0)])


def pieces_of(shelves: Any, kept_set: int = 0, of: int = 3) -> list[Piece]:
    """All pieces of one set."""
    return [Piece(shelf, kept_set, j, of, (5,)) for shelf in range(len(shelves)) for j in range(of)]


def held(most: int, rows: Any = X) -> tuple[KeptRows, Halves]:
    """Rows of which so many shelves stay."""
    table = Rows([open_table(rows)], ["X"])
    halves = Halves()
    return KeptRows(table, table.even_blocks(MOST), halves, most), halves


def total(kept: KeptRows, threads: int, **how: Any) -> np.ndarray:
    """The sums of a pass."""
    engine = Embedded(threads)
    sums: Any = engine.sum(Numbers(), kept, Progress(0), pieces_of(kept.ranges, **how))
    return sums.tree.total()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [X, da.from_array(X, chunks=(70, -1))], ids=["memory", "dask"])
def test_each_row_of_a_set_once(rows: Any, threads: int) -> None:
    """In pieces of shuffled rows; the other set apart."""
    kept, _ = held(100, rows)
    for one in (0, 1):
        found = total(kept, threads, kept_set=one)
        np.testing.assert_array_equal(found[:N], np.arange(N) % 2 == one)
        np.testing.assert_allclose(found[N:], X[one::2].sum(axis=0), rtol=1e-12)


def test_shelves_are_read_once_if_they_stay() -> None:
    """And again and again if they do not; the bits are the same."""
    stay, seen = held(100)
    go, again = held(2)
    assert (stay.stays, go.stays) == (True, False)
    for _ in range(3):
        assert total(stay, 1).tobytes() == total(go, 1).tobytes()
    assert sorted(seen.seen) == [start for start, _ in stay.ranges]
    assert len(again.seen) > 2 * len(stay.ranges)
    assert len(go.found) <= 2


def test_threads_that_want_the_same_shelf_read_it_once() -> None:
    """The others wait for the first."""
    kept, halves = held(100)
    gate = threading.Barrier(4)
    part = kept.parts([Piece(0, 0, 0, 1)], 1)[0]

    def ask() -> Any:
        gate.wait()
        return kept.values_of(part)[0]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ask(), range(4)))
    assert all(one is found[0] for one in found)
    assert halves.seen == [0]


def test_how_many_stay() -> None:
    """All that fit in half of what is free, and no fewer than are shuffled among each other."""
    assert shelves_that_fit(100, 1000, 10**6) == 100
    assert shelves_that_fit(100, 10**5, 10**7) == 50
    assert shelves_that_fit(100, 10**9, 10**6) == LEAST_SHELVES
    assert shelves_that_fit(3, 10**9, 10**6) == 3


def test_pieces_travel_and_part_the_rows() -> None:
    """A piece is a few numbers; pieces of one seed part the rows, in the order of the data without a seed."""
    piece = Piece(4, 0, 1, 3, (7, 2))
    assert pickle.loads(pickle.dumps(piece)) == piece
    rows = [Piece(4, 0, j, 3, (7, 2)).rows(50) for j in range(3)]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(50))
    assert Piece(4, 0, 1, 2).rows(50) == slice(25, 50)
    assert not np.array_equal(Piece(3, 0, 0, 1, (7, 2)).rows(50), Piece(4, 0, 0, 1, (7, 2)).rows(50))


def test_a_row_that_cannot_be_taken_is_named() -> None:
    """By its number among all rows, not within its shelf."""
    bad = X.copy()
    bad[700, 1] = np.nan
    import dkl

    y = (X[:, 0] > 0).astype(int)
    lazy = da.from_array(bad, chunks=(100, -1))
    with pytest.raises(ValueError, match="row 700, column 1"):
        dkl.ContinuousKernelClassifier(n_components=5, verbose=0, random_state=0).fit(lazy, y)
