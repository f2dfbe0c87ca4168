"""Numbers of candidates, cut out of a bundle's parameters and put back; sums in a tree."""

from __future__ import annotations

import itertools

import numpy as np

from dkl.sums.networks import NetworkTotal, TreeSums, put, taken

OWNER = {
    "wide": np.repeat([0, 1, 2], [2, 3, 1])[None, :],
    "long": np.repeat([0, 1, 2], [2, 3, 1])[:, None],
    "each": np.arange(3)[:, None],
    "second": np.array([[1]]),
}
VALUES = {
    "wide": np.arange(24.0).reshape(4, 6),
    "long": np.arange(12.0).reshape(6, 2),
    "each": np.arange(6.0).reshape(3, 2),
    "second": np.arange(4.0).reshape(2, 2),
}


def test_numbers_of_some_candidates() -> None:
    """Along the axis of their owners; an array of one candidate goes or stays as a whole."""
    found = taken(VALUES, OWNER, np.array([0, 2]))
    assert set(found) == {"wide", "long", "each"}
    np.testing.assert_array_equal(found["wide"], VALUES["wide"][:, [0, 1, 5]])
    np.testing.assert_array_equal(found["long"], VALUES["long"][[0, 1, 5]])
    np.testing.assert_array_equal(found["each"], VALUES["each"][[0, 2]])
    np.testing.assert_array_equal(taken(VALUES, OWNER, np.array([1]))["second"], VALUES["second"])


def test_put_back() -> None:
    """What was taken, changed: others stay, and so does what was given."""
    for size in (1, 2, 3):
        for some in itertools.combinations(range(3), size):
            chosen, before = np.array(some), {name: values.copy() for name, values in VALUES.items()}
            changed = {name: -1 - values for name, values in taken(VALUES, OWNER, chosen).items()}
            found = put(VALUES, OWNER, chosen, changed)
            for name, values in VALUES.items():
                mine = np.isin(np.broadcast_to(OWNER[name], values.shape), chosen)
                np.testing.assert_array_equal(found[name], np.where(mine, -1 - values, values))
                np.testing.assert_array_equal(values, before[name])


def test_a_tree_of_totals_has_one_order() -> None:
    """Blocks in any order, in any tasks: the same bits; nothing is the sum of nothing."""
    rng = np.random.default_rng(0)
    totals = [
        NetworkTotal(rng.normal(size=2), rng.random(2), float(rng.random()), {"w": rng.normal(size=7)})
        for _ in range(11)
    ]

    def summed(order: list[int]) -> NetworkTotal:
        parts = [TreeSums(), TreeSums()]
        for k in order:
            parts[k % 2].tree.add(k, totals[k])
        whole = parts[0].copy()
        whole.merge(parts[1])
        found = whole.total()
        assert found is not None
        return found

    right = summed(list(range(11)))
    other = summed(list(rng.permutation(11)))
    assert right.loss.tobytes() == other.loss.tobytes()
    assert right.gradients["w"].tobytes() == other.gradients["w"].tobytes()
    np.testing.assert_allclose(right.gradients["w"], sum(one.gradients["w"] for one in totals), rtol=1e-12)
    assert TreeSums().total() is None
