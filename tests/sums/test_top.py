"""The k highest scores of each class against a sort of all of them: equal, however rows are cut and put together."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.cost import MapCost, Sizes
from dkl.features.rows import Refusal
from dkl.sums import top
from dkl.sums.top import TopProgram, top_scores

N, C = 300, 5
SIZES, NO_MAP = Sizes(N, C, np.dtype(float), C), MapCost(C, C, 0, 0.0, 0.0)
RNG = np.random.default_rng(0)
SCORES = {
    "any": RNG.normal(size=(N, C)) * 10.0 ** RNG.integers(-6, 6, C),
    "ties": RNG.integers(-2, 3, (N, C)).astype(float),
    "equal": np.full((N, C), 0.25),
    "zeros": np.where(RNG.random((N, C)) < 0.5, -0.0, 0.0),
}


def same(block):
    """Rows that are their own scores."""
    return block.toarray() if sp.issparse(block) else block


def kth(scores, k):
    """By a sort of everything; 0 and -0 are one number."""
    return np.sort(scores, axis=0)[-min(k, len(scores))] + 0.0


def total_of(k, scores, chunk, threads=1, weight=None, seed=0):
    """The sums of blocks in a random order, dealt to so many threads."""
    program = TopProgram(same, k, SIZES, NO_MAP)
    sums = [program.start() for _ in range(threads)]
    starts = range(0, scores.shape[0], chunk)
    for block in np.random.default_rng(seed).permutation(len(starts)):
        rows = slice(starts[block], starts[block] + chunk)
        data = (scores[rows], None if weight is None else weight[rows])
        program.add(sums[block % threads], program.workspace(), int(block), starts[block], data)
    total = pickle.loads(pickle.dumps(sums[0])).copy()
    for other in sums[1:]:
        total.merge(other)
    return total


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("k", [1, 7, 50, 299, 300, 301])
@pytest.mark.parametrize("chunk", [1, 7, 64, N])
def test_equal_to_a_sort(name, k, chunk, monkeypatch):
    """The same bits for every cut, order and number of threads, also if blocks are looked at in pieces."""
    wanted = kth(SCORES[name], k)
    for threads, rows in ((1, 2048), (3, 2048), (2, 10)):
        monkeypatch.setattr(top.TopProgram, "rows_wanted", rows)
        found = total_of(k, SCORES[name], chunk, threads, seed=threads).tree.total()
        assert found.rows == N
        assert found.scores.shape == (C, min(k, N))
        assert found.thresholds.tobytes() == wanted.tobytes()


def test_rows_without_weight_are_no_rows():
    """Wherever they are, in a block with others or alone; other weights do not matter."""
    scores = SCORES["any"]
    weight = np.where(RNG.random(N) < 0.4, 0.0, RNG.random(N) + 1e-9)
    weight[64:128] = 0.0
    found = total_of(9, scores, 64, weight=weight).tree.total()
    assert found.rows == (weight > 0).sum()
    np.testing.assert_array_equal(found.thresholds, kth(scores[weight > 0], 9))
    assert (found.thresholds != kth(scores, 9)).any()


def test_sparse_rows():
    """Blocks of any kind go to the scores as they are."""
    scores = np.abs(SCORES["ties"])
    np.testing.assert_array_equal(total_of(9, sp.csr_array(scores), 64).tree.total().thresholds, kth(scores, 9))


def test_the_record_does_not_grow():
    """Neither with blocks nor by holding on to them; a tree would keep a record for each."""
    sums = total_of(3, SCORES["any"], 10, threads=2)
    assert sums.tree.value.scores.nbytes == 3 * C * 8
    assert sums.tree.value.scores.base is None


def test_a_copy_stays_as_it_is():
    """And an empty part adds nothing."""
    program = TopProgram(same, 4, SIZES, NO_MAP)
    sums, nothing = program.start(), program.start()
    program.add(sums, None, 0, 0, (SCORES["any"][:100], None))
    before = sums.copy()
    program.add(sums, None, 1, 100, (SCORES["any"][100:], None))
    sums.merge(nothing)
    nothing.merge(sums)
    np.testing.assert_array_equal(before.tree.total().thresholds, kth(SCORES["any"][:100], 4))
    for total in (sums, nothing):
        np.testing.assert_array_equal(total.tree.total().thresholds, kth(SCORES["any"], 4))


def test_refused_rows_are_counted_from_the_first():
    """As every tree program does."""

    def refuse(block):
        raise Refusal(2, "bad row {row}")

    program = TopProgram(refuse, 4, SIZES, NO_MAP)
    sums = program.start()
    program.add(sums, None, 3, 100, (SCORES["any"], np.ones(N)))
    assert sums.refusal == (102, "bad row 102")


def test_fewer_than_k():
    """All of them are kept, and the lowest is the threshold."""
    found = top_scores(500, 3, np.array([[3.0, 1.0, 2.0]]))
    assert (found.rows, found.scores.shape, found.thresholds.tolist()) == (3, (1, 3), [1.0])
