"""The fits that two versions are compared by: name -> function of a scratch folder -> named arrays.

Most have 300 rows and 30 features. `stages` and `subsample` have enough rows to learn on a share of them first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attributes import answers, fitted, flat, stored

Arrays = dict[str, np.ndarray]
TIMES = ("seconds",)
"""Columns of history_ that no two runs share."""
SMALL = {"n_components": 30, "random_state": 0, "verbose": 0}
LEARN = {**SMALL, "max_iter": 5, "groups": "each"}
HISTOGRAMS = ("skewed_chi2", "skewed_intersection", "exp_chi2", "exp_jensen_shannon", "exp_intersection")
KERNELS = ("gaussian", "laplacian", "matern32", "isotropic_matern12", "isotropic_matern52", *HISTOGRAMS)


def rows(n: int = 300, m: int = 5) -> dict[str, Any]:
    """Inputs of every kind, and targets."""
    rng = np.random.default_rng(20261118)
    X = rng.standard_normal((n, m))
    some = np.where(rng.random((n, m)) < 0.3, X, 0.0)
    score = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return {
        "X": X,
        "X32": X.astype(np.float32),
        "some": some,
        "histograms": rng.dirichlet(np.ones(m), n),
        "y": score + 0.1 * rng.standard_normal(n),
        "several": np.stack([score, np.cos(X[:, 3]), X[:, 4] ** 2], axis=1),
        "two": (score > 0).astype(int),
        "three": np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.5])],
        "weight": rng.gamma(1.0, size=n),
        "folds": rng.integers(0, 4, n),
        "held": rng.random(n) < 0.25,
        "more": rng.standard_normal((100, m)),
    }


ROWS = rows()


def told(model: Any, X: Any, y: Any, folder: Path) -> Arrays:
    """Everything that a fitted model has, says and writes."""
    found = fitted(model, TIMES) | answers(model, X[:100])
    if hasattr(model, "evaluate"):
        found |= flat("evaluate", model.evaluate(X, y))
    if hasattr(model, "save"):
        model.save(folder / "model.zarr")
        found |= stored(folder / "model.zarr", without=("history_seconds",))
    return found


def fit(
    kind: str, X: str, y: str | None, folder: Path, *, weight: bool = False, more: bool = False, **how: Any
) -> Arrays:
    """One estimator of dkl, or of dkl.exact, fitted to rows in memory."""
    import dkl

    cls = getattr(dkl.exact if kind.startswith("KernelRidge") else dkl, kind)
    given = [ROWS[X]] if y is None else [ROWS[X], ROWS[y]]
    extra = ({"sample_weight": ROWS["weight"]} if weight else {}) | ({"X_unlabelled": ROWS["more"]} if more else {})
    model = cls(**how).fit(*given, **extra)
    return told(model, ROWS[X], None if y is None else ROWS[y], folder)


def fit_sparse(folder: Path, **how: Any) -> Arrays:
    """Rows as a csr matrix."""
    from scipy.sparse import csr_matrix

    import dkl

    X = csr_matrix(ROWS["some"])
    return told(dkl.SingleKernelRegressor(**how).fit(X, ROWS["y"]), X, ROWS["y"], folder)


def fit_stages(kind: str, y: str, folder: Path, **how: Any) -> Arrays:
    """Enough chunks for stages on a share of the rows, one larger than the other."""
    import dask.array as da

    import dkl

    data = rows(120_000)
    X, target = da.from_array(data["X"], chunks=(1000, 5)), da.from_array(data[y], chunks=1000)
    model = getattr(dkl, kind)(**how).fit(X, target)
    return told(model, data["X"][:100], data[y][:100], folder)


def resume(kind: str, y: str, folder: Path, **how: Any) -> Arrays:
    """Two iterations, then a fresh model that resumes from the checkpoint and goes to five."""
    import dkl

    cls, X, kept = getattr(dkl, kind), ROWS["X"], str(folder / "checkpoint")
    cls(**how | {"max_iter": 2}, checkpoint=kept).fit(X, ROWS[y])
    model = cls(**how | {"max_iter": 5}, checkpoint=kept).fit(X, ROWS[y], resume=True)
    return told(model, X, ROWS[y], folder)


def fit_pca(features: Any, X: str, folder: Path, **how: Any) -> Arrays:
    """Principal axes of a transformer's features."""
    import dkl

    kind, options = features
    return told(dkl.FeaturePCA(getattr(dkl, kind)(**options), verbose=0, **how).fit(ROWS[X]), ROWS[X], None, folder)


