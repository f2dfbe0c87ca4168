"""Groups of inputs and their sigma."""

import numpy as np
import pytest

from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.prepare.draw import build_map, check_map, draw
from dkl.prepare.scales import find_sigma, group_index, spread_sigma, start_of_groups
from dkl.prepare.targets import label_targets, number_targets, sum_small

COORDS = {"sensor": np.array(["wind", "rain", "wind", "sun"]), "level": np.array([10, 10, 5, 5])}


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (None, [0, 0, 0, 0]),
        ("each", [0, 1, 2, 3]),
        (["b", "a", "b", "c"], [1, 0, 1, 2]),
        ([7, 7, 3, 3], [1, 1, 0, 0]),
        (np.array([0, 1, 1, 0]), [0, 1, 1, 0]),
        ([slice(0, 1), slice(1, 4)], [0, 1, 1, 1]),
        ([slice(None, None, 2), slice(1, None, 2)], [0, 1, 0, 1]),
        ((slice(-1, None), slice(0, 3)), [1, 1, 1, 0]),
        ("sensor", [2, 0, 2, 1]),
        ("level", [1, 1, 0, 0]),
    ],
    ids=str,
)
def test_group_index(groups, expected):
    """One group, one per input, labels in sorted order, slices in given order, or a coordinate."""
    assert group_index(groups, 4, COORDS).tolist() == expected


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ("sensr", r"groups='sensr' is not a coordinate of the inputs; there are \['level', 'sensor'\] and 'each'"),
        ([slice(0, 2), slice(3, 4)], "groups leaves input 2 out; let the slices cover all 4 inputs"),
        ([0, 1, 1], r"groups has shape \(3,\), but X has 4 inputs; give one label for each"),
        ([], r"groups has shape \(0,\), but X has 4 inputs; give one label for each"),
        (np.zeros((4, 1)), r"groups has shape \(4, 1\), but X has 4 inputs; give one label for each"),
    ],
    ids=str,
)
def test_group_index_refuses(groups, sentence):
    """The sentence shows what came and what to give."""
    with pytest.raises(ValueError, match=sentence):
        group_index(groups, 4, COORDS)


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        (2, [2, 2, 2, 2]),
        (np.float32(0.5), [0.5, 0.5, 0.5, 0.5]),
        ([1.0, 3.0], [1, 3, 3, 1]),
        (np.array([1, 2, 3, 4]), [1, 2, 3, 4]),
        (0.0, [0, 0, 0, 0]),
    ],
    ids=str,
)
def test_spread_sigma(sigma, expected):
    """One value for all, one for each group, or one for each input."""
    spread = spread_sigma(sigma, np.array([0, 1, 1, 0]))
    assert spread.tolist() == expected
    assert spread.dtype == np.float64


@pytest.mark.parametrize(
    ("sigma", "sentence"),
    [
        ([1.0, 2, 3], r"sigma has shape \(3,\); give one value, 2 \(one for each group\) or 4 \(one for each input\)"),
        ([[1.0, 2.0]], r"sigma has shape \(1, 2\); give one value, 2"),
        ([1.0, -2.0], r"sigma contains -2\.0; use finite numbers >= 0"),
        (np.nan, "sigma contains nan; use finite numbers >= 0"),
        (np.inf, "sigma contains inf; use finite numbers >= 0"),
        ([], r"sigma=\[\] must be a number or an array of numbers"),
        (1j, "sigma=1j must be a number or an array of numbers"),
    ],
    ids=str,
)
def test_spread_sigma_refuses(sigma, sentence):
    """The sentence shows the shape or the number that came."""
    with pytest.raises(ValueError, match=sentence):
        spread_sigma(sigma, np.array([0, 1, 1, 0]))


PARAMS = {
    "kernel": "gaussian",
    "skew": 1.0,
    "n_terms": 5,
    "frequencies": "orthogonal",
    "form": "paired",
    "n_components": 10,
    "groups": None,
    "sigma": 1.0,
}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("kernel", "gauss", "kernel='gauss' is not known; did you mean 'gaussian'"),
        ("skew", -1.0, "skew=-1.0 must be a finite number above 0"),
    ],
)
def test_build_map_refuses(name, value, sentence):
    """Each parameter is checked by name."""
    with pytest.raises(ValueError, match=sentence):
        build_map(PARAMS | {name: value}, 3, {}, np.random.default_rng(0), None)


