"""Records of a checkpoint that were renamed, copied or swapped: the right bits, or one sentence; never other bits.

What a record covers lies inside it, under its digest, so the name of its folder alone means nothing.
"""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest

import dkl
from dkl.learn import resumable_pass as legs
from dkl.learn import stages as rungs
from dkl.learn.run import Limits
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import assert_same_bits, learned

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
N = 6000
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=N)
PLAIN = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0, "cv": 2, "alpha": [0.1, 1.0]}
LEARNING = PLAIN | {"alpha": 0.1, "learn": "cv", "groups": "each", "starts": 1, "max_iter": 2}


def model(path=None, **options):
    """Not fitted yet."""
    return dkl.SingleKernelRegressor(**(PLAIN | options), checkpoint=path)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A checkpoint after every block, and several stages of learning."""
    monkeypatch.setattr(legs, "SECONDS", 1e-9)
    monkeypatch.setattr(legs, "SHARE", 1e9)
    monkeypatch.setattr(rungs, "FEW_ROWS", 400)
    monkeypatch.setattr(rungs, "ROWS_PER_FEATURE", 1)
    monkeypatch.setattr(rungs, "FEW_BLOCKS", 1)


def stages(tmp_path, monkeypatch, name, **options):
    """Copies of the checkpoint after every step of learning and every leg of the last pass, in order."""
    found, path = [], tmp_path / name

    def snapshot(checkpoint):
        copy = tmp_path / f"{name}-{len(found)}"
        shutil.copytree(checkpoint.folder.path, copy)
        found.append(copy)

    keep, save = Checkpoint.keep_only, Checkpoint.save_step

    def keep_only(self, done):
        keep(self, done)
        snapshot(self)

    def save_step(self, *rest):
        save(self, *rest)
        snapshot(self)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "keep_only", keep_only)
        patch.setattr(Checkpoint, "save_step", save_step)
        model(path, **options).fit(X, Y)
    return found


def records(folder):
    """Every record of a checkpoint, by name."""
    return sorted(p for p in folder.iterdir() if p.is_dir())


def outcome(path, plain, **options):
    """'the same', or the one line that refused it; other bits fail."""
    try:
        found = learned(model(path, **options).fit(X, Y))
    except (ValueError, FileExistsError) as error:
        said = str(error)
    else:
        assert_same_bits(found, plain)
        said = "the same"
    assert "\n" not in said
    return said


def test_sums_under_another_name_are_refused(tmp_path, monkeypatch):
    """One block fewer in the name would count that block twice; one more would leave one out."""
    found = stages(tmp_path, monkeypatch, "a")
    plain = learned(model().fit(X, Y))
    middle = found[len(found) // 2]
    [sums] = [p for p in records(middle) if p.name.startswith("sums")]
    count = int(sums.name.removeprefix("sums-"))
    assert count > 2
    assert outcome(shutil.copytree(middle, tmp_path / "as it was"), plain) == "the same"
    for other in (count - 1, count + 1, 1, 10**6):
        copy = shutil.copytree(middle, tmp_path / f"moved-{other}")
        (copy / sums.name).rename(copy / f"sums-{other}")
        assert "do not match its name (count differ)" in outcome(copy, plain)


def test_records_of_other_stages_and_fits_in_every_place(tmp_path, monkeypatch):
    """Each record of each stage, of this fit and of one with another sigma, under every name that a record has."""
    ours = stages(tmp_path, monkeypatch, "a")
    theirs = stages(tmp_path, monkeypatch, "b", sigma=0.6)
    plain = learned(model().fit(X, Y))
    victim = ours[len(ours) // 2]
    names = [*(p.name for p in records(victim)), "sums-2", "step-1"]
    givers = [p for folder in (ours[0], ours[-1], theirs[len(ours) // 2], theirs[-1]) for p in records(folder)]
    seen = set()
    for number, (giver, name) in enumerate(itertools.product(givers, names)):
        copy = shutil.copytree(victim, tmp_path / f"try-{number}")
        shutil.rmtree(copy / name, ignore_errors=True)
        shutil.copytree(giver, copy / name)
        said = outcome(copy, plain)
        same_place = name == giver.name and giver.parent in ours
        assert not same_place or said == "the same"
        if giver.parent in theirs and name == max(p.name for p in records(copy) if p.name.startswith("sums")):
            assert "was renamed or copied" in said
        seen.add(said.partition("'")[0])
        shutil.rmtree(copy)
    assert len(seen) > 1


def test_the_journal_of_another_fit(tmp_path, monkeypatch):
    """fit.json of the fit that is asked for, beside the sums of another."""
    ours, theirs = (stages(tmp_path, monkeypatch, name, sigma=s) for name, s in (("a", 0.5), ("b", 0.6)))
    plain = learned(model().fit(X, Y))
    copy = shutil.copytree(theirs[1], tmp_path / "mixed")
    shutil.copy(ours[1] / "fit.json", copy / "fit.json")
    assert "(fit differ)" in outcome(copy, plain)


def test_arrays_swapped_between_records(tmp_path, monkeypatch):
    """Each array of the sums, taken from the stage before."""
    found = stages(tmp_path, monkeypatch, "a")
    plain = learned(model().fit(X, Y))
    before, victim = found[1], found[2]
    [older] = [p for p in records(before) if p.name.startswith("sums")]
    [newer] = [p for p in records(victim) if p.name.startswith("sums")]
    for array in records(older):
        copy = shutil.copytree(victim, tmp_path / f"swap-{array.name}")
        shutil.rmtree(copy / newer.name / array.name)
        shutil.copytree(array, copy / newer.name / array.name)
        assert array.name in outcome(copy, plain)


def test_steps_and_sums_of_learning(tmp_path, monkeypatch):
    """Every stage of learning with the record of every other, renamed or copied, and those of another fit."""
    ours = stages(tmp_path, monkeypatch, "a", **LEARNING)
    theirs = stages(tmp_path, monkeypatch, "b", **LEARNING | {"sigma": 0.7})
    plain = learned(model(**LEARNING).fit(X, Y))
    kinds = {p.name.partition("-")[0] for folder in ours for p in records(folder)}
    assert kinds == {"prepared", "step", "sums"}
    refused = 0
    for number, victim in enumerate((ours[1], ours[-3], ours[-1])):
        for mine, giver in itertools.product(
            records(victim), [*records(ours[2]), *records(ours[-1]), *records(theirs[-1])]
        ):
            if mine.name.partition("-")[0] != giver.name.partition("-")[0]:
                continue
            copy = shutil.copytree(victim, tmp_path / f"try-{number}")
            shutil.rmtree(copy / mine.name)
            shutil.copytree(giver, copy / mine.name)
            said = outcome(copy, plain, **LEARNING)
            refused += said != "the same"
            if giver.parent == theirs[-1]:
                assert said != "the same"
            shutil.rmtree(copy)
    assert refused > 5


def test_two_runs_of_a_seed_of_chance(tmp_path, monkeypatch):
    """The map of one run and the steps of another are of no fit at all."""
    options = LEARNING | {"random_state": None}
    ours, theirs = (stages(tmp_path, monkeypatch, name, **options) for name in "ab")
    for name in sorted({p.name for p in records(ours[-1])} & {p.name for p in records(theirs[-1])}):
        copy = shutil.copytree(ours[-1], tmp_path / f"mixed-{name}")
        shutil.rmtree(copy / name)
        shutil.copytree(theirs[-1] / name, copy / name)
        with pytest.raises(ValueError, match=r"\(fit(, program)? differ\)"):
            model(copy, **options).fit(X, Y)


def test_sums_of_another_end_of_learning_are_added_up_anew(tmp_path, monkeypatch):
    """The same fit, but learning ended at another sigma than when the sums were written: they are not used."""
    ours = stages(tmp_path, monkeypatch, "a", **LEARNING)
    plain = learned(model(**LEARNING).fit(X, Y))
    victim = shutil.copytree(ours[-2], tmp_path / "c")
    kept = Checkpoint(str(victim), json.loads((victim / "fit.json").read_text())["fit"], Limits._fields)
    done = kept.newest()
    assert done
    assert kept.sums_of("another program", 3) == 0
    assert kept.newest() == 0
    assert outcome(victim, plain, **LEARNING) == "the same"


def test_a_checkpoint_of_an_earlier_version(tmp_path, monkeypatch):
    """Sums that do not say what they cover are refused with what to type."""
    victim = stages(tmp_path, monkeypatch, "a")[2]
    for record in records(victim):
        about = json.loads((record / "zarr.json").read_text())
        del about["attributes"]["covers"], about["attributes"]["digest"]
        (record / "zarr.json").write_text(json.dumps(about))
    assert "older dkl" in outcome(victim, {})
    assert learned(model(victim).fit(X, Y, resume=False))["coef"].size
