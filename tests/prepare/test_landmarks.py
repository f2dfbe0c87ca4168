"""Landmarks: samples joined, rounds of kmeans++, the ridge of leverage, and the map they make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress, listening
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.landmark_weights import Far, Leverage
from dkl.kernels import KERNELS
from dkl.kernels.values import kernel_values
from dkl.prepare import landmarks as nystroem
from dkl.prepare.landmarks import Wanted, draw_landmarks, far_rows, learn_landmarks, leveraged, pilot_features, sampled
from dkl.sums.sample import RowSample
from dkl.sums.scatter import ScatterProgram
from dkl.sums.tree import RunningSum, TreeTotal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
WANTED = Wanted(KERNELS["gaussian"], np.full(3, 0.5), 1.0, np.dtype(np.float64), 6, 100)


def total(numbers, refusal=None):
    numbers = np.asarray(numbers, int)
    found = TreeTotal(RunningSum(), refusal)
    found.tree.add(0, RowSample(9, np.linspace(0, 1, len(numbers)), numbers, X[numbers]))
    return found


def test_samples_are_joined():
    """Rows of a pass after those of earlier ones."""
    one = sampled(total([5, 3]), None)
    assert one.numbers.tolist() == [5, 3]
    both = sampled(total([7, 1, 2]), one)
    assert both.numbers.tolist() == [5, 3, 7, 1, 2]
    np.testing.assert_array_equal(both.rows, X[[5, 3, 7, 1, 2]])
    assert len(both.keys) == 5
    assert sampled(total([]), one).numbers.tolist() == [5, 3]
    with pytest.raises(ValueError, match="sample_weight is zero for every row, so 0 rows can be drawn; give"):
        sampled(total([]), None)
    with pytest.raises(ValueError, match="row 8 is bad"):
        sampled(total([1], (8, "row 8 is bad")), None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_map_of_landmarks(dtype):
    """In the order of their rows; exact between landmarks; wide unless blocks are float32."""
    wanted = replace(WANTED, dtype=np.dtype(dtype))
    found = wanted.map(sampled(total([5, 3, 9]), None))
    assert found.numbers.tolist() == [3, 5, 9]
    np.testing.assert_array_equal(found.landmarks, X[[3, 5, 9]])
    assert found.wide == (dtype == np.float64)
    K = kernel_values(WANTED.kernel, WANTED.sigma, X[[3, 5, 9]], X[[3, 5, 9]])
    np.testing.assert_allclose((K @ found.whitening) @ (K @ found.whitening).T, K, atol=1e-9)


def test_kernel_values_that_are_not_finite():
    """Said with what to do."""
    with pytest.raises(ValueError, match="the kernel value of rows 0 and 0 is nan; scale the inputs or lower sigma"):
        WANTED.map(RowSample(9, np.zeros(2), np.arange(2), np.array([[1e300, 0, 0], [np.inf, 0, 0]])))


def test_every_pass_has_keys_of_its_own():
    """The seed of a step; as many rows as asked for."""
    program = WANTED.sample(4, 3)
    assert (program.most, program.seed) == (4, 103)
    assert (WANTED.sample(6).most, WANTED.sample(6).seed, WANTED.sample(6).worth) == (6, 100, None)


def test_far_rows():
    """The next pass draws by the distance from all landmarks so far."""
    _, kept = far_rows(total([7, 1]), wanted=WANTED, before=sampled(total([5]), None), share=2, step=3)
    assert kept["before"].numbers.tolist() == [5, 7, 1]
    program = kept["landmarks"]
    assert (program.most, program.seed) == (2, 103)
    assert isinstance(program.worth, Far)
    np.testing.assert_array_equal(program.worth.centres, X[[5, 7, 1]])


def test_rows_by_leverage():
    """psi'(G + lam I)^-1 psi, at the lam where half as many directions as landmarks matter."""
    _, kept = pilot_features(total(np.arange(12)), wanted=WANTED, n_rows=40)
    pilot, program = kept["pilot"], kept["scatter"]
    assert isinstance(program, ScatterProgram)
    sums, space = program.start(), program.workspace()
    program.add(sums, space, 0, 0, (X,))
    _, kept = leveraged(sums, wanted=WANTED, pilot=pilot)
    drawn = kept["landmarks"]
    assert (drawn.most, drawn.seed) == (6, 101)
    assert isinstance(drawn.worth, Leverage)
    Psi = pilot.at(np.float64).transform(X)
    G, lam = Psi.T @ Psi, drawn.worth.lam
    values = np.linalg.eigvalsh(G)
    assert (values / (values + lam)).sum() == pytest.approx(3.0, rel=1e-6)
    root = drawn.worth.root
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(G + lam * np.eye(len(G))), rtol=1e-6, atol=1e-9)
    sums.refusal = (2, "row 2 is bad")
    with pytest.raises(ValueError, match="row 2 is bad"):
        leveraged(sums, wanted=WANTED, pilot=pilot)


