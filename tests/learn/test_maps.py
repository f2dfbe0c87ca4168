"""Maps as plain values and arrays, and the digest of what sums are sums of."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dkl.features.additive import Direct
from dkl.features.fourier import FourierMap
from dkl.features.nystroem import NystroemMap
from dkl.kernels import KERNELS
from dkl.learn.maps import described, map_from
from dkl.learn.program_digest import program_digest
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets

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
    record, arrays = described(one)
    assert all(len(axes) == values.ndim for axes, values in arrays.values())
    return json.loads(json.dumps(record)), {name: values for name, (_, values) in arrays.items()}


@pytest.mark.parametrize("name", MAPS)
def test_there_and_back(name):
    """The same features of the same rows."""
    one = MAPS[name]
    again = map_from(params_of(one), *parts_of(one))
    assert type(again) is type(one)
    X = RNG.random((7, 3))
    np.testing.assert_array_equal(again.at(np.float64).transform(X), one.at(np.float64).transform(X))
    assert getattr(again, "wide", None) == getattr(one, "wide", None)


def test_names_of_axes():
    """Columns are not inputs if each input has several."""
    axes = {name: described(one)[1]["unit"][0] for name, one in MAPS.items() if isinstance(one, FourierMap)}
    assert axes == dict.fromkeys(("paired", "odd", "phase"), ("input", "frequency")) | {
        "additive": ("column", "frequency")
    }
    assert "phase" not in described(MAPS["paired"])[1]
    assert described(MAPS["nystroem"])[1]["landmarks"][0] == ("landmark", "input")


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
        map_from(params_of(MAPS[name]), record, arrays | changes)


def test_a_kernel_and_a_map_of_another():
    """An additive map without its kernel, and the other way round."""
    for name, kernel in (("additive", "gaussian"), ("paired", "exp_chi2")):
        record, arrays = parts_of(MAPS[name])
        with pytest.raises(ValueError, match=f"kernel='{kernel}' and an additive map of . terms do not belong"):
            map_from(params_of(MAPS[name]) | {"kernel": kernel}, record, arrays)
    record, arrays = parts_of(MAPS["paired"])
    with pytest.raises(ValueError, match="form='pair' is not known"):
        map_from(params_of(MAPS["paired"]) | {"form": "pair"}, record, {**arrays, "phase": np.zeros(4)})


def test_the_digest_of_a_pass():
    """The same for the same pass, and another for anything that the sums depend on."""
    one, targets = MAPS["phase"], Targets(30.0, 2, shift=np.array([1.0, 2.0]))
    program = GramProgram(one.at(np.float64), targets, 30, 3, 7, None)
    again = GramProgram(replace(one, unit=one.unit.copy()).at(np.float64), replace(targets), 30, 3, 7, None)
    assert program_digest(program) == program_digest(again)
    assert len(program_digest(program)) == 64
    others = [
        GramProgram(one.at(np.float32), targets, 30, 3, 7),
        GramProgram(replace(one, unit=np.nextafter(one.unit, 9)).at(np.float64), targets, 30, 3, 7),
        GramProgram(replace(one, sigma=one.sigma * 2).at(np.float64), targets, 30, 3, 7),
        GramProgram(replace(one, skew=0.4).at(np.float64), targets, 30, 3, 7),
        GramProgram(replace(one, kernel=KERNELS["skewed_intersection"]).at(np.float64), targets, 30, 3, 7),
        GramProgram(replace(one, phase=one.phase[::-1].copy()).at(np.float64), targets, 30, 3, 7),
        GramProgram(one.at(np.float64), replace(targets, shift=np.array([2.0, 1.0])), 30, 3, 7),
        GramProgram(one.at(np.float64), replace(targets, weight=31.0), 30, 3, 7),
        GramProgram(one.at(np.float64), replace(targets, classes=np.array(["a", "b"], object)), 30, 3, 7),
        GramProgram(one.at(np.float64), replace(targets, classes=np.array(["a", "c"], object)), 30, 3, 7),
        GramProgram(one.at(np.float64), targets, 31, 3, 7),
        GramProgram(one.at(np.float64), targets, 30, 2, 7),
        GramProgram(one.at(np.float64), targets, 30, 3, 8),
        GramProgram(one.at(np.float64), targets, 30, 2, 7, (1, 4)),
        GramProgram(one.at(np.float64), targets, 30, 2, 7, (1, 5)),
        GramProgram(MAPS["paired"].at(np.float64), targets, 30, 3, 7),
        GramProgram(MAPS["odd"].at(np.float64), targets, 30, 3, 7),
        GramProgram(MAPS["nystroem"].at(np.float64), targets, 30, 3, 7),
    ]
    digests = [program_digest(other) for other in (program, *others)]
    assert len(set(digests)) == len(digests)
