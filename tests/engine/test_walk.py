"""Walks: parts stay with the workers that remember their rows; a lost worker loses no bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.engine.blocks import Part, Rows
from dkl.engine.cluster import Cluster
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.tables import open_table
from dkl.engine.walk import WalkPass
from dkl.sums.row_memory import RowMemory
from dkl.sums.tree import TreeTotal
from tests.engine.conftest import Machines, assert_same_bits, embedded
from tests.engine.decay import CHUNK, Decay

N = 600
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
X = np.random.default_rng(0).normal(size=(N, 3))
STEPS = [0.3, 0.7, 0.2, 0.9]


def rows() -> Rows:
    """In chunks of Dask."""
    return Rows([open_table(da.from_array(X, chunks=(CHUNK, -1)), "X")], ["X"])


def walk_with(engine: Any, between: Callable[[int], Any] = lambda number: None) -> dict[str, np.ndarray]:
    """The sums of every pass; the last of each is how many steps were taken in it."""
    table, found = rows(), {}
    walk = engine.walk(Decay(), table, table.blocks(CHUNK))
    for number in range(len(STEPS)):
        total = engine.fetch(walk.sum(tuple(STEPS[: number + 1]), Progress(0))).tree.total()
        found[str(number)] = total[:-1]
        found[f"steps {number}"] = total[-1:]
        between(number)
    return found


def plain() -> dict[str, np.ndarray]:
    """The sums alone, block by block as a tree adds them, with nothing remembered."""
    found = {}
    for number in range(len(STEPS)):
        sums, program = TreeTotal(), Decay(tuple(STEPS[: number + 1]))
        for block in range(N // CHUNK):
            program.add(sums, None, block, 0, (X[block * CHUNK : (block + 1) * CHUNK],))
        found[str(number)] = sums.tree.total()[:-1]
    return found


def sums_of(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values for name, values in found.items() if not name.startswith("steps")}


def taken(found: dict[str, np.ndarray]) -> list[float]:
    return [float(values[0]) for name, values in found.items() if name.startswith("steps")]


def test_in_one_process() -> None:
    """Every block takes every step once."""
    found = walk_with(Embedded(2))
    assert_same_bits(sums_of(found), plain())
    assert taken(found) == [N / CHUNK] * len(STEPS)


def test_on_a_cluster(pair: Machines) -> None:
    """The same bits, and about as few steps: parts stay where they are remembered, unless Dask moves one."""
    found = walk_with(Cluster(pair.client))
    assert_same_bits(sums_of(found), plain())
    assert N / CHUNK * len(STEPS) <= sum(taken(found)) < 1.4 * N / CHUNK * len(STEPS)


def test_a_worker_is_lost_and_another_joins(started: Callable[..., Machines]) -> None:
    """What it remembered is computed again from the steps, by the others; a newcomer gets its share."""
    machines = started(2)

    def between(number: int) -> None:
        if number == 1:
            machines.kill(next(iter(machines.workers)))
        if number == 2:
            machines.add(1)

    found = walk_with(Cluster(machines.client), between)
    assert_same_bits(sums_of(found), plain())
    steps = taken(found)
    assert max(steps[:2]) < 1.5 * N / CHUNK
    assert steps[2] > N / CHUNK  # the lost half takes three steps
    assert steps[2] < 3 * N / CHUNK
    assert N / CHUNK < steps[3] < 3 * N / CHUNK  # and so do parts of the newcomer


def passing(parts: int, homes: dict[int, str], workers: dict[str, int]) -> WalkPass:
    """A pass that is not begun."""
    one = WalkPass.__new__(WalkPass)
    one.waiting = [Part(i, [(i, i + 1)], []) for i in range(parts)]  # type: ignore[assignment]
    one.homes, one.workers = homes, workers
    return one


def test_who_takes_what() -> None:
    """First what a worker remembers, then what nobody does, then of the one with most, up to half its share."""
    one = passing(6, {0: "a", 1: "a", 2: "a", 3: "b", 4: "gone"}, {"a": 1, "b": 1, "c": 1})
    assert [one._take("b").first for _ in range(3)] == [3, 4, 5]
    assert one._take("b") is None
    assert one._take("c").first == 0
    assert one._take("c") is None
    assert one.homes == {0: "c", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    assert [one._take("a").first for _ in range(2)] == [1, 2]
    alone = passing(2, {0: "a", 1: "a"}, {"a": 4})
    assert [alone._take("a").first for _ in range(2)] == [0, 1]


def test_a_memory_does_not_travel() -> None:
    """It is empty where it arrives, and never gives what is too new."""
    import pickle

    memory = RowMemory()
    memory.put(3, 2, [np.ones(2)])
    assert memory.get(3, 2)[0] == 2
    assert memory.get(3, 1) == (0, ())
    assert memory.get(4, 5) == (0, ())
    assert pickle.loads(pickle.dumps(memory)).get(3, 2) == (0, ())


@pytest.mark.long
def test_many_walks(pair: Machines) -> None:
    """One after the other on the same workers."""
    for _ in range(3):
        assert_same_bits(sums_of(walk_with(Cluster(pair.client))), plain())


@pytest.mark.timeout(300)
def test_a_fit_by_alternating_directions(pair: Machines) -> None:
    """Two workers, whose rows' variables stay with them, learn the bits of this process."""
    assert pair.client is not None
    rows = da.from_array(X, chunks=(150, -1))
    y = (np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] > 0).astype(int)
    how = {"max_features": 3, "candidates": 5, "max_iter": 2, "solver_tol": 1e-3, "random_state": 0, "verbose": 0}

    def learn() -> dict[str, np.ndarray]:
        model = dkl.InfiniteFeatureClassifier(alpha=1.0, loss="logistic", solver="admm", **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows, y)
        return {"coef": model.coef_, "intercept": np.asarray(model.intercept_), "unit": model.features_.unit}

    found = learn()
    with embedded():
        assert_same_bits(found, learn())
