"""Sigmas of several kernels through the group lasso: gradients of dense objectives, and what is learned on toys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dkl.engine.embedded import Embedded
from dkl.features.side_by_side import SideBySide
from dkl.learn import several_descents, stages
from dkl.learn.bandwidth import Start
from dkl.learn.group_path import GroupOptions, fit_groups
from dkl.learn.history import History
from dkl.learn.iterate import Iterated
from dkl.learn.search import Search
from dkl.learn.several_bandwidths import BandwidthOptions, _doubt, several_costs
from dkl.prepare.folds import Folds, Split
from dkl.prepare.prepared import Prepared
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import cluster_of, embedded
from tests.learn.several_data import (
    CODES,
    GROUPS,
    NUMBERS,
    SEED,
    SIGMAS,
    SIZES,
    SPLITS,
    WEIGHT,
    K,
    N,
    X,
    at_start,
    complex_objective,
    dense_features,
    dense_objective,
    learn,
    method_of,
    options_of,
    prepared,
    run_of,
    side_by_side,
)

STEP, TINY = 1e-4, 1e-30
ETA = np.sqrt(np.array(SIZES, float))
WIDTHS = [len(sigma) for sigma in SIGMAS]
BOTH = [(True, True), (True, False), (False, True), (False, False)]


def targets_of(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """y, and the dense targets that it stands for."""
    if kind in ("one", "two"):
        y = NUMBERS[:, : 1 + (kind == "two")]
        return y, y
    codes = CODES[2 if kind == "2 classes" else 3]
    signs = 2.0 * np.eye(codes.max() + 1)[codes] - 1
    return codes, signs[:, 1:] if kind == "2 classes" else signs


def scaled(x: np.ndarray, by: str) -> list[np.ndarray]:
    """sigma of each kernel at x."""
    factors = np.split(np.exp(x), np.cumsum(WIDTHS)[:-1]) if by == "input" else [np.exp(one) for one in x]
    return [sigma * factor for sigma, factor in zip(SIGMAS, factors, strict=True)]


def gradient_of(data: Prepared, options: BandwidthOptions) -> tuple[float, np.ndarray, Any]:
    """The objective at the start and its gradient in log sigma, in the units of y; and the row of the history."""
    method, step = at_start(data, options)
    return float(step.row.values["objective"]), step.state.search.descent.gradient * method.problem.unit, step.row


@pytest.mark.parametrize("objective", SPLITS)
@pytest.mark.parametrize("alpha", [1.0, 40.0])
@pytest.mark.parametrize(
    ("kind", "weighted", "intercept"),
    [(kind, *both) for kind in ("one", "two") for both in BOTH]
    + [("2 classes", True, True), ("3 classes", False, True), ("3 classes", True, False)],
)
def test_gradients_to_the_last_digits(
    objective: str, alpha: float, kind: str, weighted: bool, intercept: bool
) -> None:  # fmt: skip
    """Every log sigma, by complex steps through features, weights and errors."""
    y, Y = targets_of(kind)
    w, split = WEIGHT if weighted else np.ones(N), SPLITS[objective]
    data = prepared(y, w if weighted else None, split, intercept=intercept)
    value, gradient, row = gradient_of(data, options_of(objective, intercept, alpha=alpha, by="input"))
    fold = split.fold_of(N, SEED)

    def at(x: np.ndarray) -> complex:
        Psi = dense_features(scaled(x, "input"))
        return complex_objective(objective, Y, w, fold, Psi, alpha, intercept, ETA)

    right = np.array([at(1j * TINY * step).imag / TINY for step in np.eye(5)])
    assert value == pytest.approx(at(np.zeros(5, complex)).real, rel=1e-9)
    np.testing.assert_allclose(gradient, right, atol=1e-8 * max(np.abs(right).max(), 1e-3))
    off = np.repeat(np.asarray(row.values["norms"]) == 0, WIDTHS)
    assert (gradient[off] == 0).all()
    assert row.values["alpha"] == pytest.approx(alpha)


@pytest.mark.parametrize("objective", SPLITS)
@pytest.mark.parametrize("by_output", [False, True])
def test_gradients_of_the_full_solution_solved_again(objective: str, by_output: bool) -> None:
    """By central differences, one sigma for each kernel, with a ridge and other weights of the penalty."""
    eta, ridge, alpha, split = np.array([1.0, 2.0, 3.0]), 0.3, 4.0, SPLITS[objective]
    data = prepared(NUMBERS, WEIGHT, split)
    options = options_of(objective, alpha=alpha, eta=eta, ridge=ridge, by_output=by_output)
    value, gradient, _ = gradient_of(data, options)
    Y, fold = NUMBERS - data.targets.shift, split.fold_of(N, SEED)

    def at(x: np.ndarray) -> float:
        sigmas = scaled(x, "kernel")
        return dense_objective(objective, Y, WEIGHT, fold, sigmas, alpha, True, eta, ridge, by_output)

    right = np.array([(at(STEP * step) - at(-STEP * step)) / (2 * STEP) for step in np.eye(3)])
    assert value == pytest.approx(at(np.zeros(3)), rel=1e-10)
    np.testing.assert_allclose(gradient, right, atol=1e-6 * np.abs(right).max())


def test_gradients_of_narrow_blocks() -> None:
    """float32 adds its own error."""
    found = {}
    for dtype in (np.float64, np.float32):
        data = prepared(NUMBERS, WEIGHT, SPLITS["cv"], dtype=dtype)
        found[dtype] = gradient_of(data, options_of("cv", alpha=4.0))[1]
    np.testing.assert_allclose(found[np.float32], found[np.float64], atol=3e-4 * np.abs(found[np.float64]).max())


@pytest.mark.parametrize("alpha", [1.0, 40.0])
def test_joint_is_the_objective_of_the_path(alpha: float) -> None:
    """Twice that of learn/group_path.py over the outputs, at the same alpha; and the same weights."""
    data = prepared(NUMBERS, WEIGHT, SPLITS["joint"])
    value, _, row = gradient_of(data, options_of("joint", alpha=alpha))
    options = GroupOptions(GROUPS, True, alphas=np.array([alpha]), rule="last", tol=1e-12)
    weights = fit_groups(run_of(data), data.gram(data.split), options)
    assert value == pytest.approx(weights.objective * 2 / NUMBERS.shape[1] / data.targets.weight_unit**0, rel=1e-9)
    np.testing.assert_allclose(row.values["norms"], weights.paths[0].norms[0], rtol=1e-4)


# what is learned


def toy(n: int = 1500) -> tuple[np.ndarray, np.ndarray, SideBySide]:
    """A fast wave of the first input, a slow one of two others, three channels of noise; all sigmas begin at 0.8."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 8))
    wave = np.sin(2.6 * rows[:, 0]) + np.sin(0.4 * rows[:, 2]) * rows[:, 3]
    channels = [np.array(inputs) for inputs in ([0], [1], [2, 3], [4, 5], [6], [7])]
    features = side_by_side([np.full(len(c), 0.8) for c in channels], channels, [24] * 6, ["gaussian"] * 6)
    return rows, (wave + 0.3 * rng.normal(size=n))[:, None], features


