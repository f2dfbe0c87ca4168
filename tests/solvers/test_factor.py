"""Factors of A + lam I against numpy's solvers."""

import threading
import time

import numpy as np
import pytest
import scipy.linalg

from dkl.engine.threads import one_blas_thread
from dkl.solvers.factor import factorise


def positive(d, rank=None, seed=0):
    """Z'Z of well spread rows."""
    Z = np.random.default_rng(seed).normal(size=(2 * d if rank is None else rank, d))
    return Z.T @ Z


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("lam", [0.0, 0.5])
@pytest.mark.parametrize("d", [1, 5, 255, 256, 257, 700])
def test_solve(d, lam, outputs):
    """(A + lam I)^-1 B by Cholesky, in strips shorter and longer than the matrix; B is left as it was."""
    A, B = positive(d), np.random.default_rng(1).normal(size=(d, outputs))
    before = B.copy()
    factor = factorise(A.copy(), lam)
    assert (factor.method, factor.jitter) == ("cholesky", 0.0)
    expected = np.linalg.solve(A + lam * np.eye(d), B)
    np.testing.assert_allclose(factor.solve(B), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(B, before)


@pytest.mark.parametrize(("d", "rank"), [(2, 1), (5, 3), (50, 20), (300, 200)])
def test_singular_matrix_gives_nearly_the_least_solution(d, rank):
    """Without lam, jitter holds the null space down: A x = b is solved, close to the pseudo-inverse's solution."""
    A = positive(d, rank)
    b = A @ np.random.default_rng(2).normal(size=(d, 2))
    factor = factorise(A.copy(), 0.0)
    x, least = factor.solve(b), np.linalg.pinv(A, hermitian=True) @ b
    assert factor.method == "jitter"
    assert 0 < factor.jitter < 1e-9 * np.trace(A) / d
    np.testing.assert_allclose(A @ x, b, atol=1e-9 * np.abs(b).max())
    assert np.linalg.norm(x - least) < 0.3 * np.linalg.norm(least)


@pytest.mark.parametrize("d", [3, 10, 30])
def test_one_missing_rank_is_not_taken_for_a_regular_matrix(d):
    """Rounding can leave the last pivot well above d eps; the null space must still be held down, at every seed."""
    for seed in range(60):
        A = positive(d, d - 1, seed)
        b = A @ np.ones((d, 1))
        x, least = factorise(A.copy(), 0.0).solve(b), np.linalg.pinv(A, hermitian=True) @ b
        assert np.linalg.norm(x - least) < 0.3 * np.linalg.norm(least), f"seed {seed}"


@pytest.mark.parametrize("lam", [1e-3, 2.0])
def test_lam_makes_a_singular_matrix_regular(lam):
    """With lam no jitter is needed."""
    A, B = positive(50, 20), np.random.default_rng(3).normal(size=(50, 1))
    factor = factorise(A.copy(), lam)
    assert factor.method == "cholesky"
    np.testing.assert_allclose(factor.solve(B), np.linalg.solve(A + lam * np.eye(50), B), rtol=1e-7)


@pytest.mark.parametrize("d", [1, 4])
def test_zero_matrix(d):
    """The least solution of 0 x = b is 0."""
    factor = factorise(np.zeros((d, d)), 0.0)
    assert factor.method == "eigen"
    np.testing.assert_array_equal(factor.solve(np.ones((d, 2))), np.zeros((d, 2)))


def test_zero_matrix_with_lam():
    """lam I alone."""
    np.testing.assert_allclose(factorise(np.zeros((3, 3)), 4.0).solve(np.ones((3, 1))), 0.25)


def test_negative_directions_are_left_out():
    """What no jitter can mend is solved in the positive eigenvectors only."""
    Q = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 6)))[0]
    A = Q @ np.diag([3.0, 2.0, 1.0, 0.5, 0.0, -0.1]) @ Q.T
    B = np.random.default_rng(5).normal(size=(6, 2))
    factor = factorise((A + A.T) / 2, 0.0)
    positive_part = Q[:, :4] @ np.diag([1 / 3, 1 / 2, 1, 2]) @ Q[:, :4].T
    assert (factor.method, factor.jitter) == ("eigen", 0.0)
    np.testing.assert_allclose(factor.solve(B), positive_part @ B, atol=1e-10)


def test_eigen_adds_lam_and_takes_the_jitter_back():
    """The last rung solves A + lam I itself."""
    A = np.diag([4.0, 3.0, -1.0])
    np.testing.assert_allclose(factorise(A, 0.5).solve(np.ones((3, 1)))[:, 0], [1 / 4.5, 1 / 3.5, 0], rtol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_matrix_that_is_not_finite_is_refused(value):
    """The sentence says what to change."""
    A = positive(4)
    A[2, 1] = A[1, 2] = value
    with pytest.raises(
        ValueError, match=r"the gram matrix of \d+ features is not finite; scale the inputs or lower sigma"
    ):
        factorise(A, 1.0)


def longest_pause(work) -> float:
    """The largest share of work's time in which another thread could not run."""
    gaps, done = [], threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    watcher = threading.Thread(target=tick)
    with one_blas_thread():
        watcher.start()
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    return max(gaps) / seconds


def test_other_threads_run_during_a_solve():
    """A scheduler's event loop goes on: factorise never holds the interpreter for long, as scipy's wrappers do."""
    matrix = np.eye(2500) * 2500 + np.random.default_rng(0).random((2500, 2500))
    matrix = matrix + matrix.T
    ours = longest_pause(lambda: factorise(matrix.copy(), 1.0).solve(matrix))
    scipys = longest_pause(lambda: scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), matrix))
    assert ours < 0.2
    assert scipys > ours


def test_the_rungs_of_jitter():
    """10, 1e3 and 1e5 eps of the mean eigenvalue, the first that leaves the matrix regular; then eigenvectors."""
    eps, Q = np.finfo(float).eps, np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    for below, rung in ((0.0, 10), (100.0, 1e3), (2e4, 1e5)):
        A = Q @ np.diag([2.0, 1.0, -below * eps]) @ Q.T
        factor = factorise((A + A.T) / 2, 0.0)
        assert factor.method == "jitter"
        assert factor.jitter == pytest.approx(rung * eps * np.trace(A) / 3, rel=1e-6)
        shifted = A + factor.jitter * np.eye(3)
        np.testing.assert_allclose(factor.lower @ factor.lower.T, shifted, atol=1e-12)
    A = Q @ np.diag([2.0, 1.0, -1e7 * eps]) @ Q.T
    factor = factorise((A + A.T) / 2, 0.0)
    assert factor.method == "eigen"
    np.testing.assert_allclose(factor.values, [1, 2], rtol=1e-9)


def test_small_eigenvalues_are_left_out():
    """At or below d eps of the largest, where nothing else has helped; above it they are kept."""
    eps = np.finfo(float).eps
    for size, kept in ((1.5, 3), (0.5, 2)):
        factor = factorise(np.diag([1.0, 0.5, 4 * eps * size, -0.1]), 0.0)
        assert factor.method == "eigen"
        assert len(factor.values) == kept
