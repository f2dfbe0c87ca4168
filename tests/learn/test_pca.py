"""Axes of sums against scikit-learn's PCA of the features, map by map."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from dkl.learn.channels import _unit
from dkl.learn.pca import Principal, solve_axes
from dkl.learn.unlabelled import hold, with_unlabelled
from dkl.prepare.draw import build_map
from dkl.solvers.ridge import Moments
from dkl.sums.scatter import ScatterProgram

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 3))
PARAMS = {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "frequencies": "iid", "form": "paired"}
MAPS = tuple(
    build_map({**PARAMS, "n_components": d, "groups": None, "sigma": 0.5}, 3, {}, np.random.default_rng(d), None)[0]
    for d in (6, 9)
)


def scatter(rows=X, maps=MAPS):
    program = ScatterProgram(tuple(one.at(np.float64) for one in maps), len(rows), len(rows), "X")
    sums, space = program.start(), program.workspace()
    program.add(sums, space, 0, 0, (rows,))
    return sums


def solved(sums, **options):
    widths, scales = [one.n_features for one in MAPS], [one.scale for one in MAPS]
    return solve_axes(sums, widths=widths, scales=scales, **{"wanted": 4, "narrow": False, "total": None} | options)


def test_like_sklearn():
    """Mean, axes up to their sign, and variances over n - 1, of each map by itself."""
    for found, one in zip(solved(scatter()), MAPS, strict=True):
        Psi = one.at(np.float64).transform(X)
        pca = PCA(4).fit(Psi)
        np.testing.assert_allclose(found.mean, Psi.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.variances, pca.explained_variance_, rtol=1e-9)
        np.testing.assert_allclose(np.abs(np.sum(found.axes * pca.components_.T, axis=0)), 1, rtol=1e-9)
        assert found.total == pytest.approx(Psi.var(axis=0, ddof=1).sum(), rel=1e-9)


def test_a_share_of_a_given_total():
    """The variance that a share is taken of counts over n - 1, too."""
    own = solved(scatter(), wanted=0.6)
    assert [len(one.variances) for one in own] == [
        PCA(0.6).fit(one.at(np.float64).transform(X)).n_components_ for one in MAPS
    ]
    variances = solved(scatter(), wanted=6)[0].variances
    total = variances[:3].sum() / 0.6 * (1 - 1e-6)
    first = solved(scatter(), wanted=0.6, total=total)[0]
    assert len(first.variances) == 3
    assert first.total == pytest.approx(total)
    assert len(solved(scatter(), wanted=0.6, total=total * (1 + 1e-4))[0].variances) == 4


def test_refused_rows_are_raised():
    """With the sentence of the pass."""
    bad = X.copy()
    bad[3, 1] = np.nan
    for use in (solved, hold):
        with pytest.raises(ValueError, match="X contains NaN at row 3, column 1"):
            use(scatter(bad))
    assert hold(scatter()).kept["unlabelled"].rows[0] == 60


def test_unlabelled_rows_are_further_rows():
    """Each weighs one, in units of weight; targets stay."""
    one, unit = MAPS[0], 4.0
    Psi, more = one.at(np.float64).transform(X[:25]), one.at(np.float64).transform(X[25:])
    S = Moments(25 / unit, Psi.T @ Psi / unit, np.ones((6, 1)), Psi.sum(0) / unit, np.ones(1), np.full(1, 2.0))
    found = with_unlabelled(S, scatter(X[25:], (one,)), one.scale, unit)
    assert found.weight == 15
    np.testing.assert_allclose(found.gram, (Psi.T @ Psi + more.T @ more) / unit, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.feature_sum, (Psi.sum(0) + more.sum(0)) / unit, rtol=1e-9, atol=1e-12)
    assert found[4:] == S[4:]
    assert found.cross is S.cross
    assert with_unlabelled(S, None, 1.0, 1.0) is S


def test_unit_of_channels():
    """sqrt of the largest variance, over n instead of n - 1; 1 if nothing varies."""
    one, other, none = (Principal(np.zeros(2), np.eye(2), np.array(v), 1.0) for v in ([4.0, 1.0], [9.0, 2.0], [0.0]))
    assert _unit([one, other], 10) == pytest.approx(np.sqrt(8.1))
    assert _unit([one], 2) == pytest.approx(np.sqrt(2))
    assert _unit([none], 5) == 1