@pytest.mark.parametrize(
    ("scheme", "count", "passes"),
    [("uniform", 6, 1), ("kmeans++", 6, 5), ("kmeans++", 3, 3), ("kmeans++", 1, 1), ("leverage", 6, 3)],
)
def test_passes_of_a_scheme(scheme, count, passes):
    """One; five rounds, or as many as there are landmarks; three. Always as many different rows as asked for."""
    events, rows = [], Rows([Table("memory", X), None], ["X", "sample_weight"])
    wanted = replace(WANTED, count=count)
    with listening(events.append):
        found = learn_landmarks(engine_for(False), rows, wanted, scheme, Progress(0))
    assert len(set(found.numbers.tolist())) == count
    assert sum(event["event"] == "pass" for event in events) == passes
    assert (nystroem.ROUNDS, nystroem.START_TERMS) == (5, 15)


def test_the_rounds_of_kmeans():
    """As even as they can be: 1, 1, 1, 1 and 2 of six, drawn far from those before, by hand."""
    so_far = None
    for step, share in enumerate((1, 1, 1, 1, 2)):
        worth = None if so_far is None else Far(WANTED.kernel, WANTED.sigma, so_far.rows)
        program = WANTED.sample(share, step, worth)
        sums, space = program.start(), program.workspace()
        program.add(sums, space, 0, 0, (X, None))
        so_far = sampled(sums, so_far)
    rows = Rows([Table("memory", X), None], ["X", "sample_weight"])
    found = learn_landmarks(engine_for(False), rows, WANTED, "kmeans++", Progress(0))
    assert found.numbers.tolist() == sorted(so_far.numbers.tolist())


PARAMS = {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "groups": "each", "sigma": 0.5, "landmarks": "uniform"}


def test_landmarks_of_an_estimator():
    """Groups and sigma of its parameters; rows that are like others, or are too few, are said to be missing."""
    told = (Table("memory", X), None, np.dtype(np.float64), np.random.default_rng(3), Progress(0))
    found, groups = draw_landmarks({**PARAMS, "n_components": 8, "place": "scheduler"}, *told)
    assert groups.tolist() == [0, 1, 2]
    assert found.sigma.tolist() == [0.5] * 3
    assert len(found.numbers) == 8
    whole, _ = draw_landmarks({**PARAMS, "n_components": 40, "place": "scheduler"}, *told)
    assert whole.numbers.tolist() == list(range(40))
    with pytest.warns(UserWarning, match="n_components=41, but X gives 40 landmarks"):
        draw_landmarks({**PARAMS, "n_components": 41, "place": "scheduler"}, *told)


def test_landmarks_that_nearly_coincide_are_counted():
    """Rows of a line seen by a wide kernel span few directions: numpy's rank says how many."""
    params = {"n_components": 30, "kernel": "gaussian", "sigma": 0.05, "skew": 1.0, "groups": None, "n_terms": 5,
              "landmarks": "uniform", "place": "client"}  # fmt: skip
    rows = Table("memory", np.linspace(-1, 1, 40)[:, None])
    progress, said = Progress(0), []
    progress.say = lambda line, note="": said.append(line)
    features, _ = draw_landmarks(params, rows, None, np.dtype(np.float64), np.random.default_rng(0), progress)
    rank = np.linalg.matrix_rank(np.exp(-0.5 * (0.05 * (features.landmarks - features.landmarks.T)) ** 2))
    assert abs(features.n_features - rank) <= 2
    left_out = f"30 landmarks make {features.n_features} features: {30 - features.n_features} directions are rounding"
    assert [line.startswith(left_out) for line in said] == [True]
