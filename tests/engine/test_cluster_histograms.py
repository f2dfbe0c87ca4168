"""Histogram kernels and principal axes on a cluster of separate processes: the same bits as in one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

import dkl
from tests.engine.conftest import cluster_of, embedded

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(6)
X = RNG.dirichlet(np.full(24, 0.4), 3000)
CODE = X[:, :4].argmax(axis=1)
LANDMARKS = ("uniform", "kmeans++", "leverage")
OPTIONS = {"n_components": 120, "random_state": 0, "verbose": 0}


def results(path: str) -> dict[str, np.ndarray]:
    """What each estimator finds in the rows at a path."""
    chi2 = dkl.Chi2Features(verbose=0).fit(f"{path}/X")
    axes = dkl.FeaturePCA(dkl.FourierFeatures("exp_chi2", **OPTIONS), 9, verbose=0)
    axes.fit(f"{path}/X", X_unlabelled=f"{path}/more")
    additive = dkl.FeaturePCA(dkl.Chi2Features("zolotarev", 3, verbose=0), "mle", verbose=0)
    additive.fit(f"{path}/X", X_unlabelled=f"{path}/more")
    channels = dkl.FeaturePCA(
        dkl.FourierFeatures(n_components=40, random_state=0, verbose=0), 9, channels=np.arange(24) % 3, verbose=0
    ).fit(f"{path}/X", X_unlabelled=f"{path}/more")
    reduced = dkl.SingleKernelClassifier("exp_chi2", reduce=20, alpha=[0.1, 1.0], cv=3, **OPTIONS).fit(path)
    shaped = dkl.SingleKernelClassifier("exp_chi2", reduce=20, **OPTIONS).fit(path, X_unlabelled=f"{path}/more")
    drawn = {name: dkl.NystroemFeatures("exp_chi2", landmarks=name, **OPTIONS).fit(f"{path}/X") for name in LANDMARKS}
    near = dkl.SingleKernelClassifier("exp_chi2", landmarks="leverage", **OPTIONS).fit(path)
    learned = dkl.SingleKernelClassifier(
        "exp_chi2", learn="cv", groups="each", starts=1, max_iter=2, tol=1e-9, **OPTIONS
    ).fit(path)
    return {
        "nodes": chi2.additive_.nodes,
        "lifted": np.asarray(chi2.transform(f"{path}/X")),
        "axes": axes.components_,
        "projected": np.asarray(axes.transform(f"{path}/X")),
        "additive axes": additive.components_,
        "additive projected": np.asarray(additive.transform(f"{path}/X")),
        "axes of channels": channels.components_,
        "projected channels": np.asarray(channels.transform(f"{path}/X")),
        "reduced": reduced.coef_,
        "shaped": shaped.coef_,
        "scores": reduced.cv_results_["mean_test_score"],
        "sigma": learned.sigma_,
        "learned": learned.coef_,
        "near": near.coef_,
        **{name: model.landmark_rows_ for name, model in drawn.items()},
        **{f"{name} whitened": model.features_.whitening for name, model in drawn.items()},
    }


def test_same_bits(tmp_path: Path) -> None:
    """Two workers, the solves on the scheduler."""
    path = str(tmp_path / "d.zarr")
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=X, chunks=(500, 24))
    group.create_array("y", data=CODE, chunks=(500,))
    group.create_array("more", data=RNG.dirichlet(np.full(24, 0.2), 700), chunks=(300, 24))
    with embedded():
        expected = results(path)
    with cluster_of(tmp_path, 2):
        found = results(path)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