def error_of(rows: np.ndarray, y: np.ndarray, features: SideBySide, new: np.ndarray, truth: np.ndarray) -> float:
    """Mean squared error on other rows of the path's best weights by five folds."""
    data = prepared(y, None, Split(Folds(5, None)), rows, features)
    found = fit_groups(run_of(data), data.gram(data.split), GroupOptions(features.column_group, True))
    Psi = features.scale * features_of(features, new)
    return float(((Psi @ found.coef + found.intercept - truth) ** 2).mean())


def features_of(features: SideBySide, rows: np.ndarray) -> np.ndarray:
    """Unscaled features."""
    blocks = features.at(np.float64)
    out = np.empty((len(rows), features.n_features))
    blocks.write(blocks.prepare(rows), out)
    return out


@pytest.mark.parametrize("objective", SPLITS)
def test_learned_sigmas_lower_the_error_on_other_rows(objective: str) -> None:
    """Beside the best weights of the same kernels at their fixed sigmas; channels of noise are not used."""
    rows, y, features = toy()
    here, there = slice(0, 600), slice(600, None)
    data = prepared(y[here], None, SPLITS[objective], rows[here], features)
    options = options_of(objective, **({"alpha": 3.0} if objective == "joint" else {}))
    done = learn(data, options, max_iter=40)
    stage, values = (np.array(done.history.columns[name]) for name in ("stage", "objective"))
    assert set(stage) == {0, 1}
    for one in (0, 1):
        assert (np.diff(values[stage == one]) < 0).all()
    assert done.reason == "converged"
    assert done.result.moved
    fixed, learned = (
        error_of(rows[here], y[here], own, rows[there], y[there]) for own in (features, done.result.features)
    )
    print(f"{objective}: {fixed:.4f} with fixed sigmas, {learned:.4f} with learned ones")
    assert learned < 0.4 * fixed
    norms = done.result.norms
    assert min(norms[0], norms[2]) > 2 * max(norms[[1, 3, 4, 5]])


