"""A block in compute precision: what passes unchanged, what is refused, and which row is named."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.features.kernel_inputs import kernel_inputs
from dkl.features.refusal import Refusal
from dkl.features.rows import dense, entry_ends, finite_inputs, refuse_masked, refuse_not_finite
from dkl.kernels import KERNELS

F4, F8 = np.dtype("f4"), np.dtype("f8")


def refused(call):
    """The refusal."""
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value


def test_what_is_right_is_not_copied():
    """Dense and sparse; other precisions are cast, lists become arrays, a mask of nothing is left away."""
    X = np.array([[1.0, -2.0], [3.0, 0.0]])
    assert finite_inputs(X, F8) is X
    assert finite_inputs(sp.csr_array(X), F8).data.tolist() == [1, -2, 3]
    assert np.shares_memory(finite_inputs(sp.csr_array(X), F8).data, sp.csr_array(X).data) is False
    for given in (X.astype("f4"), X.astype("i8"), X.tolist(), np.ma.masked_array(X)):
        found = finite_inputs(given, F4)
        assert type(found) is np.ndarray
        assert found.dtype == F4
        np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(finite_inputs(np.array([[True, False]]), F8), [[1, 0]])


def test_repeated_entries_are_added():
    """Of a csr block whose flags say otherwise, and the block that was given stays as it is."""
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2))
    X.has_canonical_format = True
    found = finite_inputs(X, F8)
    assert (found.indices.tolist(), found.data.tolist()) == ([0, 1], [4, 3])
    assert X.data.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("dtype", "line"),
    [
        ("c8", "Complex data not supported: X has dtype complex64 in the block from row 0 on"),
        ("U3", "X has dtype <U3 in the block from row 0 on; make its entries numbers first"),
        ("O", "X has dtype object in the block from row 0 on"),
        ("M8[s]", r"X has dtype datetime64\[s\] in the block"),
        ("m8[s]", r"X has dtype timedelta64\[s\] in the block"),
        ("S3", "X has dtype |S3 in the block"),
        ("V3", "X has dtype |V3 in the block"),
    ],
)
def test_what_is_no_number(dtype, line):
    """Refused from the first row of the block on."""
    found = refused(lambda: finite_inputs(np.zeros((2, 2), dtype), F8))
    assert found.row == 0
    assert found.args[0].startswith(line.replace("\\", ""))


@pytest.mark.parametrize(("row", "column"), [(0, 0), (0, 2), (1, 1), (1, 2)])
def test_masked_entries(row, column):
    """Of a table the row and the column, of a list the row."""
    block = np.ma.masked_array(np.ones((2, 3)), np.zeros((2, 3), bool))
    block[row, column] = np.ma.masked
    found = refused(lambda: finite_inputs(block, F8))
    assert (found.row, str(found)) == (row, f"X is masked at row {row}, column {column}; remove the row or fill it")
    y = np.ma.masked_array(np.ones(4), [False, False, True, True])
    found = refused(lambda: refuse_masked(y, "y"))
    assert (found.row, str(found)) == (2, "y is masked at row 2; remove the row or fill it")
    one = np.ma.masked_array(np.ones((1, 1)), [[True]])
    assert refused(lambda: refuse_masked(one, "X")).row == 0
    refuse_masked(np.ma.masked_array(np.ones(3)), "y")
    refuse_masked(np.ones(3), "y")


def test_ends():
    """Least and largest of what is stored; zeros of nothing."""
    X = np.array([[-1.0, 0.0], [5.0, 2.0]])
    assert entry_ends(X) == (-1, 5)
    assert entry_ends(sp.csr_array(np.abs(X) + 1)) == (1, 6)
    assert entry_ends(np.empty((0, 3))) == (0, 0)
    assert entry_ends(sp.csr_array((2, 3))) == (0, 0)
    assert np.isnan(entry_ends(np.array([1.0, np.nan]))).all()


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_numbers_too_large_for_the_precision(wrap):
    """Named as they were given; infinity itself is called that."""
    X = np.array([[1.0, 2.0], [3.0, -1e39], [1e39, 4.0]])
    found = refused(lambda: finite_inputs(np.asarray(X), F4))
    assert (found.row, found.column) == (1, 1)
    assert str(found).startswith("X contains -1e+39 at row 1, column 1, too large for float32; scale the inputs")
    assert finite_inputs(wrap(X), F8).shape == (3, 2)
    X[1, 1] = np.inf
    for dtype in (F4, F8):
        found = refused(lambda dtype=dtype: finite_inputs(wrap(X), dtype))
        assert str(found) == "X contains infinity at row 1, column 1; remove or impute it"
    assert (
        str(refused(lambda: refuse_not_finite(X, "Z"))) == "Z contains infinity at row 1, column 1; remove or impute it"
    )


def test_refusals():
    """Counted from the block's first row, from the first of the data, or after other rows; and over a wire."""
    one = Refusal(3, "{name} at {row}, {column}", 2)
    assert (str(one), one.at(10), one.at(10, "y")) == ("X at 3, 2", (13, "X at 13, 2"), (13, "y at 13, 2"))
    later = one.after(5)
    assert (later.row, later.column, str(later)) == (8, 2, "X at 8, 2")
    assert Refusal(1, "{column}").column == 0
    again = pickle.loads(pickle.dumps(one))
    assert (again.row, again.column, again.template) == (3, 2, one.template)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_the_domain_of_skewed_kernels(wrap):
    """log(1 + x / c) needs x > -c, by a margin of a millionth of c."""
    c, kernel = 0.5, KERNELS["skewed_chi2"]
    least = -c + 1e-6 * c
    inside, outside = least * (1 - 1e-9), least * (1 + 1e-9)
    X = np.array([[1.0, 2.0], [inside, 3.0]])
    found = kernel_inputs(wrap(X), kernel, c, F8)
    np.testing.assert_allclose(dense(found), np.log1p(X / c), rtol=1e-12)
    for bad in (outside, -c, -3.0):
        found = refused(lambda bad=bad: kernel_inputs(wrap(np.array([[1.0, 2.0], [3.0, bad]])), kernel, c, F8))
        assert (found.row, found.column) == (1, 1)
        assert str(found).endswith("kernel='skewed_chi2' needs entries above -skew = -0.5")
    assert kernel_inputs(X, KERNELS["gaussian"], c, F8) is X


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_histograms_have_no_negative_entries(wrap):
    """The first one is named; zero is right."""
    kernel = KERNELS["exp_chi2"]
    good = np.array([[0.5, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(dense(kernel_inputs(wrap(good), kernel, 1.0, F8)), good)
    for bad in (-0.25, -1e-300, -5.0):
        X = np.array([[0.5, 0.25], [1.0, bad], [-9.0, 0.0]])
        found = refused(lambda X=X: kernel_inputs(wrap(X), kernel, 1.0, F8))
        assert (found.row, found.column) == (1, 1)
        assert f"Negative values in data: X contains {bad:g} at row 1, column 1; kernel='exp_chi2'" in str(found)
