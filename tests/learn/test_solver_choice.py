"""Which solver a fit takes, what the plan says of it, and what a refusal for memory advises."""

from __future__ import annotations

import re
from dataclasses import replace

import dask.array as da
import numpy as np
import pytest

import dkl
from dkl.cost import Sizes
from dkl.engine import memory
from dkl.features.fourier import fourier_cost
from dkl.learn.solver_choice import COSINE, MOST_GRAM, find_solver, work_of
from dkl.learn.weight_solvers import CHOICE_PASSES, PASSES, SOLVERS, WeightTask
from dkl.losses import LOSSES, Square
from dkl.penalties import L1, L2

NARROW = np.dtype(np.float32)
SIZES = Sizes(40_000, 54, NARROW, outputs=7, is_class=True, row_bytes=216)
ALPHAS = 10.0 ** np.arange(-4, 4)


def task(**options) -> WeightTask:
    """Squared errors, with folds that choose one of eight alphas."""
    return WeightTask(**({"loss": Square(), "penalty": L2(), "alpha": ALPHAS, "fit_intercept": True, "choose": True}
                         | options))  # fmt: skip


def of(features: int):
    """The cost of so many waves."""
    return fourier_cost(54, features, "paired", 1, NARROW)


def test_a_solve_that_needs_more_than_its_sums_counts():
    """9,000 features and five folds: sums of 1.5 GiB, and four systems of nine matrices at the same time."""
    [gram] = SOLVERS["cholesky"].costs(SIZES, of(9000), 5, task())
    assert gram.sums_bytes < 2 * 2**30
    assert gram.solve.bytes > 4 * 9 * 8 * 9000**2
    solver, why = find_solver("auto", task(), SIZES, of(9000), 5)
    assert solver.name == "cg"
    assert "cholesky would take 23." in why
    assert find_solver("auto", task(), SIZES, of(5000), 5).solver.name == "cholesky"  # 7.5 GiB
    assert 4 * 9 * 8 * 5000**2 + 5 * 4 * 5000**2 < MOST_GRAM < 4 * 9 * 8 * 5600**2


def test_products_are_counted_once_and_by_phase():
    """The preconditioner is made once; the choice multiplies all folds and alphas, and the weights only their own."""
    d, systems = 9000, 7 * 5 * 8
    costs = SOLVERS["cg"].costs(SIZES, of(d), 5, task())
    products = [one for one in costs if one.name == "product"]
    assert [one.count for one in products] == [CHOICE_PASSES, PASSES]
    assert [one.flops - of(d).flops for one in products] == [4 * d * systems, 4 * d * 7]
    assert not any(one.repeated for one in costs)
    assert sum(one.count for one in costs) == CHOICE_PASSES + PASSES + 3
    rows, axes = 3000, 1500
    made = 2.0 * rows * d * (rows + axes) + 9.0 * rows**3
    assert [one.solve.flops for one in costs if one.name == "cross"] == [made]
    assert products[1].solve.flops == 8.0 * axes * d * 7 + 12.0 * d * 7
    assert products[0].folds == 5
    by_hand = sum(one.count * (40_000 * (one.flops + COSINE * one.cosines) + one.solve.flops) for one in costs)
    assert work_of(SIZES, costs) == pytest.approx(by_hand)


def test_steps_of_other_solvers():
    """lbfgs whitens once; each step of newton takes two passes. Both say about how many passes, and why."""
    loss, numbers = LOSSES["log_loss"], task(alpha=np.array([1.0]), choose=False)
    smooth, zeros = replace(numbers, loss=loss), replace(numbers, loss=loss, penalty=L1())
    step, gram = SOLVERS["lbfgs"].costs(SIZES, of(300), 1, smooth)
    assert (step.count, gram.count) == (20, 1)
    assert gram.solve.flops > 300**3 / 3
    assert step.solve.flops < gram.solve.flops
    for chosen, name, passes in ((smooth, "lbfgs", 21), (zeros, "newton", 30)):
        for asked in ("auto", name):
            found = find_solver(asked, chosen, SIZES, of(300), 1)
            assert (found.solver.name, f"about {passes} passes" in found.why) == (name, True)


def test_few_rows_are_solved_in_the_dual():
    """So many unknowns as rows, however the solver was chosen."""
    few = replace(SIZES, rows=300)
    for name in ("auto", "cholesky"):
        assert "dual" in find_solver(name, task(), few, of(1000), 5).why
        assert "300 unknowns" in find_solver(name, task(), few, of(1000), 5).why
    assert "dual" not in find_solver("auto", task(reduce=5), few, of(1000), 5).why


X = da.zeros((40_000, 54), chunks=(4000, 54), dtype="float32")
Y = np.arange(40_000) % 7


@pytest.mark.parametrize("options", [{}, {"solver": "cg"}, {"solver": "lbfgs", "loss": "log_loss"}])
def test_a_plan_without_learning(options):
    """Folds, passes and the whole time; no word of learning."""
    features = 500 if "loss" in options else 9000
    found = dkl.plan(X, dkl.SingleKernelClassifier(n_components=features, cv=5, **options), Y)
    text = str(found)
    assert "7 outputs, 5 folds" in text
    assert "learn" not in text
    assert re.search(rf"passes  about {found.passes:.0f}\n", text)
    assert found.total_seconds > 0.9 * found.solve_seconds + CHOICE_PASSES * found.seconds
    learned = str(dkl.plan(X, dkl.SingleKernelClassifier(n_components=100, cv=5, learn="cv"), Y))
    assert "for each iteration on all rows" in learned
    assert "beside learning" in learned


def test_a_refusal_for_memory_says_what_fits(monkeypatch):
    """Conjugate gradients, if they are for the task and fit themselves."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 6 * 2**30)
    model = dkl.SingleKernelClassifier(n_components=9000, cv=5, solver="cholesky")
    with pytest.raises(MemoryError, match=r"use solver='cg' \(needs [\d.]+ GiB\), fewer components"):
        model.fit(X, Y)
    found = model.plan(X, Y, calibrate=False)
    assert str(found).endswith("GiB)")
    assert model.set_params(solver="auto").plan(X, Y, calibrate=False).fits
    for other in ({"solver": "cg", "n_components": 10**7}, {"loss": "log_loss"}, {"reduce": 50}):
        text = str(dkl.SingleKernelClassifier(**{"n_components": 30_000, **other}).plan(X, Y, calibrate=False))
        assert "does NOT fit" in text
        assert "solver='cg' (needs" not in text


def test_a_data_set_brings_its_y(tmp_path):
    """As on the command line; rows alone have one output."""
    import zarr

    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("X", data=np.zeros((70, 3)), chunks=(35, 3))
    group.create_array("y", data=np.arange(70) % 7, chunks=(35,))
    model = dkl.SingleKernelClassifier(n_components=10)
    for path, outputs in ((tmp_path / "a.zarr", 7), (f"{tmp_path}/a.zarr", 7), (tmp_path / "a.zarr" / "X", 1)):
        assert dkl.plan(path, model).sizes.outputs == outputs
    del group["y"]
    assert dkl.plan(tmp_path / "a.zarr", model).sizes.outputs == 1
