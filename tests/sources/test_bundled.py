"""scikit-learn's own data sets against its loaders."""

from __future__ import annotations

import types

import numpy as np
import pytest
import scipy.sparse
import sklearn.datasets
from sklearn.utils import Bunch

from dkl.sources import bundled, raw
from dkl.sources.batch import Reading, SourceError
from dkl.sources.bundled import Bundled
from tests.sources.whole import read_whole


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "diabetes"])
def test_like_the_loader(name, monkeypatch):
    """Names of classes and columns where there are some."""
    monkeypatch.setattr(raw, "SEGMENT", 5000)
    source = Bundled(f"sklearn:{name}", Reading())
    X, y, _, segments = read_whole(source)
    expected = getattr(sklearn.datasets, f"load_{name}")()
    np.testing.assert_array_equal(X, expected.data)
    if name in ("digits", "diabetes"):
        np.testing.assert_array_equal(y, expected.target)
    else:
        assert y == [expected.target_names[i] for i in expected.target]
    assert [column.name for column in source.columns] == list(expected.feature_names)
    assert source.name == name
    assert (segments > 1) == (expected.data.nbytes > 5000)
    assert read_whole(Bundled(f"sklearn:{name}", Reading(target="none")))[1] is None


def test_a_feature_as_target():
    """Columns have names, so one can be predicted from the others, or dropped."""
    expected = sklearn.datasets.load_iris().data
    X, y, _, _ = read_whole(Bundled("sklearn:iris", Reading(target="sepal width (cm)", drop=("0",))))
    np.testing.assert_array_equal(X, expected[:, 2:])
    np.testing.assert_array_equal(y, expected[:, 1])


def test_fetched(monkeypatch):
    """A name of the target is no name of a class; sparse sets stay sparse; downloads may fail."""

    def fetch_houses(return_X_y=False):
        return Bunch(
            data=np.ones((3, 2)), target=np.array([1.5, 2, 3]), target_names=["price"], feature_names=["a", "b"]
        )

    def fetch_words(return_X_y=False):
        return Bunch(data=scipy.sparse.eye(4, format="csr"), target=np.arange(4) % 2, target_names=["no", "yes"])

    def fetch_many(return_X_y=False):
        return Bunch(data=np.ones((3, 2)), target=scipy.sparse.eye(3, format="csr"))

    def fetch_far(return_X_y=False):
        raise OSError("no route to host")

    found = {
        name.removeprefix("fetch_"): value for name, value in locals().items() if isinstance(value, types.FunctionType)
    }
    monkeypatch.setattr(bundled, "available", lambda: found)
    assert read_whole(Bundled("sklearn:houses", Reading()))[1].tolist() == [1.5, 2, 3]
    X, y, _, _ = read_whole(Bundled("sklearn:words", Reading()))
    assert (X.tolist(), y) == (np.eye(4).tolist(), ["no", "yes", "no", "yes"])
    with pytest.raises(SourceError, match=r"has several targets \(shape \(3, 3\)\)"):
        Bundled("sklearn:many", Reading())
    with pytest.raises(SourceError, match="'sklearn:far' cannot be loaded: no route to host"):
        Bundled("sklearn:far", Reading())


def test_refusals():
    """Several targets, no such name, options without meaning."""
    with pytest.raises(SourceError, match=r"'sklearn:linnerud' has several targets \(shape \(20, 3\)\)"):
        Bundled("sklearn:linnerud", Reading())
    with pytest.raises(SourceError, match=r"has no data set 'digit' .*; did you mean 'sklearn:digits'"):
        Bundled("sklearn:digit", Reading())
    with pytest.raises(SourceError, match=r"has no data set 'zzz' .*; there are .*california_housing, covtype"):
        Bundled("sklearn:zzz", Reading())
    with pytest.raises(SourceError, match="--categorical auto does not apply"):
        Bundled("sklearn:iris", Reading(categorical=("auto",)))
    assert "openml" not in bundled.available()
