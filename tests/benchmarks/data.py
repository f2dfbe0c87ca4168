"""The real data sets of the benchmarks: files of one set joined, rows as float32, standardised by the training rows."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import numpy as np

import dkl


def is_given(options: Namespace) -> bool:
    """Whether there is a data folder."""
    return bool(options.data or os.environ.get("DKL_DATA"))


def find(options: Namespace, name: str) -> str:
    """A file of the data folder."""
    folder = options.data or os.environ.get("DKL_DATA")
    if folder is None or not Path(folder, name).exists():
        sys.exit(f"{name} is not in {folder!r}; say --data FOLDER or set DKL_DATA to the folder that holds it")
    return str(Path(folder, name))


def _ingested(options: Namespace, names: list[str], **how: object) -> tuple[np.ndarray, np.ndarray]:
    """X and y of files as `dkl.ingest` reads them, brought into memory."""
    import zarr

    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        path = dkl.ingest([find(options, name) for name in names], Path(folder, "d.zarr"), verbose=0, **how)
        group = zarr.open_group(path, mode="r")
        X, y = group["X"], group["y"][:]
        if isinstance(X, zarr.Group):
            from scipy.sparse import csr_array

            parts = (X["data"][:], X["indices"][:], X["indptr"][:])
            X = csr_array(parts, shape=(len(y), X.attrs["shape"][1])).toarray()
        return np.asarray(X[:], np.float32), y


def covtype(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """581,012 x 54, 7 classes."""
    return _ingested(options, ["covtype.csv.xz"])


def a9a(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """48,842 x 123, 2 classes."""
    return _ingested(options, ["a9a.svm.xz", "a9a.t.svm.xz"], rows=True)


def ijcnn1(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """141,691 x 22, 2 classes."""
    return _ingested(options, ["ijcnn1.train.svm.bz2", "ijcnn1.test.svm.bz2"], rows=True)


def mfeat(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """2,000 x 649, 10 classes: six descriptors side by side."""
    names = ["fac", "fou", "kar", "mor", "pix", "zer"]
    found = [Path(find(options, "mfeat"), p) for p in sorted(os.listdir(find(options, "mfeat")))]
    assert len(found) == len(names)
    return _ingested(options, [f"mfeat/{path.name}" for path in found])


def fashion_hog(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """70,000 x 324, 10 classes: histograms of oriented gradients of every 28 x 28 image, training images first."""
    from skimage.feature import hog

    kept = Path(options.scratch or tempfile.gettempdir(), "dkl-fashion-hog.npz")
    if kept.exists():
        with np.load(kept) as both:
            return both["X"], both["y"]
    images, y = _fashion(options)
    how = {"orientations": 9, "pixels_per_cell": (7, 7), "cells_per_block": (2, 2)}
    X = np.array([hog(image, **how) for image in images], np.float32)
    np.savez(kept, X=X, y=y)
    return X, y


def fashion_words(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """70,000 x 512, 10 classes: how often each of 128 visual words stands in each quarter of an image.

    Words are the means of 100,000 patches of 7 x 7 pixels, less their mean and over their length, by k-means.
    """
    from sklearn.cluster import MiniBatchKMeans

    kept = Path(options.scratch or tempfile.gettempdir(), "dkl-fashion-words.npz")
    if kept.exists():
        with np.load(kept) as both:
            return both["X"], both["y"]
    images, y = _fashion(options)
    places = [(r, c) for r in range(0, 22, 3) for c in range(0, 22, 3)]
    quarter = np.array([2 * (r + 3 > 13) + (c + 3 > 13) for r, c in places])

    def patches(some: np.ndarray) -> np.ndarray:
        found = np.stack([some[:, r : r + 7, c : c + 7].reshape(len(some), 49) for r, c in places], axis=1)
        found = found.astype(np.float32) - found.mean(axis=2, keepdims=True, dtype=np.float32)
        return found / (np.linalg.norm(found, axis=2, keepdims=True) + 10)

    rng = np.random.default_rng(0)
    sample = patches(images[rng.choice(len(images), 2000, replace=False)]).reshape(-1, 49)
    words = MiniBatchKMeans(128, batch_size=4096, n_init=1, random_state=0)
    words.fit(sample[rng.permutation(len(sample))[:100_000]])
    X = np.zeros((len(images), 4 * 128), np.float32)
    for i in range(0, len(images), 1000):
        some = patches(images[i : i + 1000])
        found = words.predict(some.reshape(-1, 49)).reshape(len(some), len(places)) + 128 * quarter
        for row, of_row in enumerate(found, start=i):
            X[row] = np.bincount(of_row, minlength=512)
    np.savez(kept, X=X, y=y)
    return X, y


def fashion_images(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """70,000 x 784 bytes, 10 classes: the images themselves, training images first."""
    images, y = _fashion(options)
    return images.reshape(len(images), -1), y


def _fashion(options: Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Images (70,000, 28, 28) and labels, training images first."""
    images, labels = [], []
    for part in ("train", "t10k"):
        images.append(_idx(find(options, f"fashion-mnist/{part}-images-idx3-ubyte.gz"), 16).reshape(-1, 28, 28))
        labels.append(_idx(find(options, f"fashion-mnist/{part}-labels-idx1-ubyte.gz"), 8))
    return np.concatenate(images), np.concatenate(labels)


def _idx(path: str, head: int) -> np.ndarray:
    import gzip

    return np.frombuffer(gzip.decompress(Path(path).read_bytes()), np.uint8, offset=head)


SETS = {"covtype": covtype, "a9a": a9a, "ijcnn1": ijcnn1, "mfeat": mfeat, "fashion_hog": fashion_hog}


def split(
    X: np.ndarray, y: np.ndarray, seed: int, most: int | None = None, cut: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Random 70 / 30 parts (or `cut` rows and the rest), the first of at most `most` rows, standardised by that one."""
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(0.7 * len(y)) if cut is None else cut
    train, test = order[:cut][:most], order[cut:]
    A, B = X[train], X[test]
    mean, spread = A.mean(axis=0, dtype=np.float64), A.std(axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    A, B = (((part - mean) / spread).astype(np.float32) for part in (A, B))
    return A, y[train], B, y[test]
