"""Images from files to predictions on the command line: shapes that ingest has found, gcn and zca, plan and inspect."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

import dkl  # noqa: E402
from dkl.torch import ConvolutionalKernelClassifier  # noqa: E402

MODEL = "convolutional:filters=4,filter_size=3,dense=8"


def command(*words, ok=True):
    """What a verb prints."""
    done = subprocess.run([sys.executable, "-m", "dkl", *map(str, words)], capture_output=True, text=True)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout if ok else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits as IDX files, 300 to train with and 100 to test with."""
    X, y = load_digits(return_X_y=True)
    place = tmp_path_factory.mktemp("idx")
    for name, rows in (("train", slice(300)), ("test", slice(300, 400))):
        images, labels = X[rows].astype("u1"), y[rows].astype("u1")
        head = np.array([0x803, len(images), 8, 8], ">u4").tobytes()
        (place / f"{name}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        (place / f"{name}-labels-idx1-ubyte").write_bytes(
            np.array([0x801, len(y[rows])], ">u4").tobytes() + labels.tobytes()
        )
    command("ingest", place / "train-images-idx3-ubyte", place / "train.zarr")
    return place


def test_the_command_line_from_images_to_predictions(folder):
    """ingest, plan, fit, inspect, evaluate and predict; the shape of the images comes from the data set."""
    model, train, test = folder / "m.zarr", folder / "train.zarr", folder / "test.zarr"
    flags = ("--model", MODEL, "--n-components", "12", "--batch-size", "64", "--max-iter", "15")
    assert "12 components" in command("plan", train, *flags)
    assert "ConvolutionalKernelClassifier" in command("fit", train, model, *flags)
    said = json.loads(command("inspect", model, "--json"))
    assert said["estimator"] == "ConvolutionalKernelClassifier"
    assert said["components"] == 12
    assert said["learning"]["iterations"] <= 15
    command("ingest", folder / "test-images-idx3-ubyte", test, "--like", model)
    accuracy = json.loads(command("evaluate", model, test, "--json"))["accuracy"]
    assert accuracy > 0.5
    command("predict", model, folder / "test-images-idx3-ubyte", folder / "a.csv", "--proba")
    guess = np.genfromtxt(folder / "a.csv", delimiter=",", names=True)["prediction"]
    assert np.mean(guess == load_digits().target[300:400]) == accuracy
    again = ConvolutionalKernelClassifier(
        filters=[4], filter_size=3, dense=8, batch_size=64, n_components=12, max_iter=15, random_state=0, verbose=0
    )
    assert again.fit(str(train)).coef_.tobytes() == dkl.load(model).coef_.tobytes()


def test_refusals_of_the_command_line(folder):
    """A shape that the rows do not have, and a parameter that networks do not have."""
    shape = command(
        "fit", folder / "train.zarr", folder / "n.zarr", "--model", "convolutional:image_shape=9x9", ok=False
    )
    assert shape.splitlines() == [
        "dkl: image_shape=(9, 9) is 81 numbers, and X has 64 inputs; give the height, width and colours of its images"
    ]
    alpha = command(
        "fit", folder / "train.zarr", folder / "n.zarr", "--model", "convolutional", "--alpha", "1", ok=False
    )
    assert "alpha=1.0 is no parameter of ConvolutionalKernelClassifier" in alpha


def test_images_prepared_by_gcn_and_zca(folder, tmp_path):
    """Contrast-normalised and whitened rows keep their shape, and new images are prepared alike."""
    train = dkl.ingest(folder / "train-images-idx3-ubyte", tmp_path / "t.zarr", scale="gcn+zca", verbose=0)
    model = ConvolutionalKernelClassifier(filters=(8,), filter_size=3, batch_size=32, random_state=0, verbose=0)
    model.fit(train).save(tmp_path / "m.zarr")
    assert model.features_.of.image_shape == (8, 8, 1)
    test = dkl.ingest(folder / "test-images-idx3-ubyte", tmp_path / "u.zarr", like=tmp_path / "m.zarr", verbose=0)
    assert dkl.load(tmp_path / "m.zarr").score(test) > 0.7


def test_a_plan_is_what_a_fit_takes(folder):
    """Memory that a fit adds to this process stays below the promise."""
    code = (
        "import sys, numpy as np, psutil, dkl, dkl.torch\n"
        "rng = np.random.default_rng(0)\n"
        "X, y = rng.random((4096, 784), dtype=np.float32), rng.integers(0, 10, 4096)\n"
        "model = dkl.torch.ConvolutionalKernelClassifier((28, 28), max_iter=1, random_state=0, verbose=0)\n"
        "plan = model.plan(X, y, calibrate=False)\n"
        "model.fit(X, y)\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]\n"
        "print(plan.worker_bytes, 1024 * int(peak))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    promised, peak = map(int, done.stdout.split())
    assert 0.3 * promised < peak < promised