@pytest.mark.parametrize("form", ["paired", "phase"])
@pytest.mark.parametrize("d", [1, 2, 9, 10])
def test_build_map_makes_the_features_asked_for(form, d):
    """n_components features, each group's sigma at its inputs, and the same map from the same seed."""
    params = PARAMS | {"form": form, "n_components": d, "groups": ["a", "b", "a"], "sigma": [2.0, 5.0]}
    (one, index), (two, _) = (build_map(params, 3, {}, np.random.default_rng(4), None) for _ in range(2))
    assert one.n_features == d
    assert one.sigma.tolist() == [2, 5, 2]
    assert index.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(one.unit, two.unit)
    np.testing.assert_array_equal(one.phase, two.phase)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_two_classes_must_weigh_something(kept):
    """A class that class_weight or sample_weight takes away does not count."""
    y, weight = np.arange(30) % 3, np.ones(30)
    weight[y >= kept] = 0
    tables = Table("memory", y), Table("memory", weight)
    if kept == 1:
        with pytest.raises(ValueError, match=r"of 3 classes only \[0\] have a positive weight"):
            label_targets(*tables, None, Progress(0))
    else:
        assert label_targets(*tables, None, Progress(0)).weight == pytest.approx(10 * kept, rel=1e-12)


def table(values):
    return Table("memory", np.asarray(values))


def targets_of(y, weight=None, class_weight=None):
    return label_targets(table(y), None if weight is None else table(weight), class_weight, Progress(0))


CODE = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
WEIGHT = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 4.0, 4.0, 4.0, 4.0, 4.0]) * 64
SUMS = np.array([6.0, 2.0, 20.0]) * 64


@pytest.mark.parametrize(
    "class_weight", [None, "balanced", {0: 2.0, 2: 0.5}, {0: 2.0, 1: 1.0, 2: 0.5, 9: 7.0}], ids=str
)
@pytest.mark.parametrize("weighted", [False, True])
def test_label_targets(weighted, class_weight):
    """Weights of the classes, balanced as by scikit-learn, a unit near the mean one, and the variance of -1 and +1."""
    sums = SUMS if weighted else np.array([3.0, 2.0, 5.0])
    factor = np.ones(3)
    if class_weight == "balanced":
        factor = sums.sum() / (3 * sums)
    elif class_weight:
        factor = np.array([2.0, 1.0, 0.5])
    found = targets_of(CODE + 5 if class_weight is None else CODE, WEIGHT if weighted else None, class_weight)
    shares = sums * factor
    assert found.weight * found.weight_unit == pytest.approx(shares.sum(), rel=1e-12)
    mean = shares.sum() / 10
    assert 4.0 ** round(np.log(found.weight_unit) / np.log(4)) == found.weight_unit
    assert found.weight_unit / 4 <= mean <= 4 * found.weight_unit
    assert found.n_targets == 3
    assert found.classes.tolist() == ([5, 6, 7] if class_weight is None else [0, 1, 2])
    if class_weight is None:
        assert found.class_weight is None
    else:
        np.testing.assert_allclose(found.class_weight, factor)
    p = shares / shares.sum()
    assert found.variance == pytest.approx(np.mean(1 - (2 * p - 1) ** 2), rel=1e-12)


def test_a_class_without_weight_is_balanced_by_the_others():
    """It counts for nothing, and divides nothing."""
    found = targets_of(CODE, (CODE != 1).astype(float), "balanced")
    np.testing.assert_allclose(found.class_weight, [8 / 9, 8 / 3, 8 / 15])


@pytest.mark.parametrize(
    ("y", "weight", "class_weight", "sentence"),
    [
        ([7, 7, 7], None, None, "y has one class, 7; a classifier needs at least two classes"),
        ([7, 8, 7], [0.0, 0, 0], None, "sample_weight is zero for every row .*; give at least two classes a positive"),
        ([7, 8, 9], None, {7: 0, 8: 0}, r"of 3 classes only \[9\] have a positive weight"),
        ([7, 8, 9], None, "balance", "class_weight='balance' is not known"),
        ([7, 8, 9], None, [1.0, 2.0, 3.0], r"class_weight=\[1.0, 2.0, 3.0\] must be None, 'balanced' or a dict"),
        ([7, 8, 9], None, {7: 1.0, 6: 2.0}, r"class_weight names 6, which is not a class; classes are \[7, 8, 9\]"),
        ([7, 8, 9], None, {7: -1.0}, "class_weight"),
    ],
    ids=str,
)
def test_labels_refused(y, weight, class_weight, sentence):
    """Each with what to give instead."""
    with pytest.raises(ValueError, match=sentence):
        targets_of(y, weight, class_weight)


def test_two_classes_are_enough():
    """A third without weight does not matter."""
    assert targets_of([7, 8], None, None).n_targets == 2
    assert targets_of([7, 8, 9], None, {7: 0}).class_weight.tolist() == [0, 1, 1]


