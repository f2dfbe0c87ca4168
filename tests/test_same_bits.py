"""The comparison of two versions sees one bit, and says what it saw."""

from __future__ import annotations

import numpy as np
import pytest

from tests.same_bits.attributes import flat
from tests.same_bits.compare import differences

A = np.array([1.0, -4.0, np.nan, 0.0])


def changed(place: int, value: float) -> np.ndarray:
    """A with another number at one place."""
    B = A.copy()
    B[place] = value
    return B


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (A.copy(), []),
        (changed(1, np.nextafter(-4.0, 0)), ["coef_ 1.1e-16"]),
        (changed(0, 3.0), ["coef_ 5.0e-01"]),
        (changed(3, -0.0), ["coef_ 0.0e+00"]),
        (changed(2, 1.0), ["coef_ inf"]),
        (A[:3], ["coef_ float64[4] became float64[3]"]),
        (A.astype(np.float32), ["coef_ float64[4] became float32[4]"]),
    ],
)
def test_one_bit_is_a_difference(new, said):
    """Type, shape and bits count; NaN equals NaN; the difference is relative to the largest number."""
    assert differences({"coef_": A}, {"coef_": new}) == said


def test_texts_that_differ():
    """A short one is shown, several are counted."""
    old = {"dtype_": np.array("float64"), "recipe_": np.array(100 * "a"), "classes_": np.array(["a", "b", "c"])}
    new = {"dtype_": np.array("float32"), "recipe_": np.array(101 * "a"), "classes_": np.array(["a", "c", "b"])}
    assert differences(old, new) == ["dtype_ float64 became float32", "recipe_ differs", "classes_ differs in 2 of 3"]


def test_what_one_version_lacks():
    """An attribute of one version only, a fit that failed and a fit that is not there are differences."""
    one, both = {"coef_": A}, {"coef_": A, "sigma_": A}
    assert differences(one, both) == ["sigma_ only in NEW"]
    assert differences(both, one) == ["sigma_ only in OLD"]
    error = {"error": np.array("ValueError: no")}
    assert differences(one, error) == ["NEW failed: ValueError: no"]
    assert differences(error, error) == ["OLD failed: ValueError: no"]
    assert differences({}, {}) == ["OLD failed: it has no arrays of this configuration"]


def test_tables_and_texts_become_arrays():
    """A dict has one array for each column, but for those left out; texts of any kind fit in an npz."""
    table = {"seconds": 1.0, "alpha": [1, 2], "method": "cholesky", "map": object()}
    found = flat("history_", table, without=("seconds",))
    assert {name: array.tolist() for name, array in found.items()} == {
        "history_.alpha": [1, 2],
        "history_.method": "cholesky",
    }
    names = flat("names", np.array(["a", "b"], object))["names"]
    assert names.dtype.kind == "U"
    assert names.tolist() == ["dtype('O')", "a", "b"]
