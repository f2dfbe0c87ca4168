"""Records of any shape through a JSON tree and a few arrays, to the last bit; nothing that was not named is built."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from dkl.learn.bandwidth import Descending
from dkl.learn.search import Best, Search
from dkl.solvers.lbfgs import begin, moved
from dkl.store.packed import pack, records_of, unpack

RNG = np.random.default_rng(0)


def some_search(**fields):
    state = begin(RNG.normal(size=3), np.full(3, -9.0), np.full(3, 9.0))
    for value in (3.0, 2.0, 1.5):
        state = moved(state, value, RNG.normal(size=3) * value)
    return Search(state, **fields)


SEARCHES = {
    "bare": Search(begin(np.ones(3), np.zeros(3), np.full(3, np.inf))),
    "under way": some_search(log_lam=-2.5, error=0.3, small=1),
    "best": some_search(log_lam=0.5, unseen=0.75, since=3, best=Best(np.arange(3.0), 1.0, 2.0, 3.0, 4.0, 5.0)),
}


@dataclass(frozen=True)
class Inner:
    x: np.ndarray
    name: str = "a"


class Outer(NamedTuple):
    parts: tuple[Inner, ...]
    table: dict[str, np.ndarray]
    flag: bool
    count: int
    missing: Inner | None = None


def through(value, *records):
    """Packed, written as JSON, and read again."""
    tree, arrays = pack(value)
    for dims, values in arrays.values():
        assert len(dims) == values.ndim == 1
    return unpack(json.loads(json.dumps(tree, allow_nan=False)), {n: v for n, (_, v) in arrays.items()}, *records)


def same(one, other):
    """Every number of two records, arrays and all, with the same types."""
    assert type(one) is type(other)
    if isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other or (one != one and other != other)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search(name):
    """Infinities and what is not known among it."""
    same(through(SEARCHES[name], Search), SEARCHES[name])


def test_a_state_of_learning():
    """Ends, the search under way, and what l1 left."""
    state = Descending(
        2, 1, tuple(SEARCHES.values()), SEARCHES["best"], 4, "max_iter", SEARCHES["bare"], (0.25, 0.125), 3
    )
    same(through(state, Descending), state)


def test_records_in_records():
    """Dataclasses, dictionaries, empty arrays, numbers of every kind; each dtype is one array."""
    value = Outer((Inner(np.ones((2, 0))), Inner(np.arange(6).reshape(2, 3), "b")), {"z": np.array([True])}, True, 7)
    again = through(value, Outer)
    assert again.parts[1].name == "b"
    np.testing.assert_array_equal(again.parts[1].x, [[0, 1, 2], [3, 4, 5]])
    assert (again.parts[0].x.shape, again.table["z"].dtype) == ((2, 0), bool)
    assert (again.flag, again.count, again.missing) == (True, 7, None)
    assert set(pack(value)[1]) == {"float64", "int64", "bool"}
    assert through([1, (2.5, "x"), np.float64(0.1), float("-inf")]) == [1, (2.5, "x"), 0.1, float("-inf")]


def test_what_may_be_built():
    """A record, and those that its annotations name; a tree with another one is refused by name."""
    assert {cls.__name__ for cls in records_of(Outer)} == {"Outer", "Inner"}
    assert {cls.__name__ for cls in records_of(Descending)} >= {"Descending", "Search", "Descent", "Best"}
    with pytest.raises(ValueError, match="holds a record 'Inner'; expected one of Search"):
        through(Inner(np.ones(1)), Search)
    tree, arrays = pack(Inner(np.ones(1)))
    tree["fields"]["other"] = 1
    with pytest.raises(ValueError, match="a record Inner has no 'other'; it has x, name"):
        unpack(tree, {n: v for n, (_, v) in arrays.items()}, Inner)


@pytest.mark.parametrize("value", [object(), {1: 2}, np.array(["a"])], ids=["object", "key", "texts"])
def test_what_cannot_be_kept(value):
    """Refused before anything is written."""
    with pytest.raises(TypeError, match="cannot be kept"):
        pack(value)