def test_number_targets():
    """The mean is taken off if there is an intercept; y without outputs, or without weight, is refused."""
    y, w = np.array([[1.0, 8.0], [3.0, 0.0], [2.0, 1.0]]), np.array([1.0, 1.0, 2.0])
    found = number_targets(table(y), table(w), True, Progress(0))
    np.testing.assert_allclose(found.shift, w @ y / 4)
    assert found.weight * found.weight_unit == 4
    assert found.variance == pytest.approx(np.mean([w @ (y[:, j] - w @ y[:, j] / 4) ** 2 / 4 for j in (0, 1)]))
    assert number_targets(table(y[:, 0]), None, False, Progress(0)).shift.tolist() == [0]
    with pytest.raises(ValueError, match=r"y has shape \(3, 0\); give at least one output"):
        number_targets(table(y[:, :0]), None, True, Progress(0))
    with pytest.raises(ValueError, match=r"sample_weight is zero for every row .*; give some a positive weight"):
        number_targets(table(y), table(0 * w), True, Progress(0))


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (3, "groups=3 must be None, 'each', a label for each input, slices, or a coordinate's name"),
        ([slice(0, 2), slice(1, 4)], r"groups has slice\(1, 4, None\), which is empty or overlaps another"),
        ([slice(0, 4), slice(4, 5)], r"groups has slice\(4, 5, None\), which is empty or overlaps another"),
        ([slice(0, 1), slice(0, 1), slice(1, 4)], "overlaps another; let slices part the 4 inputs"),
        ([slice(1, 4)], "groups leaves input 0 out"),
        ([slice(0, 3)], "groups leaves input 3 out"),
    ],
    ids=str,
)
def test_more_groups_refused(groups, sentence):
    """Slices must part the inputs."""
    with pytest.raises(ValueError, match=sentence):
        group_index(groups, 4, COORDS)


def test_a_sigma_for_each_of_as_many_groups_as_inputs():
    """One of each group, in the order of the groups."""
    assert spread_sigma([1.0, 2.0, 3.0], np.array([2, 0, 1])).tolist() == [3, 1, 2]
    assert spread_sigma([7.0], np.array([0, 0])).tolist() == [7, 7]


def test_what_is_checked_before_rows_are_read():
    """The number of terms too; a Nystroem map has no form."""
    check_map(PARAMS, 3, {})
    check_map(PARAMS | {"landmarks": None}, 3, {})
    less = {name: value for name, value in PARAMS.items() if name not in ("form", "frequencies")}
    check_map(less | {"landmarks": "uniform", "sigma": "scale"}, 3, {})
    for changes, sentence in (
        ({"n_terms": 0}, "n_terms=0 must be a whole number"),
        ({"kernel": "exp_intersection", "n_terms": 4}, "n_terms=4 of the .* must be odd"),
        ({"groups": "sensor"}, "groups='sensor' is not a coordinate"),
        ({"sigma": [1.0, 2.0]}, r"sigma has shape \(2,\)"),
    ):
        with pytest.raises(ValueError, match=sentence):
            check_map(PARAMS | changes, 3, {})


@pytest.mark.parametrize(("kernel", "power"), [("gaussian", 2), ("matern32", 2), ("laplacian", 1), ("matern12", 1)])
def test_sigma_of_groups(kernel, power):
    """Each group that varies has the same share in an exponent of one; one that does not, the start of all."""
    variance, index = np.array([4.0, 9.0, 16.0, 0.0, 0.0]), np.array([0, 0, 1, 2, 1])
    kernel = KERNELS[kernel]
    assert kernel.mean_absolute == (power == 1)
    sizes = np.array([np.sqrt([4.0, 9.0]).sum(), 4.0]) if power == 1 else np.array([13.0, 16.0])
    expected = [
        *(1 / (2 * sizes) if power == 1 else 1 / np.sqrt(2 * sizes)),
        kernel.start_sigma(variance, variance**0.5),
    ]
    np.testing.assert_allclose(start_of_groups(kernel, variance, index), expected, rtol=1e-12)


ROWS = np.random.default_rng(3).gamma(1.0, size=(50, 3)) + 0.1


def look_at(X, seen, weight=None):
    """Sums over X, with a note of every pass."""

    def moments(program):
        seen.append(type(program).__name__)
        tables = [table(X), None if weight is None else table(weight)]
        return sum_small(program, tables, ["X", "sample_weight"], Progress(0))

    return moments


