"""multitask: few rows of several tasks: shared and specific weights against separate models and a pooled one.

a9a, whose tasks are the five levels of education (its columns are taken out), with few training rows of each; and
mfeat, ten classes one against the rest, with few rows of each class. `shared` has a part of all tasks and one of each,
`groups` shares which features are used, `separate` is a model of each task, `pooled` is one model that knows no task,
`attribute` the same with the columns of the attribute as inputs. All choose alpha by held-out training rows, everything
else at its default but improve=2. The same splits for all; +- is the standard error over them. A margin is the mean
difference of `shared` to the best of the others plus its standard error, at the smallest size.

--sets a9a,mfeat  --sizes 50,100,200 (rows of a task; a tenth for a class)  --seeds 3
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import dkl
from tests.benchmarks.data import SETS
from tests.benchmarks.report import report

LEVELS = slice(34, 39)
"""The columns of a9a that say the level of education."""
ROWS, TEST = (50, 100, 200), 2000
NEARLY_LINEAR = "0.03:0.5"
"""Factors of sigma for a9a, whose held-out rows prefer these to the default (grfl)."""


def model(**how: Any) -> Any:
    """The same for all."""
    return dkl.InfiniteFeatureClassifier(
        **({"max_features": 50, "loss": "squared_hinge", "improve": 2, "verbose": 0} | how)
    )


def some_rows(group: np.ndarray, few: int, many: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of each group."""
    order = np.random.default_rng(seed).permutation(len(group))
    by = [order[group[order] == g] for g in np.unique(group)]
    return np.concatenate([own[:few] for own in by]), np.concatenate([own[few : few + many] for own in by])


def adult(options: argparse.Namespace, few: int, seed: int, kept: dict) -> dict[str, float]:
    """Accuracy of each way, mean over the tasks."""
    if "a9a" not in kept:
        X, y = SETS["a9a"](options)
        said = X[:, LEVELS].sum(axis=1) == 1
        kept["a9a"] = X[said], y[said], X[said, LEVELS].argmax(axis=1)
    X, y, task = kept["a9a"]
    same = {"random_state": seed, "bandwidths": NEARLY_LINEAR}
    rest = np.delete(X, np.r_[LEVELS], axis=1)
    train, test = some_rows(task, few, TEST, seed)

    def mean(answer: np.ndarray) -> float:
        right = answer == y[test]
        return 100 * float(np.mean([right[task[test] == t].mean() for t in np.unique(task)]))

    found = {}
    for name, penalty in (("shared", "shared"), ("groups", "l21")):
        one = model(penalty=penalty, **same).fit(rest[train], y[train], tasks=task[train])
        found[name] = mean(one.predict(rest[test], tasks=task[test]))
    answer = np.empty(len(test), y.dtype)
    for t in np.unique(task):
        own, there = train[task[train] == t], task[test] == t
        alone = np.unique(y[own])
        answer[there] = alone[0] if len(alone) == 1 else model(**same).fit(rest[own], y[own]).predict(rest[test][there])
    found["separate"] = mean(answer)
    found["pooled"] = mean(model(**same).fit(rest[train], y[train]).predict(rest[test]))
    found["attribute"] = mean(model(**same).fit(X[train], y[train]).predict(X[test]))
    return found


def digits(options: argparse.Namespace, few: int, seed: int, kept: dict) -> dict[str, float]:
    """Accuracy of the class with the highest score."""
    if "mfeat" not in kept:
        kept["mfeat"] = SETS["mfeat"](options)
    X, y = kept["mfeat"]
    train, test = some_rows(y, max(2, few // 10), TEST, seed)
    A, B = X[train], X[test]
    mean, size = A.mean(axis=0), A.std(axis=0)
    A, B = ((part - mean) / np.where(size > 0, size, 1.0) for part in (A, B))
    found = {}
    for name, penalty in (("shared", "shared"), ("groups", "l21")):
        one = model(penalty=penalty, random_state=seed).fit(A, y[train])
        found[name] = 100 * float(one.score(B, y[test]))
    classes = np.unique(y)
    scores = [model(random_state=seed).fit(A, y[train] == c).decision_function(B) for c in classes]
    found["separate"] = 100 * float((classes[np.argmax(scores, axis=0)] == y[test]).mean())
    return found


WAYS = {"a9a": adult, "mfeat": digits}


def run(options: argparse.Namespace) -> None:
    """Every set, size and split."""
    warnings.simplefilter("ignore")
    asked = ROWS if options.sizes is None else [int(size) for size in options.sizes.split(",")]
    rows, figures, kept = [], {}, {}
    for name in options.sets.split(",") if options.sets else WAYS:
        for few in asked:
            start = time.perf_counter()
            found = [WAYS[name](options, few, seed, kept) for seed in range(options.seeds)]
            table = {way: np.array([one[way] for one in found]) for way in found[0]}
            n = np.sqrt(options.seeds)
            error = {way: values.std(ddof=1) / n if len(values) > 1 else 0.0 for way, values in table.items()}
            best = max((way for way in table if way != "shared"), key=lambda way: table[way].mean())
            gain = table["shared"] - table[best]
            margin = gain.mean() + (gain.std(ddof=1) / n if len(gain) > 1 else 0.0)
            said = ", ".join(f"{way} {values.mean():.1f} +- {error[way]:.1f}" for way, values in table.items())
            of = few if name == "a9a" else max(2, few // 10)
            rows.append((f"{name}, {of} of each", f"{said} ({time.perf_counter() - start:.0f} s)"))
            print(rows[-1], flush=True)
            figures.setdefault(name, float(margin))
    report("multitask", rows, figures, {})
