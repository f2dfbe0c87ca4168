"""What y and the weights become: values, codes, units, bounds, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dkl.features.refusal import Refusal
from dkl.sums.spread import Spread, spread_of
from dkl.sums.targets import (
    EPS,
    LEAST,
    LabelProgram,
    LabelWeights,
    Targets,
    ValueMoments,
    ValueProgram,
    as_columns,
    check_weights,
    refuse_mixed_labels,
    value_targets,
)


def moments_of(y, w=None):
    """Of all rows at once."""
    y = np.asarray(y, float).reshape(len(y), -1)
    w = np.ones(len(y)) if w is None else w
    return ValueMoments(len(y), spread_of(y, w), w @ np.abs(y), w @ (y * y))


def test_targets_that_say_nothing_more():
    """One target without shift and unit, of variance one."""
    plain = Targets(3.0, 1)
    assert (plain.classes, plain.class_weight, plain.weight_unit, plain.variance) == (None, None, 1.0, 1.0)
    assert plain.shift.tolist() == plain.absolute.tolist() == plain.square.tolist() == [0.0]
    assert plain.unit.tolist() == [1.0]
    assert not plain.is_class
    assert Targets(3.0, 2, classes=np.arange(2)).is_class


@pytest.mark.parametrize(("targets", "classes", "outputs"), [(1, 0, 1), (2, 0, 2), (3, 0, 3), (2, 2, 1), (3, 3, 3)])
def test_columns_of_scores(targets, classes, outputs):
    """One for two classes; otherwise one for each target."""
    record = Targets(1.0, targets, classes=np.arange(classes) if classes else None)
    assert record.n_outputs == outputs


def test_share_of_an_output():
    """Squares of units over the largest; one unit serves all outputs."""
    record = Targets(1.0, 3, unit=np.array([2.0, 8.0, 4.0]))
    assert record.share.tolist() == [1 / 16, 1.0, 1 / 4]
    assert Targets(1.0, 3, classes=np.arange(3)).share.tolist() == [1.0, 1.0, 1.0]
    assert Targets(1.0, 2, unit=np.array([4.0])).share.tolist() == [1.0, 1.0]


def test_weights_of_rows():
    """Sample weight times class weight over the unit; None if there is neither."""
    codes, given = np.array([0, 1, 1]), np.array([[1.0], [2.0], [3.0]])
    record = Targets(1.0, 2, classes=np.arange(2), weight_unit=4.0)
    assert record.row_weight(codes, None) is None
    assert record.row_weight(codes, given).tolist() == [0.25, 0.5, 0.75]
    factored = replace(record, class_weight=np.array([8.0, 16.0]))
    assert factored.row_weight(codes, None).tolist() == [2.0, 4.0, 4.0]
    assert factored.row_weight(codes, given).tolist() == [2.0, 8.0, 12.0]


def test_numbers_of_any_kind():
    """Columns of float64; objects that Python calls numbers are numbers."""
    assert as_columns([1, 2]).tolist() == [[1.0], [2.0]]
    assert as_columns(np.arange(6, dtype=np.int8).reshape(3, 2)).dtype == np.float64
    assert as_columns(np.array([True, False])).tolist() == [[1.0], [0.0]]
    assert as_columns(np.ma.masked_array([1.0, 2.0], [False, False])).tolist() == [[1.0], [2.0]]
    mixed = np.array([[1, 2.5], [Fraction(1, 2), True]], object)
    assert as_columns(mixed).tolist() == [[1.0, 2.5], [0.5, 1.0]]


@pytest.mark.parametrize(
    ("y", "row", "told"),
    [
        (np.array([1, "1.5"], object), 1, "y is '1.5' at row 1; regression needs numbers"),
        (np.array([[1, 2], [3, None]], object), 1, "y is None at row 1"),
        (np.array([None, 2.0], object), 0, "y is None at row 0"),
        (np.array([1, 2, Decimal(3)], object), 2, r"y is Decimal\('3'\) at row 2"),
        (np.array(["a", "b"]), 0, "y has dtype <U1"),
        (np.array([1j, 2]), 0, "Complex data not supported: y"),
        (np.ma.masked_array([1.0, 2.0, 3.0], [False, False, True]), 2, "y is masked at row 2"),
    ],
)
def test_what_is_no_number(y, row, told):
    """Texts, None, decimals, complex numbers, masked values: with the row."""
    with pytest.raises(Refusal, match=told) as caught:
        as_columns(y)
    assert caught.value.row == row


def test_weights_of_a_block():
    """Ones if there are none; zero is a weight."""
    assert check_weights(None, 3).tolist() == [1.0, 1.0, 1.0]
    assert check_weights([[0], [2]], 2).tolist() == [0.0, 2.0]
    assert check_weights(np.array([True, False]), 2).dtype == np.float64


@pytest.mark.parametrize(
    ("weight", "row", "told"),
    [
        ([1.0, -1e-300, -1.0], 1, "sample_weight is -1e-300 at row 1; use finite weights >= 0"),
        ([1.0, 0.0, np.nan], 2, "sample_weight is nan at row 2"),
        ([np.inf, 1.0], 0, "sample_weight is inf at row 0"),
        (["a", "b"], 0, "sample_weight has dtype <U1"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), 1, "sample_weight is masked at row 1"),
    ],
)
def test_weights_that_are_refused(weight, row, told):
    """The first one, with its row."""
    with pytest.raises(Refusal, match=told) as caught:
        check_weights(weight, len(weight))
    assert caught.value.row == row


@pytest.mark.parametrize(
    ("labels", "row", "told"),
    [
        (["a", None, "b"], 1, "y is None at row 1; remove or name the missing label"),
        (["a", "b", float("nan")], 2, "y is nan at row 2"),
        (["a", 1, "b"], 0, "Unknown label type: y mixes labels of types int, str; use one type"),
    ],
)
def test_labels_that_are_refused(labels, row, told):
    """Missing ones and mixed ones."""
    with pytest.raises(Refusal, match=told) as caught:
        refuse_mixed_labels(np.array(labels, object))
    assert caught.value.row == row
    with pytest.raises(Refusal, match=told):
        LabelProgram().value((np.array(labels, object), None))


def test_labels_of_a_block():
    """Objects, texts, numbers; complex and infinite ones are refused."""
    refuse_mixed_labels(np.array(["a", "b"], object))
    found = LabelProgram().value((np.array([["b"], ["a"], ["b"]], object), np.array([1.0, 2.0, 4.0])))
    assert (found.labels.tolist(), found.weight.tolist(), found.rows) == (["a", "b"], [2.0, 5.0], 3)
    more = found + LabelWeights(np.array(["c", "b"], object), np.array([1.0, 10.0]), 7)
    assert (more.labels.tolist(), more.weight.tolist(), more.rows) == (["a", "b", "c"], [2.0, 15.0, 1.0], 10)
    for y, told in ((np.array([1j]), "Complex"), (np.array([0.0, np.inf]), "infinity at row 1")):
        with pytest.raises(Refusal, match=told):
            LabelProgram().value((y, None))
    with pytest.raises(Refusal, match="y is masked at row 1"):
        LabelProgram().value((np.ma.masked_array([1, 2], [False, True]), None))


def test_moments_add_up():
    """Rows, spread and both sums."""
    y = np.random.default_rng(0).normal(size=(9, 2))
    both = ValueProgram().value((y[:4], None)) + ValueProgram().value((y[4:], None))
    assert (both.rows, both.weight) == (9, 9.0)
    np.testing.assert_allclose(both.absolute, np.abs(y).sum(axis=0), rtol=1e-14)
    np.testing.assert_allclose(both.square, (y * y).sum(axis=0), rtol=1e-14)


def test_bounds_about_zero():
    """Sums of |y| and twice those of y^2, in units of powers of two; weights in a power of four."""
    y, w = np.array([[3.0, -0.1], [-5.0, 0.2]]), np.array([20.0, 30.0])
    found = value_targets(moments_of(y, w), centre=False)
    unit, unit_w = np.array([8.0, 0.25]), 16.0  # means of |y| are 4.2 and 0.16; that of w is 25
    assert (found.unit.tolist(), found.weight_unit) == (unit.tolist(), unit_w)
    assert (found.weight, found.n_targets, found.shift.tolist()) == (50 / 16, 2, [0.0, 0.0])
    np.testing.assert_allclose(found.absolute, w @ np.abs(y) / unit / unit_w, rtol=1e-14)
    np.testing.assert_allclose(found.square, 2 * (w @ y**2) / unit**2 / unit_w, rtol=1e-14)
    spread = w @ (y - np.average(y, axis=0, weights=w)) ** 2 / 50
    assert found.variance == pytest.approx(spread.mean(), rel=1e-12)


def test_bounds_about_the_mean():
    """1.01 of the spread and the rounding of the mean; by Cauchy-Schwarz its root for |y|."""
    y = np.random.default_rng(1).normal(size=(40, 2)) * [1, 30] + [1000, -2]
    found = value_targets(moments_of(y), centre=True)
    mean = y.mean(axis=0)
    around = 1.01 * y.var(axis=0) + (8 * EPS * mean) ** 2
    np.testing.assert_allclose(found.shift, mean, rtol=1e-12)
    unit = 2.0 ** np.ceil(np.log2(np.sqrt(around)))
    assert found.unit.tolist() == unit.tolist()
    np.testing.assert_allclose(found.square, 40 * around / unit**2, rtol=1e-12)
    np.testing.assert_allclose(found.absolute, 40 * np.sqrt(around) / unit, rtol=1e-12)


def test_bounds_of_a_constant():
    """Only the rounding of the mean is left: eight times 2^-52 of it."""
    found = value_targets(moments_of(np.full(10, 3.0)), centre=True)
    assert EPS == 2.0**-52
    around = (8 * 2.0**-52 * 3.0) ** 2
    assert found.unit.tolist() == [2.0 ** np.ceil(np.log2(np.sqrt(around)))]
    np.testing.assert_allclose(found.square, 10 * around / found.unit**2, rtol=1e-12)
    assert found.variance == 0


def test_a_spread_below_the_range():
    """Where it is lost below float64's range the bound about zero holds, shifted: |y| + |mean|, 2 (y^2 + mean^2)."""
    spread = Spread(4.0, np.array([1e-140]), np.array([0.0]))
    moments = ValueMoments(4, spread, np.array([4e-140]), np.array([4e-280]))
    found = value_targets(moments, centre=True)
    np.testing.assert_allclose(found.absolute * found.unit, 8e-140, rtol=1e-12)
    np.testing.assert_allclose(found.square * found.unit * found.unit, 16e-280, rtol=1e-12)