def on_cluster(kind: str, y: str, folder: Path, **how: Any) -> Arrays:
    """Dask arrays on two processes."""
    import dask.array as da
    from distributed import Client, LocalCluster

    import dkl

    data = rows(4000)
    X, target = da.from_array(data["X"], chunks=(250, 5)), da.from_array(data[y], chunks=250)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", scheduler_port=0) as cluster,
        Client(cluster) as client,
    ):
        homes = set(client.run(home_of_dkl).values())
        assert homes == {home_of_dkl()}, f"workers import dkl from {homes}, this process from {home_of_dkl()}"
        model = getattr(dkl, kind)(**how).fit(X, target)
        return told(model, X, target, folder)


def home_of_dkl() -> str:
    """The tree that dkl is imported from."""
    import dkl

    return str(Path(dkl.__file__).resolve().parents[1])


def command_line(options: list[str], folder: Path) -> Arrays:
    """dkl ingest, fit and predict as processes of their own: files and what is in them."""
    lines = [",".join([*"abcde", "colour", "y"])]
    for i, (x, label) in enumerate(zip(ROWS["X"], ROWS["three"], strict=True)):
        lines.append(",".join([*(f"{value:.5f}" for value in x), ("red", "blue")[i % 2], label]))
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    for words in (
        ["ingest", "rows.csv", "rows.zarr", "--scale", "standard", "--categorical", "auto", "--split", "test=0.2"],
        ["fit", "rows.zarr", "model.zarr", "--n-components", "30", *options],
        ["predict", "model.zarr", "rows.zarr", "answers.csv", "--scores"],
    ):
        done = subprocess.run([sys.executable, "-m", "dkl", *words], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"dkl {' '.join(words)}: {done.stderr}")
    written = np.frombuffer((folder / "answers.csv").read_bytes(), np.uint8)
    data = {f"data {name}": array for name, array in stored(folder / "rows.zarr").items()}
    return data | stored(folder / "model.zarr", without=("history_seconds",)) | {"answers.csv": written}


