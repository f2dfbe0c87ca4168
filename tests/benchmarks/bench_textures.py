"""textures: three Brodatz textures, 16 x 16 patches: learned Gabor filters against fixed and random ones.

100 to 10,000 patches of each texture from the left halves train, 5,000 from the right halves test. The filters are the
grid of 81; 3,000 random ones, of which an l1 penalty selects (on at most 500 patches of each texture); and at most 200
that column generation finds. Each set of filters gets the same classifier: standardised features, multinomial logistic
regression, its ridge by three folds. The learned model's own weights are a column too. learned_wins is 1 if learned
filters beat fixed ones at every size. A picture is written to the scratch folder. Needs --data; --sizes 100,1000 are
some of the sizes, --sets fixed,learned some of the ways (learned is always among them).
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

import dkl
from tests.benchmarks.data import find
from tests.benchmarks.report import report

TEXTURES = ("D12-bark", "D29-sand", "D92-pigskin")
SIZES = (100, 300, 1000, 3000, 10_000)
TEST, RANDOM, FILTERS, LEARNED, SHORT = 5000, 3000, 81, 200, 500
SHAPE, STRIDE = (16, 16), 5
BARS = {"learned_wins": 1.0}


class Found(NamedTuple):
    """Of one set of filters."""

    accuracy: float  # per cent
    filters: int
    seconds: float
    own: float = float("nan")  # accuracy of the weights that it was found with


def patches(options: argparse.Namespace) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Train and test patches as fractions, and their textures, texture by texture."""
    found = {}
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        images = Path(folder, "textures")
        images.mkdir()
        for name in TEXTURES:
            shutil.copy(find(options, f"brodatz/{name}.png"), images)
        path = dkl.ingest(
            str(images), str(Path(folder, "d.zarr")), patches=SHAPE, per_image=SIZES[-1], split={"test": "right"},
            verbose=0,
        )  # fmt: skip
        for split in ("train", "test"):
            group = zarr.open_group(path, mode="r")[split]
            found[split] = group["X"][:].astype(np.float32) / 255, group["y"][:]
    return found