def test_the_lesser_bound():
    """About the mean there may be more by its 1.01, of y around zero: then the bound about zero of |y| stays."""
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    found = value_targets(moments_of(y), centre=True)
    np.testing.assert_allclose(found.absolute * found.unit, 40.0, rtol=1e-12)
    np.testing.assert_allclose(found.square * found.unit**2, 40 * 1.01, rtol=1e-12)


@pytest.mark.parametrize(("size", "told"), [(1e200, "so large"), (1e-200, "so small"), (5e-146, "so small")])
def test_what_has_no_square(size, told):
    """Refused with what to do; all zero, and one zero output, are not."""
    with np.errstate(over="ignore"):
        moments = moments_of(np.full((4, 1), size))
    with pytest.raises(ValueError, match=told):
        value_targets(moments, centre=False)


def test_what_has_a_square_still():
    """Zeros, a mean square above 1e-290, and large values whose square is finite."""
    assert LEAST == 1e-290
    assert value_targets(moments_of(np.zeros((4, 1))), True).unit.tolist() == [1.0]
    value_targets(moments_of(np.array([[0.0, 1.0], [0.0, 2.0]])), True)
    value_targets(moments_of(np.full((4, 1), 1.1e-145)), False)
    value_targets(moments_of(np.full((4, 1), 1e150)), False)
    weighty = moments_of(np.full((4, 1), 1.1e-145), np.full(4, 1e10))
    value_targets(weighty, False)
    with pytest.raises(ValueError, match="so small"):
        value_targets(moments_of(np.array([[1.0, 1e-200], [1.0, 1e-200]])), False)