def _numbers() -> dict[str, Callable[[Path], Arrays]]:
    """SingleKernelRegressor."""
    one = partial(fit, "SingleKernelRegressor", "X", "y")
    single = partial(fit, "SingleKernelRegressor", "X32", "y")
    outputs = partial(fit, "SingleKernelRegressor", "X", "several")
    found: dict[str, Callable[[Path], Arrays]] = {
        "float64": partial(one, **SMALL, alpha=0.3),
        "float32": partial(single, **SMALL, alpha=0.3),
        "float32 as float64": partial(single, **SMALL, dtype="float64"),
        "cv of alphas": partial(one, **SMALL, cv=5, alpha=[0.01, 0.1, 1.0, 10.0]),
        "cv of auto": partial(one, **SMALL, cv=3),
        "cv list": partial(one, **SMALL, cv=ROWS["folds"]),
        "weights": partial(one, **SMALL, weight=True, cv=3),
        "no intercept": partial(one, **SMALL, fit_intercept=False),
        "outputs": partial(outputs, **SMALL, alpha=[0.1, 1.0, 10.0]),
        "outputs cv": partial(outputs, **SMALL, cv=3),
        "groups": partial(one, **SMALL, groups=[0, 0, 1, 1, 1], cv=3),
        "sigma of each": partial(one, **SMALL, groups="each", sigma=[0.2, 0.4, 0.6, 0.8, 1.0]),
        "phase odd": partial(one, **SMALL | {"n_components": 31}, form="phase"),
        "paired odd": partial(one, **SMALL | {"n_components": 31}),
        "iid": partial(one, **SMALL, frequencies="iid"),
        "quasi": partial(one, **SMALL, frequencies="quasi"),
        "reduce": partial(one, **SMALL, reduce=10),
        "reduce unlabelled": partial(one, **SMALL, reduce=0.8, more=True, cv=3),
        "reduce mle": partial(one, **SMALL, reduce="mle"),
        "learn validation": partial(one, **LEARN, learn="validation"),
        "learn validation mask": partial(one, **LEARN, learn="validation", validation=ROWS["held"]),
        "learn cv": partial(one, **LEARN, learn="cv"),
        "learn cv list": partial(one, **LEARN, learn="cv", cv=ROWS["folds"]),
        "learn cv float32": partial(single, **LEARN, learn="cv"),
        "learn cv weights": partial(one, **LEARN, learn="cv", weight=True, sigma_l2=0.01),
        "learn cv alpha kept": partial(one, **LEARN, learn="cv", alpha=0.5, starts=1),
        "learn cv outputs": partial(outputs, **LEARN, learn="cv"),
        "learn cv reduce": partial(one, **LEARN, learn="cv", reduce=10, more=True),
        "learn cv phase odd": partial(one, **LEARN | {"n_components": 31}, learn="cv", form="phase"),
        "learn gcv": partial(one, **LEARN, learn="gcv"),
        "learn joint": partial(one, **LEARN, learn="joint"),
        "learn frequencies": partial(one, **SMALL, max_iter=5, learn="frequencies"),
        "learn one sigma": partial(one, **SMALL, max_iter=5, learn="cv"),
        "early stopping": partial(one, **LEARN | {"max_iter": 20}, learn="validation", early_stopping=0.2),
        "sigma_l1 refit": partial(one, **LEARN | {"max_iter": 30}, learn="cv", sigma_l1=0.02),
        "sparse": partial(fit_sparse, **SMALL, cv=3),
        "sparse learn cv": partial(fit_sparse, **LEARN, learn="cv"),
        "stages": partial(fit_stages, "SingleKernelRegressor", "y", **LEARN | {"max_iter": 2}, learn="gcv"),
        "subsample": partial(
            fit_stages, "SingleKernelRegressor", "y", **LEARN | {"max_iter": 2}, learn="gcv", subsample=0.5
        ),
        "resume cv": partial(resume, "SingleKernelRegressor", "y", **LEARN, learn="cv"),
        "resume l1": partial(resume, "SingleKernelRegressor", "y", **LEARN, learn="cv", sigma_l1=0.02),
        "resume frequencies": partial(resume, "SingleKernelRegressor", "y", **SMALL, learn="frequencies"),
    }
    for kernel in KERNELS:
        X = "histograms" if kernel in HISTOGRAMS else "X"
        found[f"kernel {kernel}"] = partial(fit, "SingleKernelRegressor", X, "y", **SMALL, kernel=kernel)
        if kernel != "gaussian":
            learned = {**LEARN, "max_iter": 3, "kernel": kernel, "learn": "cv"}
            found[f"kernel {kernel} learned"] = partial(fit, "SingleKernelRegressor", X, "y", **learned)
    for draw in ("uniform", "kmeans++", "leverage"):
        found[f"landmarks {draw}"] = partial(one, **SMALL, landmarks=draw, cv=3)
    return found


def _classes() -> dict[str, Callable[[Path], Arrays]]:
    """SingleKernelClassifier."""
    two = partial(fit, "SingleKernelClassifier", "X", "two")
    three = partial(fit, "SingleKernelClassifier", "X", "three")
    uneven = {"low": 1.0, "middle": 2.0, "high": 0.5}
    return {
        "two classes": partial(two, **SMALL),
        "three classes": partial(three, **SMALL, cv=3),
        "class weights": partial(three, **SMALL, class_weight="balanced", weight=True),
        "class weights given": partial(three, **SMALL, class_weight=uneven),
        "calibrated": partial(three, **SMALL, calibrate=50),
        "calibrated two": partial(two, **SMALL, calibrate=50, weight=True),
        "classes landmarks": partial(three, **SMALL, landmarks="kmeans++", weight=True),
        "classes reduce": partial(three, **SMALL, reduce=10, more=True),
        "classes learn cv": partial(three, **LEARN, learn="cv", class_weight="balanced"),
        "classes learn gcv": partial(two, **LEARN, learn="gcv"),
        "classes learn joint": partial(three, **LEARN, learn="joint"),
        "classes learn validation": partial(three, **LEARN, learn="validation"),
        "classes learn frequencies": partial(three, **SMALL, max_iter=5, learn="frequencies"),
        "learn log_loss": partial(three, **LEARN, learn="log_loss"),
        "learn log_loss two": partial(two, **LEARN, learn="log_loss", weight=True, class_weight="balanced"),
        "learn log_loss float32": partial(fit, "SingleKernelClassifier", "X32", "three", **LEARN, learn="log_loss"),
        "learn log_loss exp_chi2": partial(
            fit, "SingleKernelClassifier", "histograms", "three", **LEARN, learn="log_loss", kernel="exp_chi2"
        ),
        "stages log_loss": partial(fit_stages, "SingleKernelClassifier", "three", **LEARN, learn="log_loss"),
        "resume log_loss": partial(resume, "SingleKernelClassifier", "three", **LEARN, learn="log_loss"),
    }


