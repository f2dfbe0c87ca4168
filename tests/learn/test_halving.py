"""Who goes on at a rung, against a ranking by hand; and how many epochs a search takes."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.learn.halving import epochs_trained, left_after, rungs_of, those_left


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("eta", [1.5, 2, 3.0])
def test_the_best_go_on(seed: int, eta: float) -> None:
    """No one that is dropped has a lower loss than one that goes on; of equal losses the first goes on."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, size=20).astype(float)
    scores[rng.integers(20, size=3)] = np.inf
    alive = np.flatnonzero(rng.random(20) < 0.7)
    left = those_left(scores, alive, eta)
    wanted = sorted(sorted(alive.tolist(), key=lambda s: (scores[s], s))[: int(np.ceil(len(alive) / eta))])
    assert left.tolist() == wanted


def test_some_are_always_dropped_but_the_last() -> None:
    """A rung drops at least one and leaves at least one, whatever eta is."""
    assert [left_after(count, 1.01) for count in (2, 3, 50)] == [1, 2, 49]
    assert left_after(2, 100.0) == 1


def test_rungs() -> None:
    """The first after 300 steps or 20 epochs, each eta times as late, until one is left or the epochs are over."""
    assert rungs_of(100, 3, 30, 10_000) == (10, 30, 90, 270, 810)  # 100, 34, 12, 4, 2, 1
    assert rungs_of(100, 3, 30, 200) == (10, 30, 90)
    assert rungs_of(100, 3, 1000, 5) == (1, 3)
    assert rungs_of(100, 3, 1, 200) == (20, 60, 180)
    assert rungs_of(1, 3, 10, 200) == ()
    assert rungs_of(100, None, 10, 200) == ()


@pytest.mark.parametrize(("count", "eta", "steps", "epochs"), [(100, 3.0, 10, 200), (7, 2.0, 60, 50), (5, None, 3, 20)])
def test_epochs_of_all(count: int, eta: float | None, steps: int, epochs: int) -> None:
    """As counted epoch by epoch."""
    left, total = count, 0
    for epoch in range(1, epochs + 1):
        total += left
        if epoch in rungs_of(count, eta, steps, epochs):
            assert eta is not None
            left = left_after(left, eta)
    assert epochs_trained(count, eta, steps, epochs) == total
