"""Families whose package needs an extra: one sentence says how to install it, and the others do not miss it."""

from __future__ import annotations

import sys

import pytest

from dkl.cli.main import run
from dkl.estimators.loading import estimator_of
from dkl.estimators.registry import MISSING, REGISTERED, class_of, family_of


@pytest.fixture
def no_torch(monkeypatch):
    """A process in which torch cannot be imported, and dkl.torch has not been."""
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("dkl.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(REGISTERED, "ConvolutionalKernelClassifier", raising=False)
    yield
    MISSING.clear()


def test_a_family_without_its_extra_says_what_to_install(no_torch):
    """By the name of the family and of the class."""
    said = r"dkl\.torch needs torch \(.*torch.*\); pip install 'dkl\[torch\]'"
    with pytest.raises(ValueError, match=f"model='convolutional' is not possible here: {said}"):
        family_of("convolutional")
    with pytest.raises(ValueError, match=f"estimator='ConvolutionalKernelClassifier' is not known here; {said}"):
        class_of("ConvolutionalKernelClassifier")
    with pytest.raises(ValueError, match="did you mean 'convolutional'"):
        family_of("convolutionel")


def test_the_other_families_do_not_miss_it(no_torch):
    """They are found without a look at packages."""
    assert estimator_of("single", "regression").__name__ == "SingleKernelRegressor"
    assert class_of("SingleKernelRegressor").__name__ == "SingleKernelRegressor"
    assert MISSING == {}


def test_the_command_says_it_in_one_line(no_torch, tmp_path, capsys, monkeypatch):
    """dkl fit --model convolutional."""
    import numpy as np

    import dkl

    np.savetxt(tmp_path / "d.csv", np.column_stack([np.eye(9), np.arange(9) % 2]), delimiter=",")
    how = {"header": False, "target": 9, "task": "classification", "verbose": 0}
    dkl.ingest(tmp_path / "d.csv", tmp_path / "d.zarr", **how)
    data, model = str(tmp_path / "d.zarr"), str(tmp_path / "m.zarr")
    monkeypatch.setattr(sys, "argv", ["dkl", "fit", data, model, "--model", "convolutional"])
    with pytest.raises(SystemExit) as end:
        run()
    assert end.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("dkl: model='convolutional' is not possible here: dkl.torch needs torch (")
    assert lines[0].endswith("; pip install 'dkl[torch]'")
    assert not (tmp_path / "m.zarr").exists()