def _transformers() -> dict[str, Callable[[Path], Arrays]]:
    """Feature maps and FeaturePCA."""
    maps = {"fourier": ("FourierFeatures", SMALL), "nystroem": ("NystroemFeatures", SMALL)}
    found: dict[str, Callable[[Path], Arrays]] = {
        "FourierFeatures": partial(fit, "FourierFeatures", "X", None, **SMALL),
        "NystroemFeatures": partial(fit, "NystroemFeatures", "X", None, **SMALL, landmarks="leverage"),
        "NystroemFeatures exp_chi2": partial(fit, "NystroemFeatures", "histograms", None, **SMALL, kernel="exp_chi2"),
        "pca chi2 channels": partial(
            fit_pca, ("Chi2Features", {"verbose": 0}), "histograms", channels=[0, 0, 1, 1, 1], n_components=6
        ),
    }
    for method in ("direct", "greedy", "zolotarev", "chebyshev", "homogeneous"):
        found[f"Chi2Features {method}"] = partial(fit, "Chi2Features", "histograms", None, method=method, verbose=0)
    for name, features in maps.items():
        found[f"pca {name}"] = partial(fit_pca, features, "X", n_components=6)
        found[f"pca {name} mle"] = partial(fit_pca, features, "X32", n_components="mle")
        found[f"pca {name} channels"] = partial(
            fit_pca, features, "X", channels=[0, 0, 1, 1, 1], per_channel=0.9, n_components=6
        )
    return found


def _exact() -> dict[str, Callable[[Path], Arrays]]:
    """The exact kernel machine."""
    how = {"random_state": 0, "verbose": 0, "max_iter": 5, "groups": "each"}
    found: dict[str, Callable[[Path], Arrays]] = {
        "exact cv of alphas": partial(fit, "KernelRidgeGD", "X", "several", **how, learn="none", cv=3),
        "exact classes": partial(fit, "KernelRidgeGDClassifier", "X", "three", **how, class_weight="balanced"),
        "exact l1": partial(fit, "KernelRidgeGD", "X", "y", **how, learn="cv", sigma_l1=0.02, weight=True),
    }
    for learn in ("validation", "cv", "joint", "gcv"):
        found[f"exact {learn}"] = partial(fit, "KernelRidgeGD", "X", "y", **how, learn=learn)
    return found


def _elsewhere() -> dict[str, Callable[[Path], Arrays]]:
    """Other processes: a cluster and the command line."""
    number = partial(on_cluster, "SingleKernelRegressor", "y")
    label = partial(on_cluster, "SingleKernelClassifier", "three")
    return {
        "cluster none": partial(number, **SMALL, cv=3),
        "cluster learn cv": partial(number, **LEARN, learn="cv"),
        "cluster learn log_loss": partial(label, **LEARN, learn="log_loss"),
        "cluster landmarks": partial(label, **SMALL, landmarks="kmeans++", calibrate=100),
        "cluster reduce": partial(label, **SMALL, reduce=10, place="client"),
        "command line": partial(command_line, ["--cv", "3"]),
        "command line learn cv": partial(command_line, ["--learn", "cv", "--groups", "each", "--max-iter", "4"]),
        "command line workers": partial(
            command_line, ["--learn", "log_loss", "--max-iter", "3", "--workers", "2", "--threads", "1"]
        ),
    }


CONFIGURATIONS = _numbers() | _classes() | _transformers() | _exact() | _elsewhere()
