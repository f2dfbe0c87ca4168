"""Every refusal shows what came and what to type."""

import numpy as np
import pytest
from scipy import sparse

from dkl.checks import (
    check_choice,
    check_count,
    check_nonnegative,
    check_positive,
    check_width,
    first_where,
    not_finite,
    not_finite_entries,
)


def said(check, *arguments):
    """The sentence of the refusal."""
    with pytest.raises(ValueError) as caught:
        check(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "hint"),
    [("gren", "did you mean 'green'?"), ("xyz", "use"), (3, "use"), (None, "use"), (["red"], None)],
    ids=str,
)
def test_choice_refused(value, hint):
    """The value, the nearest name if there is one, and all names."""
    sentence = said(check_choice, "colour", value, ["red", "green"])
    assert sentence.startswith(f"colour={value!r} is not known; {hint or ''}")
    assert sentence.endswith("se one of 'red', 'green'")


@pytest.mark.parametrize("value", ["red", "green"])
def test_choice_accepted(value):
    """The name itself comes back, also from an iterator or the keys of a dict."""
    assert check_choice("colour", value, {"red": 1, "green": 2}) == value
    assert check_choice("colour", value, iter(["red", "green"])) == value


@pytest.mark.parametrize("value", [1, -3, 2.0, "5", True, None, np.nan])
def test_count_refused(value):
    """The value and the least that is accepted; a float or a bool is no count."""
    assert said(check_count, "cv", value, 2) == f"cv={value!r} must be a whole number of at least 2"


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2)])
def test_count_accepted(value):
    """Python's and numpy's integers become int, down to the least one."""
    assert check_count("cv", value, 2) == 2
    assert type(check_count("cv", value, 2)) is int


@pytest.mark.parametrize(
    ("value", "shown"), [(-1.5, "-1.5"), ([1, -2, -3], "-2.0"), (np.nan, "nan"), ([0, np.inf], "inf")]
)
def test_nonnegative_refused(value, shown):
    """The first number that is negative or not finite, as the user would type it."""
    assert said(check_nonnegative, "sigma", value) == f"sigma contains {shown}; use finite numbers >= 0"


@pytest.mark.parametrize("value", ["wide", None, [], 1j, ["a", "b"]], ids=str)
def test_nonnegative_refuses_what_is_no_number(value):
    """The value itself."""
    assert said(check_nonnegative, "sigma", value) == f"sigma={value!r} must be a number or an array of numbers"


def test_nonnegative_accepted():
    """Numbers of any type become float64 of the same shape, zero included."""
    for value in (0, 2.5, [1, 2], np.ones((2, 2), np.float32)):
        array = check_nonnegative("sigma", value)
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, value)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "1", None, True, [1.0]], ids=str)
def test_positive_refused(value):
    """The value, and that it must be above zero."""
    assert said(check_positive, "skew", value) == f"skew={value!r} must be a finite number above 0"


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2)])
def test_positive_accepted(value):
    """Any real number becomes a float."""
    assert check_positive("skew", value) == 2.0
    assert type(check_positive("skew", value)) is float


def test_width_refused():
    """Both widths and who expects them, in scikit-learn's words."""
    sentence = said(check_width, 3, 5, "KernelRidge")
    assert sentence == "X has 3 features, but KernelRidge is expecting 5 features as input"


def test_width_accepted():
    """Equal widths pass."""
    check_width(5, 5, "KernelRidge")


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_first_where(kind):
    """The first entry row by row, whatever the order of storage; None if there is none."""
    X = np.ones((4, 3))
    X[1, 2], X[2, 0], X[3, 1] = np.nan, np.inf, -np.inf
    row, column, value = first_where(kind(X), not_finite_entries)
    assert (row, column) == (1, 2)
    assert np.isnan(value)
    assert first_where(kind(X), lambda values: values < 0) == (3, 1, -np.inf)
    assert first_where(kind(X), lambda values: values == 7) is None


def test_not_finite_entries():
    """NaN and both infinities."""
    values = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
    assert not_finite_entries(values).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_not_finite_sentence(value, word):
    """What it is, where it is, and what to do."""
    assert not_finite("y", 7, 2, value) == f"y contains {word} at row 7, column 2; remove or impute it"
