"""Groups of inputs and their sigma."""

import numpy as np
import pytest

from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.learn.prepare import build_map, group_index, label_targets, spread_sigma

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
        ("frequencies", "sobol", "frequencies='sobol' is not known"),
        ("form", "pair", "form='pair' is not known; did you mean 'paired'"),
        ("n_components", 0, "n_components=0 must be a whole number of at least 1"),
        ("skew", -1.0, "skew=-1.0 must be a finite number above 0"),
        ("sigma", "scal", "sigma='scal' is not known; did you mean 'scale'"),
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