def test_alpha_is_learned_or_kept() -> None:
    """alpha=None finds the best one at every point; a given one is lowered in the first stage alone."""
    rows, y, features = toy()
    data = prepared(y[:400], None, SPLITS["cv"], rows[:400], features)
    free = learn(data, options_of("cv"), max_iter=3)
    stage, alpha = (np.array(free.history.columns[name]) for name in ("stage", "alpha"))
    assert len(set(alpha[stage == 0])) == 1
    assert len(set(alpha[stage == 1])) > 1
    assert free.result.alpha == alpha[-1]
    kept = learn(data, options_of("cv", alpha=2.0), max_iter=3)
    stage, alpha = (np.array(kept.history.columns[name]) for name in ("stage", "alpha"))
    np.testing.assert_allclose(alpha, np.where(stage == 0, 0.2, 2.0))
    assert kept.result.alpha == 2.0
    straight = learn(data, options_of("cv", alpha=2.0, lowered=1.0), max_iter=3)
    assert set(straight.history.columns["stage"]) == {0}
    np.testing.assert_allclose(straight.history.columns["alpha"], 2.0)


def test_the_best_alpha_of_a_point_is_near_that_of_a_fine_path() -> None:
    """The error at the alpha that is found, and at 200 others."""
    rows, y, features = toy()
    data = prepared(y[:400], None, Split(Folds(K, None)), rows[:400], features)
    method, step = at_start(data, options_of("cv"))
    options = GroupOptions(features.column_group, True, count=200, least=1e-3, tol=1e-10)
    path = fit_groups(run_of(data), data.gram(data.split), options).paths[0]
    assert path.errors is not None
    best = path.errors.mean(axis=1).min()
    assert step.row.values["validation_error"] <= best * (1 + 1e-4)
    assert 0.5 < step.row.values["alpha"] / path.alphas[path.errors.mean(axis=1).argmin()] < 2
    assert method.problem.alpha is None


def test_a_kernel_that_is_off_is_brought_back_by_a_lowered_alpha() -> None:
    """At the given alpha the fast wave's kernel is off where it begins, so that its sigma cannot move there."""
    rows, y, features = toy()
    data, found = prepared(y[:600], None, SPLITS["joint"], rows[:600], features), {}
    for lowered in (1.0, 0.1):
        done = learn(data, options_of("joint", alpha=15.0, lowered=lowered), max_iter=30)
        found[lowered] = done.result
    assert found[1.0].norms[0] == 0
    assert found[1.0].x[0] == 0
    assert found[0.1].norms[0] > 0.1
    assert found[0.1].x[0] > 0.5
    assert found[0.1].error < 0.9 * found[1.0].error


