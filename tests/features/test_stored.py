"""Maps as plain values and arrays: there and back, from files of earlier versions, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dkl.features.additive import Direct
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.nystroem import NystroemMap
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide
from dkl.features.stored import restore_map, store_map
from dkl.kernels import KERNELS

RNG = np.random.default_rng(0)
SIGMA = np.array([0.5, 2.0, 3.0])
MAPS = {
    "paired": FourierMap(KERNELS["gaussian"], RNG.normal(size=(3, 4)), SIGMA, np.empty(0), 1.0, "paired"),
    "odd": FourierMap(KERNELS["gaussian"], RNG.normal(size=(3, 4)), SIGMA, RNG.random(1), 1.0, "paired"),
    "phase": FourierMap(KERNELS["skewed_chi2"], RNG.normal(size=(3, 4)), SIGMA, RNG.random(4), 0.3, "phase"),
    "additive": FourierMap(
        KERNELS["exp_chi2"], RNG.normal(size=(6, 4)), SIGMA, np.empty(0), 1.0, "paired", Direct(np.array([0.3, 1.0]))
    ),
    "nystroem": NystroemMap(
        KERNELS["gaussian"], SIGMA, RNG.normal(size=(5, 3)), RNG.normal(size=(5, 4)), np.arange(5), 1.0, True
    ),
    "narrow": NystroemMap(
        KERNELS["laplacian"], SIGMA, RNG.normal(size=(5, 3)), RNG.normal(size=(5, 4)), np.arange(5), 1.0, False
    ),
}


def params_of(one):
    landmarks = "uniform" if isinstance(one, NystroemMap) else None
    return {"kernel": one.kernel.name, "skew": one.skew, "form": getattr(one, "form", None), "landmarks": landmarks}


def parts_of(one):
    record, arrays = store_map(one)
    assert all(len(axes) == values.ndim for axes, values in arrays.values())
    return json.loads(json.dumps(record)), {name: values for name, (_, values) in arrays.items()}


@pytest.mark.parametrize("name", MAPS)
def test_there_and_back(name):
    """The same features of the same rows."""
    one = MAPS[name]
    again = restore_map(*parts_of(one), params_of(one))
    assert type(again) is type(one)
    X = RNG.random((7, 3))
    np.testing.assert_array_equal(again.at(np.float64).transform(X), one.at(np.float64).transform(X))
    assert getattr(again, "wide", None) == getattr(one, "wide", None)


def test_names_of_axes():
    """Columns are not inputs if each input has several."""
    axes = {name: store_map(one)[1]["unit"][0] for name, one in MAPS.items() if isinstance(one, FourierMap)}
    assert axes == dict.fromkeys(("paired", "odd", "phase"), ("input", "frequency")) | {
        "additive": ("column", "frequency")
    }
    assert "phase" not in store_map(MAPS["paired"])[1]
    assert store_map(MAPS["nystroem"])[1]["landmarks"][0] == ("landmark", "input")


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("paired", {"unit": np.zeros((4, 4))}, r"unit \(4, 4\) and sigma \(3,\) do not belong together"),
        ("paired", {"unit": np.zeros(3)}, r"unit \(3,\) and sigma \(3,\) do not belong together"),
        ("additive", {"unit": np.zeros((3, 4))}, r"unit \(3, 4\) and sigma \(3,\) do not belong together"),
        ("paired", {"phase": np.zeros(2)}, "2 phases for 4 frequencies"),
        ("phase", {"phase": np.zeros(3)}, "3 phases for 4 frequencies"),
        ("phase", {"phase": np.zeros(0)}, "0 phases for 4 frequencies"),
        ("nystroem", {"landmarks": np.zeros((5, 2))}, r"landmarks \(5, 2\) and whitening \(5, 4\) do not belong"),
        ("nystroem", {"landmarks": np.zeros(5)}, r"landmarks \(5,\) and whitening \(5, 4\) do not belong"),
        ("nystroem", {"whitening": np.zeros((4, 4))}, "do not belong together"),
        ("nystroem", {"whitening": np.zeros(5)}, "do not belong together"),
        ("nystroem", {"landmark_rows": np.arange(4)}, r"landmark_rows has shape \(4,\) for 5 landmarks"),
        ("nystroem", {"landmark_rows": np.zeros(5)}, "landmark_rows has shape"),
    ],
)
def test_parts_that_do_not_belong_together(name, changes, sentence):
    """Named."""
    record, arrays = parts_of(MAPS[name])
    with pytest.raises(ValueError, match=sentence):
        restore_map(record, arrays | changes, params_of(MAPS[name]))


def test_a_kernel_and_a_map_of_another():
    """An additive map without its kernel, and the other way round."""
    for name, kernel in (("additive", "gaussian"), ("paired", "exp_chi2")):
        record, arrays = parts_of(MAPS[name])
        with pytest.raises(ValueError, match=f"kernel='{kernel}' and an additive map of . terms do not belong"):
            restore_map(record, arrays, params_of(MAPS[name]) | {"kernel": kernel})
    record, arrays = parts_of(MAPS["paired"])
    with pytest.raises(ValueError, match="form='pair' is not known"):
        restore_map(record, {**arrays, "phase": np.zeros(4)}, params_of(MAPS["paired"]) | {"form": "pair"})


@pytest.mark.parametrize("name", MAPS)
def test_of_earlier_versions(name):
    """Files without the kind of the map: it follows from the parameters and from what is stored."""
    one = MAPS[name]
    record, arrays = parts_of(one)
    del record["map"]
    again = restore_map(record, arrays, params_of(one))
    assert type(again) is type(one)
    X = RNG.random((7, 3))
    np.testing.assert_array_equal(again.at(np.float64).transform(X), one.at(np.float64).transform(X))


def without_kind(record):
    return {
        name: [without_kind(one) for one in value] if name == "maps" else value
        for name, value in record.items()
        if name != "map"
    }


def written(one, X):
    blocks = one.at(np.float64)
    out = np.empty((len(X), one.n_features))
    blocks.write(blocks.prepare(X), out)
    return out


INDEX = np.array([1, 0, 0, 1, 1, 0])
PARTED = SideBySide((Channel(MAPS["paired"], np.array([1, 2, 5])), Channel(MAPS["odd"], np.array([0, 3, 4]))))
OVERLAPPING = SideBySide((Channel(MAPS["paired"], np.array([1, 2, 5])), Channel(MAPS["odd"], np.array([5, 3, 1]))))


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_channels(old):
    """Kept by the channel of each input; old files are read the same."""
    record, arrays = parts_of(PARTED)
    np.testing.assert_array_equal(arrays["channels"], INDEX)
    assert {name for name in arrays if name.startswith("channel1_")} == {
        "channel1_sigma", "channel1_unit", "channel1_phase",
    }  # fmt: skip
    again = restore_map(without_kind(record) if old else record, arrays, params_of(MAPS["paired"]))
    X = RNG.random((7, 6))
    np.testing.assert_array_equal(written(again, X), written(PARTED, X))


def test_channels_of_several_kernels():
    """Channels that share inputs, each with its own kernel: the record of the map names it."""
    other = SideBySide((*OVERLAPPING.channels, Channel(MAPS["nystroem"], np.array([0, 1, 2])), MAPS["phase"]))
    record, arrays = parts_of(other)
    assert "channels" not in arrays
    again, X = restore_map(record, arrays), RNG.random((7, 6))
    np.testing.assert_array_equal(
        written(SideBySide(again.channels[:3]), X), written(SideBySide(other.channels[:3]), X)
    )
    assert again.channels[3].kernel.name == "skewed_chi2"


def test_an_additive_map_of_rows():
    """Its number of terms is that of the estimator; old files have no kind."""
    one = AdditiveRows(Direct(np.array([0.3, 1.0])), 3, 2.5)
    record, arrays = parts_of(one)
    for about in (record, without_kind(record)):
        again = restore_map(about, arrays, {"n_terms": 2})
        assert (again.additive.nodes.tolist(), again.inputs, again.largest) == ([0.3, 1.0], 3, 2.5)
        with pytest.raises(ValueError, match="n_terms=3 is not that of its map"):
            restore_map(about, arrays, {"n_terms": 3})


def test_wholes_that_do_not_fit():
    """A map of other inputs, channels that leave one out, axes of other features, a kind that is not known."""
    record, arrays = parts_of(PARTED)
    with pytest.raises(ValueError, match="channel 0 has 2 inputs, its map has 3"):
        restore_map(record, arrays | {"channels": np.array([1, 0, 0, 1, 1, 1])})
    with pytest.raises(ValueError, match="channels does not part the inputs into 2"):
        restore_map(record, arrays | {"channels": np.array([1, 0, 0, 1, 1, 0, 2])})
    record, arrays = parts_of(ProjectedMap(MAPS["odd"], np.zeros(7), np.eye(7)[:, :2]))
    with pytest.raises(ValueError, match=r"centre \(7,\) and axes \(6, 2\) do not belong to 7 features"):
        restore_map(record, arrays | {"axes": np.zeros((6, 2))})
    record, arrays = parts_of(Channel(MAPS["odd"], np.arange(3)))
    with pytest.raises(ValueError, match=r"inputs int64 \(2,\) do not belong to a map of 3 inputs"):
        restore_map(record, arrays | {"inputs": np.arange(2)})
    record, arrays = parts_of(MAPS["odd"])
    with pytest.raises(ValueError, match="kind='fourrier' is not known; did you mean 'fourier'"):
        restore_map(record | {"map": record["map"] | {"kind": "fourrier"}}, arrays)
    with pytest.raises(ValueError, match="landmarks='uniform' and a fourier map do not belong together"):
        restore_map(record, arrays, params_of(MAPS["odd"]) | {"landmarks": "uniform"})