def first(rows: tuple[np.ndarray, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first so many patches of each texture."""
    X, y = rows
    some = np.concatenate([np.flatnonzero(y == c)[:count] for c in range(len(TEXTURES))])
    return X[some], y[some]


def classified(
    features: Callable[[np.ndarray], np.ndarray], train: tuple[np.ndarray, np.ndarray], test: tuple
) -> float:  # fmt: skip
    """Accuracy of the classifier that all sets of filters get."""
    scaler = StandardScaler()
    model = LogisticRegressionCV(Cs=np.logspace(-3, 2, 6), cv=3, max_iter=300)
    model.fit(scaler.fit_transform(features(train[0])), train[1])
    return 100 * float(model.score(scaler.transform(features(test[0])), test[1]))


def fixed(train: tuple, test: tuple, seed: int) -> Found:
    """The grid."""
    start = time.perf_counter()
    grid = dkl.GaborFeatures(SHAPE, stride=STRIDE, verbose=0).fit(train[0])
    return Found(classified(grid.transform, train, test), FILTERS, time.perf_counter() - start)


def selected(train: tuple, test: tuple, seed: int) -> Found:
    """Random filters, as many as an l1 penalty chosen by held-out patches keeps."""
    start = time.perf_counter()
    few = pool_of(*first(train, SHORT), seed)
    accuracy = classified(lambda rows: few.at(np.float32).transform(rows), train, test)
    return Found(accuracy, few.n_features, time.perf_counter() - start)


KNOWN: dict[int, Any] = {}
"""Filters that were selected, by the number of patches."""


def pool_of(X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """The map of those that are selected."""
    if len(y) in KNOWN:
        return KNOWN[len(y)]
    pool = dkl.GaborFeatures(SHAPE, RANDOM, stride=STRIDE, random_state=seed, verbose=0)
    Psi = StandardScaler().fit_transform(pool.fit(X).transform(X))
    held = np.arange(len(y)) % 4 == 0
    tried = []
    for C in (0.003, 0.01, 0.03, 0.1):
        model = LogisticRegression(C=C, l1_ratio=1.0, solver="saga", max_iter=40, tol=1e-2, random_state=0)
        model.fit(Psi[~held], y[~held])
        tried.append((model.score(Psi[held], y[held]), np.flatnonzero(np.any(model.coef_, axis=0))))
    keep = max(tried, key=lambda one: one[0])[1]
    own = pool.features_
    KNOWN[len(y)] = own.with_parameters(**{name: values[keep] for name, values in own.parameters.items()})
    return KNOWN[len(y)]


def learned(train: tuple, test: tuple, seed: int) -> tuple[Found, Any]:
    """Column generation over all filters."""
    start = time.perf_counter()
    model = dkl.InfiniteFeatureClassifier(
        features=dkl.GaborFeatures(SHAPE, stride=STRIDE), max_features=LEARNED, per_round=20, candidates=118,
        loss="log_loss",
        penalty="l21:ridge=0.1", alpha=[3.0, 1.0, 0.3, 0.1, 0.03], validation=0.2, max_iter=60, random_state=seed,
        verbose=0,
    ).fit(*train)  # fmt: skip
    blocks = model.features_.at(np.float32)
    accuracy = classified(blocks.transform, train, test)
    own = 100 * float(model.score(*test))
    return Found(accuracy, model.n_features_used_, time.perf_counter() - start, own), model


def picture(options: argparse.Namespace, sizes: list[int], found: dict[str, list[Found]], model: Any) -> Path:
    """Accuracy against the number of patches, and the filters of the last model."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for name, each in found.items():
        left.semilogx(sizes, [one.accuracy for one in each], "o-", label=name)
    left.set(xlabel="patches of each texture", ylabel="accuracy, %")
    left.legend()
    dkl.plot.plot_filters(model, right)
    path = Path(options.scratch or tempfile.gettempdir(), "textures.png")
    figure.savefig(path, dpi=120)
    return path


def run(options: argparse.Namespace) -> None:
    """All sizes."""
    warnings.simplefilter("ignore")
    rows = patches(options)
    test = first(rows["test"], TEST)
    asked_ways = options.sets.split(",") if options.sets else ["fixed", "random"]
    ways = [name for name in ("fixed", "random") if name in asked_ways]
    found: dict[str, list[Found]] = {name: [] for name in (*ways, "learned")}
    asked = SIZES if options.sizes is None else tuple(int(size) for size in options.sizes.split(","))
    sizes = [size for size in asked if options.rows is None or size <= options.rows]
    lines = [("work", f"{', '.join(TEXTURES)}: {len(test[1]):,} test patches of {SHAPE[0]} x {SHAPE[1]}")]
    for size in sizes:
        train = first(rows["train"], size)
        for name, way in (("fixed", fixed), ("random", selected)):
            if name in ways:
                found[name].append(way(train, test, 0))
        last, model = learned(train, test, 0)
        found["learned"].append(last)
        said = "   ".join(
            f"{name} {each[-1].accuracy:.1f} % ({each[-1].filters}, {each[-1].seconds:.0f} s)"
            for name, each in found.items()
        )
        lines.append((f"{size:,} of each", f"{said}   its own weights {last.own:.1f} %"))
        print(f"  {size:,}: {said}", flush=True)
    lines.append(("picture", str(picture(options, sizes, found, model))))
    pairs = zip(found["learned"], found.get("fixed", []), strict="fixed" in ways)
    margins = [ours.accuracy - theirs.accuracy for ours, theirs in pairs] or [float("nan")]
    figures = {"learned_wins": float(min(margins) > 0), "least_margin": min(margins)}
    report("textures", lines, figures, BARS)
