"""Scores of blocks against the features of all rows at once, and the class they choose."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.features.rows import Refusal
from dkl.learn import model
from dkl.learn.model import Choice, Column, Scores, Transform, chosen, each_class
from dkl.learn.thresholds import offset_of
from tests.learn.test_ridge import FEATURES

RNG = np.random.default_rng(5)
X, COEF = RNG.normal(size=(23, 3)), RNG.normal(size=(20, 2))
BLOCKS = FEATURES.at(np.float64)
PLAIN = BLOCKS.transform(X) @ COEF + [1.0, -2.0]


def scores(offset=0.0):
    return Scores(BLOCKS, FEATURES.scale * COEF, np.array([1.0, -2.0]), offset)


@pytest.mark.parametrize("tile", [1, 7, 23, 24, 2048])
def test_scores_of_tiles(tile, monkeypatch):
    """The same whatever the tiles, with and without what calibration takes off."""
    monkeypatch.setattr(model, "TILE", tile)
    np.testing.assert_allclose(scores()(X), PLAIN, rtol=1e-12)
    offset = np.array([0.5, 3.0])
    np.testing.assert_allclose(scores(offset)(X), PLAIN - offset, rtol=1e-12)
    np.testing.assert_allclose(scores(offset).plain(X), PLAIN, rtol=1e-12)
    np.testing.assert_allclose(scores(offset).by_class(X), PLAIN, rtol=1e-12)
    assert Scores(BLOCKS, COEF, np.zeros(2)).offset == 0


def test_a_refused_row_is_counted_from_the_beginning(monkeypatch):
    """Row 17 of the block, in whichever tile."""
    monkeypatch.setattr(model, "TILE", 5)
    bad = X.copy()
    bad[17, 1] = np.nan
    with pytest.raises(Refusal, match="row 17, column 1"):
        scores()(bad)


def test_one_score_and_one_class():
    """The only column; the highest score; of two classes the sign, zero being the first."""
    one = Scores(BLOCKS, FEATURES.scale * COEF[:, :1], np.ones(1))
    np.testing.assert_allclose(Column(one)(X), PLAIN[:, 0], rtol=1e-12)
    names = np.array(["a", "b"])
    np.testing.assert_array_equal(Choice(scores(), names)(X), names[PLAIN.argmax(axis=1)])
    np.testing.assert_array_equal(Choice(one, names)(X), np.where(PLAIN[:, 0] > 0, "b", "a"))
    assert chosen(np.array([[-1.0], [0.0], [0.5], [2.0]])).tolist() == [0, 0, 1, 1]
    assert chosen(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0], [0.0, 1.0, 5.0]])).tolist() == [0, 0, 2]
    assert each_class(np.array([[2.0], [-3.0]])).tolist() == [[-2, 2], [3, -3]]
    assert each_class(PLAIN) is PLAIN
    np.testing.assert_array_equal(Transform(BLOCKS)(X), BLOCKS.transform(X))


def test_what_calibration_takes_off():
    """Nothing; the thresholds; half their difference, for the one score of two classes."""
    assert offset_of(None) == 0
    assert offset_of(np.array([1.0, 2.0, 4.0])).tolist() == [1, 2, 4]
    assert offset_of(np.array([1.0, 4.0])).tolist() == [1.5]
    assert offset_of(np.array([3.0])).tolist() == [3]
