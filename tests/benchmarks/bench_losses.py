"""losses: every loss, penalty and solver on random problems, against solvers that are not dkl's (tests/loss_oracle.py).

Rows are weighted, the intercept is not penalised. A line for each loss and penalty has, for each solver that takes
them, the largest relative excess of the objective over the least one known; "!" marks a certificate that was not met.
--seeds is the number of problems of each.
"""

from __future__ import annotations

import time
import warnings
from argparse import Namespace

from sklearn.exceptions import ConvergenceWarning

from tests.benchmarks.report import report
from tests.loss_oracle import PENALTIES, SOLVERS, TARGETS, Drawn

TOL, MAX_ITER = 1e-7, 200
BARS = {"certificates_missed": 0, "worst_excess": 1e-5}


def run(options: Namespace) -> None:
    """Every combination."""
    begin, rows, places = time.perf_counter(), [], []
    figures = {"combinations": 0.0, "fits": 0.0, "certificates_missed": 0.0, "worst_excess": 0.0, "oracle_behind": 0.0}
    for target, losses in TARGETS.items():
        for loss in losses:
            for penalty in PENALTIES:
                found = [one(seed, target, loss, penalty) for seed in range(options.seeds)]
                told = []
                for solver in (name for name in SOLVERS if name in found[0]):
                    met, excess = zip(*(each[solver] for each in found), strict=True)
                    missed = len(met) - sum(met)
                    places.append((max(excess), f"{target}, {loss}, {penalty}, {solver}"))
                    told.append(f"{solver} {max(0.0, *excess):.0e}{'!' * missed}")
                    figures["combinations"] += 1
                    figures["fits"] += len(met)
                    figures["certificates_missed"] += missed
                    figures["oracle_behind"] = max(figures["oracle_behind"], -min(excess))
                rows.append((f"{target}: {loss}, {penalty}", ", ".join(told)))
                print(f"  {rows[-1][0]:<52}  {rows[-1][1]}", flush=True)
    worst, place = max(places)
    figures |= {"worst_excess": worst, "minutes": (time.perf_counter() - begin) / 60}
    summary = [
        ("work", f"{figures['combinations']:.0f} combinations, {figures['fits']:.0f} fits, solver_tol={TOL:g}"),
        ("worst excess", f"{worst:.1e}: {place}"),
        ("where an oracle is behind dkl", f"{figures['oracle_behind']:.1e}"),
    ]
    report("losses", summary, figures, BARS)


def one(seed: int, target: str, loss: str, penalty: str) -> dict[str, tuple[bool, float]]:
    """Of each solver that takes the task: whether the certificate is met, and the excess over the oracles' least."""
    drawn, least, found = Drawn.of(seed, target), None, {}
    for solver in SOLVERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = drawn.fitted(loss, penalty, solver, TOL, max_iter=MAX_ITER)
        if model is None:
            continue
        dense = drawn.dense(model, loss, penalty)
        if least is None:
            least = min(filter(None, (dense.least(), dense.from_sklearn())))
        found[solver] = bool(model.certificate_["met"]), (dense.of_model(model) - least) / least
    return found
