"""The same bits of a convolutional network on any number of workers, after a kill or a resume, from any container."""

from __future__ import annotations

import threading
import time

import dask.array as da
import numpy as np
import pytest
import zarr

torch = pytest.importorskip("torch")

from dkl.store.checkpoint import progress_of  # noqa: E402
from dkl.torch import ConvolutionalKernelClassifier  # noqa: E402
from tests.engine.conftest import embedded, started  # noqa: E402, F401
from tests.torch.test_convolutional import SMALL, X, Y, everything  # noqa: E402

N = 600
LONGER = {**SMALL, "batch_size": 192}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Digits as a Zarr group in small chunks, and what a fit of them in memory finds."""
    folder = tmp_path_factory.mktemp("digits")
    root = zarr.open_group(folder / "d.zarr", mode="w", zarr_format=3)
    root.create_array("X", data=X[:N], chunks=(70, 64))
    root.create_array("y", data=Y[:N], chunks=(70,))
    return str(folder / "d.zarr"), everything(ConvolutionalKernelClassifier(**LONGER).fit(X[:N], Y[:N]))


def fit(data, **options):
    """A fit of the rows on disk, on the cluster if there is one."""
    return ConvolutionalKernelClassifier(**{**LONGER, **options}).fit(data)


def test_containers_give_the_same_bits(data):
    """Zarr and Dask chunks of any size; threads in one process."""
    path, right = data
    with embedded():
        assert everything(fit(path)) == right
        for rows in (7, 250):
            chunks = da.from_array(X[:N], chunks=(rows, 64)), da.from_array(Y[:N], chunks=rows)
            assert everything(ConvolutionalKernelClassifier(**LONGER).fit(*chunks)) == right


def test_a_resumed_fit_has_the_same_bits(data, tmp_path):
    """Two epochs, then a third one by another object from the checkpoint: as three at once."""
    path, right = data
    with embedded():
        fit(path, max_iter=2, checkpoint=str(tmp_path / "c"))
        assert progress_of(str(tmp_path / "c"))["steps"] == 2
        model = fit(path, checkpoint=str(tmp_path / "c"))
    assert everything(model) == right
    with pytest.raises(ValueError, match="another fit"), embedded():
        fit(path, dense=9, checkpoint=str(tmp_path / "c"))


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_any_number_of_workers_and_a_dead_one_give_the_same_bits(data, started):  # noqa: F811
    """One, two and three worker processes; then one is killed in the middle of an epoch."""
    path, right = data
    machines = started(1)
    assert everything(fit(path)) == right
    for _ in range(2):
        machines.add(1)
        assert everything(fit(path)) == right
    found = []
    job = threading.Thread(target=lambda: found.append(everything(fit(path, max_iter=40, patience=40))))
    job.start()
    time.sleep(1.5)
    alive = job.is_alive()
    machines.kill(next(iter(machines.workers)))
    job.join(120)
    assert alive, "the fit was over before a worker died"
    with embedded():
        assert found == [everything(fit(path, max_iter=40, patience=40))]
    client = machines.client
    answers = fit(path).predict(da.from_array(X[:N], chunks=(100, 64)))
    np.testing.assert_array_equal(client.compute(answers).result(), fit(path).predict(X[:N]))
