"""master: the restricted problem by prox-Newton, by ADMM and by FISTA, to the same certificate.

Wine (178 rows, from scikit-learn) and mfeat (2,000 rows), standardised; 100 frequencies, squared hinge of each class
against the rest, pairs of cosine and sine shared by the classes (l21), alpha a tenth and a hundredth of the least at
which all weights are zero. The certificate is the KKT residual over that least alpha. FISTA has its features in memory,
the largest eigenvalue of their gram for nothing, and one pass for each step. `pass_ratio` is its passes over those of
prox-Newton, the least of all problems; `objective_gap` the largest relative difference of objectives.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.frequencies import draw_unit
from dkl.features.waves import WaveMap
from dkl.kernels import KERNELS
from dkl.learn.admm_master import AdmmMaster
from dkl.learn.masters import NewtonMaster, Restricted, Solved
from dkl.learn.run import Run
from dkl.learn.sparsity import Sparsity
from dkl.losses import SquaredHinge
from dkl.solvers.fista import kkt_residual
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.benchmarks.data import is_given, mfeat
from tests.benchmarks.report import report

FREQUENCIES, TOL, MOST = 100, 1e-6, 20_000
BARS = {"pass_ratio": 5.0}
LOSS = SquaredHinge()


class Dense:
    """Features in memory, the objective and its slope."""

    def __init__(self, Phi: np.ndarray, y: np.ndarray, problem: Restricted) -> None:
        self.Phi, self.y, self.penalty = Phi, y, problem.norm.penalty

    def slope(self, W: np.ndarray) -> np.ndarray:
        """d mean loss / dW (d + 1, c)."""
        g = LOSS.slope(self.Phi @ W[:-1] + W[-1], self.y)
        return np.vstack([self.Phi.T @ g, g.sum(axis=0)]) / len(self.y)

    def objective(self, W: np.ndarray, lam: float) -> float:
        """Mean loss and penalty."""
        return float(LOSS.value(self.Phi @ W[:-1] + W[-1], self.y).mean()) + lam * self.penalty.value(W[:-1])

    def residual(self, W: np.ndarray, lam: float) -> float:
        """KKT, with the slope of the intercepts."""
        g = self.slope(W)
        return max(kkt_residual(-g[:-1], W[:-1], lam, self.penalty), float(np.abs(g[-1]).max()))

    def fista(self, lam: float, tol: float) -> tuple[np.ndarray, int]:
        """Weights, and steps, each of which would be a pass."""
        ones = np.hstack([self.Phi, np.ones((len(self.Phi), 1))])
        L = float(np.linalg.eigvalsh(ones.T @ ones / len(ones))[-1])
        W = V = np.zeros((ones.shape[1], scores_of(self.y)))
        t = 1.0
        for step in range(1, MOST + 1):
            U = V - self.slope(V) / L
            after = np.vstack([self.penalty.prox(U[:-1], lam / L), U[-1:]])
            if float(((V - after) * (after - W)).sum()) > 0:
                t, V = 1.0, after
            else:
                later = (1 + np.sqrt(1 + 4 * t * t)) / 2
                t, V = later, after + (t - 1) / later * (after - W)
            W = after
            if step % 10 == 0 and self.residual(W, lam) <= tol:
                return W, step
        return W, MOST


def scores_of(y: np.ndarray) -> int:
    """Scores of these classes."""
    return int(y.max()) + 1


def problems(options: argparse.Namespace) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Standardised rows and codes."""
    from sklearn.datasets import load_wine

    found = {"wine": load_wine(return_X_y=True)}
    if is_given(options):
        X, y = mfeat(options)
        found["mfeat"] = X, np.unique(y, return_inverse=True)[1]
    return {
        name: (((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)).astype(float), y)
        for name, (X, y) in found.items()
    }


def posed(X: np.ndarray, y: np.ndarray) -> tuple[Run, Restricted, Dense]:
    """The problem for a master, and in memory."""
    m, c = X.shape[1], scores_of(y)
    unit = draw_unit(KERNELS["gaussian"], m, FREQUENCIES, "orthogonal", np.random.default_rng(0))
    features = WaveMap(KERNELS["gaussian"], unit, np.full(m, m**-0.5), np.empty(0), 1.0, "paired")
    targets = Targets(float(len(y)), c, classes=np.arange(c))
    rows = Rows([Table("memory", X), Table("memory", y), None, None], ["X", "y", "w", "cv"])
    norm = Sparsity("l21").norm(features.column_group, np.ones(FREQUENCIES), c)
    problem = Restricted(GramProgram(features.at(float), targets, len(y)), LOSS, norm, True)
    Phi = np.empty((len(y), features.n_features))
    features.at(float).write(X, Phi)
    return Run(engine_for(False, "scheduler"), rows, Progress(0)), problem, Dense(Phi, y, problem)


def run(options: argparse.Namespace) -> None:
    """Every problem, alpha and solver."""
    warnings.simplefilter("ignore")
    rows, ratios, gap = [], [], 0.0
    for name, (X, y) in problems(options).items():
        run_, problem, dense = posed(X, y)
        c = scores_of(y)
        zero = np.zeros((dense.Phi.shape[1] + 1, c))
        alone = NewtonMaster().solve(run_, problem, zero, 1e300, 1e-9, {}).weights
        size = problem.norm.largest_lam(dense.slope(alone)[:-1])
        for share in (0.1, 0.01):
            lam, found = share * size, {}
            for kind, master in {"prox-Newton": NewtonMaster(), "ADMM": AdmmMaster()}.items():
                start = time.perf_counter()
                done: Solved = master.solve(run_, problem, zero, lam, TOL * size, {})
                found[kind] = done.weights, done.passes, time.perf_counter() - start
            start = time.perf_counter()
            W, steps = dense.fista(lam, TOL * size)
            found["FISTA"] = W, steps, time.perf_counter() - start
            values = {kind: dense.objective(W, lam) for kind, (W, _, _) in found.items()}
            gap = max(gap, max(values.values()) / min(values.values()) - 1)
            ratios.append(found["FISTA"][1] / found["prox-Newton"][1])
            for kind, (W, passes, seconds) in found.items():
                told = f"{passes:6,} passes, {seconds:7.2f} s, objective {values[kind]:.8f}, "
                rows.append((f"{name} {share:g} {kind}", told + f"KKT {dense.residual(W, lam) / size:.1e}"))
                print(rows[-1], flush=True)
    report("master", rows, {"pass_ratio": min(ratios), "objective_gap": gap}, BARS)
