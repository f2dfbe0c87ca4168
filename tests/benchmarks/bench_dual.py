"""dual: digits with more features than rows, five folds and six alphas, against scikit-learn's Ridge fold by fold."""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import dkl
from tests.benchmarks.report import alternate, median_ratio, report

N, D, SIGMA, FOLDS = 1359, 2000, 0.03, 5
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
BARS = {"time_ratio": 1.2}


def grid(Psi: np.ndarray, Y: np.ndarray) -> Ridge:
    """Ridge with the alpha of the least held-out squared error."""
    errors = np.zeros(len(ALPHAS))
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(Psi):
        A, B, wanted, held = Psi[train], Psi[test], Y[train], Y[test]
        for i, alpha in enumerate(ALPHAS):
            errors[i] += ((Ridge(alpha).fit(A, wanted).predict(B) - held) ** 2).mean()
    return Ridge(ALPHAS[int(errors.argmin())]).fit(Psi, Y)


def run(options: argparse.Namespace) -> None:
    """Measure; scikit-learn is given the features, dkl makes them."""
    X, y = (part[:N] for part in load_digits(return_X_y=True))
    ours = dkl.SingleKernelClassifier(n_components=D, sigma=SIGMA, random_state=0, cv=FOLDS, alpha=list(ALPHAS))
    features = dkl.FourierFeatures(n_components=D, sigma=SIGMA, random_state=0)
    Psi, Y = np.asarray(features.fit_transform(X)), 2.0 * np.eye(10)[y] - 1
    seconds = alternate(options.repeats, dkl=lambda: ours.fit(X, y), sklearn=lambda: grid(Psi, Y))
    rows = [("work", f"digits {X.shape}, {D} components, {FOLDS} folds, {len(ALPHAS)} alphas, {Psi.dtype} features")]
    rows += [(name, f"{statistics.median(values):7.3f} s") for name, values in seconds.items()]
    report("dual", rows, {"time_ratio": median_ratio(seconds["dkl"], seconds["sklearn"])}, BARS)
