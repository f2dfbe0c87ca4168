"""Images in IDX against Pillow and scikit-image."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.sources import idx_images
from dkl.sources.batch import Column, Reading, SourceError
from dkl.sources.idx import open_idx
from tests.sources.test_idx import idx
from tests.sources.whole import read_whole

Image = pytest.importorskip("PIL.Image")
feature = pytest.importorskip("skimage.feature")
GREY = np.random.default_rng(0).integers(0, 256, (7, 28, 20), np.uint8)
COLOUR = np.random.default_rng(1).integers(0, 256, (7, 16, 16, 3), np.uint8)


@pytest.fixture(params=[2, 256])
def pictures(request, tmp_path, monkeypatch):
    """Files of both, with labels; a few images in each segment, or all."""
    monkeypatch.setattr(idx_images, "IMAGES", request.param)
    (tmp_path / "a-images-idx3-ubyte").write_bytes(idx(GREY))
    (tmp_path / "a-labels-idx1-ubyte").write_bytes(idx(np.arange(7)))
    (tmp_path / "colour.idx").write_bytes(idx(COLOUR))
    return tmp_path


def read(path, **how):
    """Rows, labels and the number of segments."""
    source = open_idx(str(path), Reading(**how))
    X, y, _, segments = read_whole(source)
    return X, y, segments, source


def test_descriptors(pictures):
    """Each image as scikit-image measures it; labels are found beside the file."""
    X, y, segments, source = read(pictures / "a-images-idx3-ubyte", descriptor="hog:4")
    np.testing.assert_allclose(X, [feature.hog(image, 9, (4, 4), (2, 2)) for image in GREY], rtol=1e-6)
    np.testing.assert_array_equal(y, np.arange(7))
    assert segments == -(-7 // idx_images.IMAGES)
    assert source.columns[0] == Column("hog 0")
    assert read(pictures / "a-images-idx3-ubyte", descriptor="lbp", target="none")[1] is None


def test_colours(pictures):
    """Three channels are colours; a grey descriptor converts them as Pillow does."""
    X = read(pictures / "colour.idx", descriptor="color", target="none")[0]
    found = [np.histogramdd(image.reshape(-1, 3) // 64, [np.arange(5)] * 3)[0].ravel() / 256 for image in COLOUR]
    np.testing.assert_allclose(X, found, rtol=1e-6)
    X = read(pictures / "colour.idx", descriptor="hog", target="none")[0]
    grey = [np.asarray(Image.fromarray(image).convert("L")) for image in COLOUR]
    np.testing.assert_allclose(X, [feature.hog(image, 9, (8, 8), (2, 2)) for image in grey], rtol=1e-6)


def test_resize(pictures):
    """Pixels of another size; without it, the bytes themselves."""
    X = read(pictures / "a-images-idx3-ubyte", resize=(14, 10))[0]
    small = [np.asarray(Image.fromarray(image).resize((10, 14), Image.Resampling.BILINEAR)).ravel() for image in GREY]
    np.testing.assert_array_equal(X, small)
    np.testing.assert_array_equal(read(pictures / "a-images-idx3-ubyte")[0], GREY.reshape(7, -1))


def test_refusals(pictures):
    """What is no image, too small, or has no labels."""
    (pictures / "table.idx").write_bytes(idx(np.ones((4, 5))))
    (pictures / "numbers.idx").write_bytes(idx(np.ones((4, 20, 20)), 0x0D))
    grey = pictures / "a-images-idx3-ubyte"
    for path, how, sentence in (
        (pictures / "table.idx", {"descriptor": "hog"}, r"holds uint8 of shape \(4, 5\); descriptors and --resize are"),
        (pictures / "numbers.idx", {"resize": (8, 8)}, r"holds float32 of shape \(4, 20, 20\); descriptors"),
        (grey, {"descriptor": "hogg"}, "descriptor='hogg' is not known"),
        (grey, {"descriptor": "hog:11"}, "an image of 28x20 is too small for hog:11; use --resize 44x44"),
        (grey, {"descriptor": "lbp", "drop": ("1",)}, "--drop 1 does not apply"),
        (grey, {"descriptor": "lbp", "inputs": (Column("0"),)}, "has 54 columns; the data set was made from 1,"),
    ):
        with pytest.raises(SourceError, match=sentence):
            open_idx(str(path), Reading(**how))