def test_a_descent_without_a_step_forgets_its_curvature_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pairs of the other side of a kink lead nowhere: down the gradient, before it ends."""
    data, told = prepared(NUMBERS, WEIGHT, SPLITS["joint"]), []
    real = several_descents.restarted
    monkeypatch.setattr(several_descents, "restarted", lambda descent: told.append(len(descent.steps)) or real(descent))
    run = run_of(data, 30, 1e-3)
    method = method_of(data, options_of("joint", lowered=1.0))
    state = method.begin(run)
    for _ in range(4):
        state = method.step(run, state).state
    search = state.search
    assert isinstance(search, Search)
    wrong = search.descent._replace(
        trial=2 * search.descent.x - search.descent.trial, direction=-search.descent.direction
    )
    stuck = wrong._replace(length=1e-7)  # uphill, and the line search is at its end
    step = method.step(run, state._replace(search=search._replace(descent=stuck), refs=None))
    assert told == [len(search.descent.steps)]
    assert step.state.ended == ""
    assert isinstance(step.state.search, Search)
    assert not len(step.state.search.descent.steps)
    after = method.step(run, step.state)
    while after.row is None and not after.state.ended:
        after = method.step(run, after.state)
    assert after.row is not None
    assert after.row.values["objective"] < search.descent.value * method.problem.unit


def test_rows_set_aside_say_when_to_stop() -> None:
    """Early stopping has a fold of its own, which no system sees."""
    split = Split(Folds(K, None), unseen=(1, 5))
    rows, y, features = toy()
    done = learn(prepared(y[:400], None, split, rows[:400], features), options_of("cv", by="input"), max_iter=8)
    unseen = np.array(done.history.columns["unseen_error"])
    assert np.isfinite(unseen).all()
    stage = np.array(done.history.columns["stage"])
    best = unseen[stage == 1].min()
    assert unseen[-1] == best


def test_few_rows_do_not_switch_groups_off() -> None:
    """alpha is that of all rows: on a quarter of them the groups that are used are about the same."""
    rows, y, features = toy()
    data = prepared(y, None, SPLITS["joint"], rows, features)
    found = []
    for share in (1.0, 0.25):
        method, step = at_start(data, options_of("joint", alpha=10.0, share=share))
        found.append(np.asarray(step.row.values["norms"]))
        assert step.row.rows < 500 or share == 1
        assert step.row.values["alpha"] == pytest.approx(10)
    np.testing.assert_allclose(found[0], found[1], atol=0.4 * found[0].max())
    assert method.share == 0.25


def test_units_of_y_change_nothing_but_alpha() -> None:
    """y a million times as large: the same sigmas, alpha a million times as large."""
    small, large = (
        learn(prepared(NUMBERS * unit, WEIGHT, SPLITS["cv"]), options_of("cv"), max_iter=2) for unit in (1.0, 2.0**20)
    )
    np.testing.assert_array_equal(small.result.x, large.result.x)
    assert large.result.alpha == 2.0**20 * small.result.alpha
    assert large.result.error == 2.0**40 * small.result.error
    np.testing.assert_array_equal(2.0**20 * small.result.norms, large.result.norms)


# the way there


def bits(done: Any) -> Any:
    """What was learned, bit for bit; not how long it took."""
    arrays = done.history.arrays()
    names = [name for name in sorted(arrays) if name not in ("seconds", "passes")]
    return done.result.x.tobytes(), done.result.alpha, [arrays[name].tobytes() for name in names], done.reason


STARTS = (Start(), Start(3.0))


@pytest.mark.parametrize("objective", ["joint", "cv"])
def test_it_resumes_to_the_same_bits(objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any step, from its checkpoint."""
    data, options = prepared(NUMBERS, WEIGHT, SPLITS[objective]), options_of(objective, starts=STARTS, by="input")
    right, steps = bits(learn(data, options, max_iter=3)), 0
    cls = several_descents.SeveralBandwidths
    real = cls.step

    class Killed(Exception):
        pass

    def step(self: Any, run: Any, state: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps % 7 == 0:
            raise Killed
        return real(self, run, state)

    monkeypatch.setattr(cls, "step", step)
    kills = 0
    while True:
        try:
            kept = Checkpoint(str(tmp_path / "kept"), {"what": "test"})
            found = learn(data, options, max_iter=3, checkpoint=kept)
            break
        except Killed:
            kills += 1
            assert kills < 50
    assert kills > 1
    assert bits(found) == right


def test_any_number_of_threads_has_the_same_bits_and_chunks_change_rounding_alone() -> None:
    """One thread that takes all blocks, or several; chunks of a row, of 7, of 64 and of all rows."""
    rows, y, features = toy(130)

    def found(engine: Any, chunk: int = 0) -> Any:
        data = prepared(y, None, SPLITS["cv"], rows, features, chunk=chunk)
        return learn(data, options_of("cv"), max_iter=2, engine=engine)

    one = found(Embedded(1))
    assert bits(found(Embedded(3))) == bits(one)
    with embedded():
        for chunk in (1, 7, 64, 130):
            chunked = found(Embedded(2), chunk)
            np.testing.assert_allclose(chunked.result.x, one.result.x, atol=1e-7)


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_cluster_has_the_same_bits(tmp_path: Path) -> None:
    """Two processes that sum, and a scheduler that solves."""

    def found(objective: str) -> Any:
        data = prepared(NUMBERS, WEIGHT, SPLITS[objective], chunk=16)
        return bits(learn(data, options_of(objective, starts=STARTS), max_iter=2))

    with embedded():
        right = found("cv"), found("joint")
    with cluster_of(tmp_path, 2):
        assert (found("cv"), found("joint")) == right


def test_the_passes_are_stated() -> None:
    """Each kind of pass that an iteration makes is in the plan, and takes what it says."""
    data, made = prepared(NUMBERS, WEIGHT, SPLITS["cv"]), {}

    class Watched(Embedded):
        def sum(self, program: Any, *args: Any) -> Any:
            made[program.task] = program.cost()
            return super().sum(program, *args)

    learn(data, options_of("cv"), max_iter=1, engine=Watched())
    gram = data.gram(data.split)
    costs = several_costs(gram.sizes, gram.map_cost, objective="cv", folds=K, sigmas=5, size=8)
    stated = {cost.name: cost for cost in costs}
    assert set(made) == {*stated, "scale"}
    for name, cost in stated.items():
        assert cost.thread_bytes == made[name].thread_bytes
        assert cost.sums_bytes == made[name].sums_bytes
        assert cost.flops == made[name].flops
        assert cost.repeated
    assert costs[0].solve.bytes > 0


# what is said


def test_nothing_is_used() -> None:
    """At an alpha so large that all weights are zero no sigma has a gradient, and the record says so."""
    data = prepared(NUMBERS, WEIGHT, SPLITS["joint"])
    done = learn(data, options_of("joint", alpha=1e7))
    assert not done.result.moved
    assert not done.result.norms.any()
    assert done.result.warning is not None
    assert "no kernel is used at alpha=1e+07" in done.result.warning
    np.testing.assert_array_equal(done.result.x, 0)


def test_ending_where_it_began_is_said() -> None:
    """With a tolerance that nothing meets."""
    data = prepared(NUMBERS, WEIGHT, SPLITS["joint"])
    done = learn(data, options_of("joint", alpha=1.0), tol=50.0)
    assert done.reason == "converged"
    assert not done.result.moved
    assert done.result.warning is not None
    assert "ended where it began" in done.result.warning
    assert "tol=50" in done.result.warning


def test_a_kink_is_said() -> None:
    """A slope that promises more than the tolerance, and a descent that found no step."""
    data = prepared(NUMBERS, WEIGHT, SPLITS["joint"])
    done = learn(data, options_of("joint", alpha=1.0), max_iter=30)
    assert (done.reason, done.result.warning) == ("converged", None)
    steep = History(done.history.about, done.history.columns)
    steep.columns["gradient_norm"][-1] = 10 * steep.columns["objective"][-1]
    said = _doubt(Iterated(done.result, steep, "converged"), method_of(data, options_of("joint")), 1e-3)
    assert said is not None
    assert "a kink" in said
    assert "promised 10.0%" in said
    assert _doubt(Iterated(done.result, steep, "max_iter"), method_of(data, options_of("joint")), 1e-3) is None


def test_refusals() -> None:
    """What does not fit, and what to type."""
    data = prepared(NUMBERS, None, SPLITS["cv"])
    none = {"alpha": None}
    with pytest.raises(ValueError, match="alpha=None with the objective 'joint'"):
        method_of(data, options_of("joint", **none))
    with pytest.raises(ValueError, match="folds=1; use 2 folds or more"):
        method_of(prepared(NUMBERS, None, SPLITS["joint"]), options_of("cv"))
    with pytest.raises(ValueError, match="objective='gcv'"):
        method_of(data, options_of("gcv"))
    with pytest.raises(ValueError, match="alpha=-1"):
        method_of(data, options_of("cv", alpha=-1.0))
    with pytest.raises(ValueError, match="by='row'"):
        method_of(data, options_of("cv", by="row"))
    with pytest.raises(ValueError, match="must be 3 finite numbers above 0"):
        method_of(data, options_of("cv", eta=np.ones(2)))
    with pytest.raises(ValueError, match="features is a fourier map"):
        method_of(replace(data, features=side_by_side().channels[0].of), options_of("cv"))  # type: ignore[attr-defined]
    fold = SPLITS["cv"].fold_of(N, SEED)
    with pytest.raises(ValueError, match="fold 1 of 3, or the others, have no weight"):
        learn(prepared(NUMBERS, np.where(fold == 1, 0.0, 1.0), SPLITS["cv"]), options_of("cv"))
    broken = X.copy()
    broken[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17, column 2"):
        learn(prepared(NUMBERS, None, SPLITS["cv"], broken), options_of("cv"))


def test_small_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few blocks at a lowered alpha, then more of them at alpha itself."""
    monkeypatch.setattr(stages, "FEW_ROWS", 200)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 1)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    rows, y, features = toy(4000)
    method = method_of(prepared(y, None, SPLITS["cv"], rows, features), options_of("cv"))
    data = prepared(y, None, SPLITS["cv"], rows, features)
    run = run_of(data)
    counts = [sum(stop - start for start, stop in stage) for stage in method._stages(run, method.begin(run))]
    assert counts == sorted(counts)
    assert counts[-1] == 4000
    done = learn(data, options_of("cv"), max_iter=2)
    assert done.history.columns["rows"][-1] == 4000
    assert done.history.columns["rows"][0] == counts[0]
