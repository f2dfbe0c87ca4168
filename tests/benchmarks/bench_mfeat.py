"""mfeat: six descriptors of 2,000 digits, one kernel each, random 70 / 30 splits: accuracy, and how many are used.

Each kernel alone, and their sum with a ridge (penalty="l2"), with alpha by five folds; exact GMKL at the alpha of our
path; our path of the group lasso, with weights computed anew (debias) too; sigma learned jointly with the weights. The
path has 200 axes of 2,000 features of each kernel, which is close to the exact kernels; sigma is learned with 300
features of each, and the weights have as many axes as the path. A margin is the mean difference to the best of the
others plus its standard error over the splits. Needs --data; --seeds is the splits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dkl
from dkl.exact import GMKLClassifier
from tests.benchmarks.data import mfeat, split
from tests.benchmarks.report import report

CHANNELS = {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}
COMPONENTS, AXES, LEARNED, FOLDS = 2000, 200, 300, 5
OURS = ("path", "path, debias", "joint")
BARS = {"path_margin": 0.0, "joint_margin": 0.0}


class Found(NamedTuple):
    """Of one method on one split."""

    accuracy: float  # per cent
    channels: int
    seconds: float


def places() -> dict[str, slice]:
    """The columns of each descriptor."""
    stops = np.cumsum(list(CHANNELS.values()))
    return {
        name: slice(int(stop) - size, int(stop)) for (name, size), stop in zip(CHANNELS.items(), stops, strict=True)
    }


def one(data: tuple[np.ndarray, ...], seed: int) -> dict[str, Found]:
    """Every method on one split."""
    A, a, B, b = data
    found: dict[str, Found] = {}

    def measure(name: str, make: Callable[[], Any], own: slice = slice(None), used: Any = None) -> Any:
        start = time.perf_counter()
        model = make().fit(A[:, own], a)
        seconds = time.perf_counter() - start
        weights = getattr(model, "kernel_weights_", np.ones(1))
        found[name] = Found(100 * model.score(B[:, own], b), int((np.asarray(weights) > 0).sum()), seconds)
        return model

    several = {"channels": places(), "random_state": seed, "verbose": 0}

    def ours(**how: Any) -> dkl.MultipleKernelClassifier:
        return dkl.MultipleKernelClassifier(["gaussian"], COMPONENTS, per_channel=AXES, **several, **how)

    for name, own in places().items():
        single = {"n_components": COMPONENTS, "cv": FOLDS, "random_state": seed, "verbose": 0}
        measure(f"{name} alone", lambda single=single: dkl.SingleKernelClassifier(**single), own)
    measure("plain sum", lambda: ours(penalty="l2", cv=FOLDS, eps=1e-6))
    path = measure("path", lambda: ours(cv=FOLDS, eps=1e-4))
    measure("path, debias", lambda: ours(cv=FOLDS, eps=1e-4, debias=True))
    slices = list(places().values())
    exact = {"channels": slices, "alpha": path.alpha_, "verbose": 0}
    measure("exact GMKL", lambda: GMKLClassifier(["gaussian"], **exact))
    joint = {"learn": "joint", "learn_components": LEARNED, "alpha": path.alpha_}
    measure("joint", lambda: ours(**joint))
    return found


def margin(found: list[dict[str, Found]], name: str, other: str) -> float:
    """Mean difference of the accuracies, plus its standard error."""
    apart = np.array([each[name].accuracy - each[other].accuracy for each in found])
    return float(apart.mean() + (apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else 0.0))


def run(options: argparse.Namespace) -> None:
    """All splits."""
    warnings.simplefilter("ignore")
    X, y = mfeat(options)
    found = []
    for seed in range(options.seeds):
        found.append(one(split(X, y, seed), seed))
        print("  " + ", ".join(f"{name} {each.accuracy:.2f}" for name, each in found[-1].items()), flush=True)
    means = {name: float(np.mean([each[name].accuracy for each in found])) for name in found[0]}
    rows = [("work", f"{len(y):,} digits, {len(CHANNELS)} kernels, {options.seeds} splits")]
    for name, mean in means.items():
        spread = np.std([each[name].accuracy for each in found])
        used = np.mean([each[name].channels for each in found])
        seconds = np.median([each[name].seconds for each in found])
        rows.append((name, f"{mean:.2f} +- {spread:.2f} %   {used:.1f} channels   {seconds:.1f} s"))
    others = {name: mean for name, mean in means.items() if name not in OURS}
    best = max(others, key=others.__getitem__)
    rows.append(("best of the others", best))
    figures = {f"{name}_margin": margin(found, name, best) for name in ("path", "joint")}
    report("mfeat", rows, figures, BARS)