@pytest.mark.parametrize(("kernel", "passes"), [("gaussian", 1), ("skewed_chi2", 1), ("exp_chi2", 2)])
@pytest.mark.parametrize("learning", [False, True])
def test_draw_sees_x_as_often_as_it_must(kernel, passes, learning):
    """Once for sigma and for learning together, and once before for the nodes; then squares and extent of t(X)."""
    seen, params = [], PARAMS | {"kernel": kernel, "sigma": "scale", "skew": 0.5, "n_terms": 2}
    found = draw(params, 3, {}, np.random.default_rng(1), look_at(ROWS, seen), learning)
    features, groups, seed, squares, extent = found
    assert len(seen) == passes
    T = features.at(np.float64).prepare(ROWS)
    T = T[0] if isinstance(T, tuple) else T
    spread = np.sqrt(T.var(axis=0).reshape(-1, 3).sum(axis=0))
    np.testing.assert_allclose(extent.spread, spread, rtol=1e-9)
    np.testing.assert_allclose(extent.low, ROWS.min(axis=0))
    expected = (T * T).sum(axis=0) if learning else []
    np.testing.assert_allclose(squares, expected, rtol=1e-9)
    assert features.unit.shape == (3 * features.n_terms, 5)
    assert features.n_terms == (2 if kernel == "exp_chi2" else 1)
    variance = T.var(axis=0).reshape(-1, 3).sum(axis=0)
    np.testing.assert_allclose(features.sigma, np.full(3, start_of_groups(KERNELS[kernel], variance, groups)[0]))
    assert groups.tolist() == [0, 0, 0]
    assert 2**40 < seed < 2**62


def test_draw_without_a_look():
    """A sigma that is given needs no pass, unless it is learned."""
    seen = []
    found = draw(PARAMS, 3, {}, np.random.default_rng(1), look_at(ROWS, seen), False)
    assert (seen, found[3].size, found[4]) == ([], 0, None)
    found = draw(PARAMS, 3, {}, np.random.default_rng(1), look_at(ROWS, seen), True)
    assert seen == ["MomentProgram"]
    np.testing.assert_allclose(found[3], (ROWS**2).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize(("form", "d", "shape", "phases"), [
    ("paired", 10, 5, 0), ("paired", 9, 5, 1), ("paired", 1, 1, 1), ("phase", 9, 9, 9), ("phase", 10, 10, 10)
])  # fmt: skip
def test_frequencies_and_phases(form, d, shape, phases):
    """Half as many frequencies as features in pairs, the odd one with a phase; drawn in this order from the seed."""
    params = PARAMS | {"form": form, "n_components": d, "frequencies": "iid"}
    found, _ = build_map(params, 3, {}, np.random.default_rng(8), None)
    rng = np.random.default_rng(8)
    unit = draw_unit(KERNELS["gaussian"], 3, shape, "iid", rng)
    np.testing.assert_array_equal(found.unit, unit)
    np.testing.assert_array_equal(found.phase, rng.random(phases))
    assert (found.form, found.skew, found.additive) == (form, 1.0, None)


def test_scale_is_refused_where_it_has_no_sense():
    """No weight at all, or squares beyond float64."""
    params = PARAMS | {"sigma": "scale"}
    with pytest.raises(ValueError, match=r"sample_weight is zero for every row .*; give some a positive weight"):
        find_sigma(params, 3, {}, look_at(ROWS, [], np.zeros(50)))
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"X is so large \(up to .*\) that its variance is infinite"),
    ):
        find_sigma(params, 3, {}, look_at(ROWS * [1, 1, 1e200], []))


def test_an_additive_map_is_looked_for_only_if_wanted():
    """With a sigma that is given and lifted=False there is no pass."""
    seen, params = [], PARAMS | {"kernel": "exp_chi2", "n_terms": 2}
    assert find_sigma(params, 3, {}, look_at(ROWS, seen), lifted=False).additive is None
    assert seen == []
    assert find_sigma(params, 3, {}, look_at(ROWS, seen)).additive.n_terms == 2
    assert seen == ["HistogramProgram"]
    found = find_sigma(params | {"sigma": "scale"}, 3, {}, look_at(ROWS, seen), lifted=False)
    assert found.additive.n_terms == 2
    assert seen[1:] == ["HistogramProgram", "MomentProgram"]
    assert find_sigma(PARAMS, 3, {}, None).additive is None


def test_refused_rows_are_raised():
    """With the sentence of the pass."""
    bad = ROWS.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 7, column 2"):
        find_sigma(PARAMS | {"sigma": "scale"}, 3, {}, look_at(bad, []))


@pytest.mark.parametrize("rows", [np.array([[1.0, 2.0, 3.0]]), np.full((4, 3), 7.0)])
def test_rows_that_do_not_vary_have_no_scale(rows):
    """One row, or one value: a finite sigma, and one line that says why it is a guess (numpy's warnings are errors)."""
    X = Table("memory", rows)
    params = {"kernel": "gaussian", "sigma": "scale", "groups": None, "skew": 1.0, "n_terms": 5}
    with pytest.warns(UserWarning, match="no input of X varies, so sigma='scale' has nothing to go by") as caught:
        found = find_sigma(params, 3, {}, lambda program: sum_small(program, [X, None], ["X", "w"], Progress(0)))
    assert len(caught) == 1
    assert np.isfinite(found.sigma).all()
    assert (found.sigma > 0).all()
