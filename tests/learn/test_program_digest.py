"""The digest of what sums are sums of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dkl.kernels import KERNELS
from dkl.learn.program_digest import program_digest
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.features.test_stored import MAPS, OVERLAPPING, PARTED


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
        GramProgram(PARTED.at(np.float64), targets, 30, 3, 7),
        GramProgram(OVERLAPPING.at(np.float64), targets, 30, 3, 7),
    ]
    digests = [program_digest(other) for other in (program, *others)]
    assert len(set(digests)) == len(digests)
    assert program_digest(program, "rows") not in digests
