"""Folders of images against Pillow and scikit-image."""

from __future__ import annotations

import sys

import fsspec
import numpy as np
import pytest

from dkl.sources import images
from dkl.sources.batch import Column, Reading, SourceError
from dkl.sources.images import Images
from tests.sources.whole import read_whole

Image = pytest.importorskip("PIL.Image")
feature = pytest.importorskip("skimage.feature")


@pytest.fixture
def folder(tmp_path):
    """Two classes of colour images, and files to leave alone."""
    rng = np.random.default_rng(0)
    for label, names in {"dog": ["b.png", "a.PNG"], "cat": ["2.bmp", "10.tif", ".hidden.png", "notes.txt"]}.items():
        (tmp_path / label).mkdir()
        for name in names:
            file = tmp_path / label / name
            if name in (".hidden.png", "notes.txt"):
                file.write_text("no image")
            else:
                Image.fromarray(rng.integers(0, 256, (24, 32, 3), np.uint8)).save(file)
    (tmp_path / ".git").mkdir()
    return tmp_path


FILES = ["cat/10.tif", "cat/2.bmp", "dog/a.PNG", "dog/b.png"]


def expected(folder, measure, mode="RGB"):
    """What a function measures on every image."""
    return np.array([measure(np.asarray(Image.open(folder / file).convert(mode))) for file in FILES])


@pytest.mark.parametrize("files", [1, 3, 256])
def test_pixels(folder, monkeypatch, files):
    """Bytes in the order of class and name."""
    monkeypatch.setattr(images, "FILES", files)
    source = Images(str(folder), Reading())
    X, y, _, segments = read_whole(source)
    np.testing.assert_array_equal(X, expected(folder, np.ravel))
    assert X.dtype == np.uint8
    assert y == ["cat", "cat", "dog", "dog"]
    assert segments == -(-4 // files)
    assert source.columns[:2] == [Column("pixel 0"), Column("pixel 1")]
    assert source.size == sum((folder / file).stat().st_size for file in FILES)
    assert source.parse(next(source.segments())).y.names == ["cat", "dog"]
    assert read_whole(Images(str(folder), Reading(target="none")))[1] is None


def test_hog(folder):
    """As scikit-image makes it, on the grey image."""
    X = read_whole(Images(str(folder), Reading(descriptor="hog")))[0]
    np.testing.assert_allclose(X, expected(folder, lambda image: feature.hog(image, 9, (8, 8), (2, 2)), "L"), rtol=1e-6)


def test_hog_of_other_cells(folder):
    """The side of a cell stands behind a colon."""
    X = read_whole(Images(str(folder), Reading(descriptor="hog:4")))[0]
    np.testing.assert_allclose(X, expected(folder, lambda image: feature.hog(image, 9, (4, 4), (2, 2)), "L"), rtol=1e-6)


def test_lbp(folder):
    """Frequencies on three rings."""

    def measure(grey):
        codes = [feature.local_binary_pattern(grey, 8 * r, r, "uniform") for r in (1, 2, 3)]
        return np.concatenate([np.histogram(c, np.arange(8 * r + 3), density=True)[0] for r, c in enumerate(codes, 1)])

    X = read_whole(Images(str(folder), Reading(descriptor="lbp")))[0]
    np.testing.assert_allclose(X, expected(folder, measure, "L"), rtol=1e-6)
    assert X.shape[1] == 54
    assert X.min() >= 0


def test_color(folder):
    """A joint histogram of 4 x 4 x 4 boxes, whatever the size of the image."""
    Image.new("L", (3, 5), 200).save(folder / "cat" / "9.png")
    (folder / "cat" / "9.png").rename(folder / "dog" / "grey.png")
    X = read_whole(Images(str(folder), Reading(descriptor="color")))[0]

    def measure(image):
        return np.histogramdd(image.reshape(-1, 3), bins=4, range=[(0, 256)] * 3)[0].ravel() / (24 * 32)

    np.testing.assert_allclose(X[:4], expected(folder, measure), rtol=1e-6)
    assert X[4, 63] == 1


def test_resize(folder):
    """Height, then width, by Pillow."""
    Image.new("RGB", (50, 60)).save(folder / "cat" / "big.png")
    source = Images(str(folder), Reading(resize=(8, 16)))
    X = read_whole(source)[0]
    assert X.shape == (5, 8 * 16 * 3)
    first = Image.open(folder / FILES[0]).resize((16, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(X[0], np.ravel(first))


def test_from_memory(folder):
    """Anywhere fsspec reaches."""
    fs = fsspec.filesystem("memory")
    fs.put(str(folder), "/pictures", recursive=True)
    X, y, _, _ = read_whole(Images("memory://pictures", Reading()))
    np.testing.assert_array_equal(X, read_whole(Images(str(folder), Reading()))[0])
    assert y == ["cat", "cat", "dog", "dog"]


def test_a_folder_without_classes(tmp_path):
    """Only where no target is wanted."""
    Image.new("1", (4, 4), 1).save(tmp_path / "a.png")
    with pytest.raises(SourceError, match=r"holds 1 images but no folder per class; .* or use --target none"):
        Images(str(tmp_path), Reading())
    assert read_whole(Images(str(tmp_path), Reading(target="none")))[0].tolist() == [[255] * 16]


def test_sizes_and_modes_must_agree(folder):
    """Both files are named."""
    Image.new("RGB", (5, 6)).save(folder / "dog" / "c.png")
    with pytest.raises(SourceError, match=r"10.tif' is 24x32 RGB, .*dog/c.png' is 6x5 RGB; use --resize 32x32"):
        read_whole(Images(str(folder), Reading()))
    Image.new("L", (32, 24)).save(folder / "dog" / "c.png")
    with pytest.raises(SourceError, match=r"dog/c.png' is 24x32 L; convert them to one mode"):
        read_whole(Images(str(folder), Reading()))
    Image.new("I;16", (32, 24)).save(folder / "dog" / "c.png")
    with pytest.raises(SourceError, match=r"dog/c.png' is not a readable image.* 8 bits per channel"):
        read_whole(Images(str(folder), Reading()))


def test_files_that_are_no_images(folder):
    """Named, whether foreign, truncated or of another kind."""
    bad = folder / "dog" / "z.png"
    for content in (b"not an image", (folder / "dog" / "b.png").read_bytes()[:300], b""):
        bad.write_bytes(content)
        with pytest.raises(SourceError, match=r"dog/z.png' is not a readable image.*; replace or remove it"):
            read_whole(Images(str(folder), Reading()))
    bad.rename(folder / "dog" / "z.webp")
    with pytest.raises(SourceError, match=r"z.webp' has a format that is not supported"):
        Images(str(folder), Reading())


def test_refusals(folder, tmp_path, monkeypatch):
    """Folders that are not classes, options that have no meaning, packages that are not there."""
    for how, sentence in (
        ({"descriptor": "hogg"}, "descriptor='hogg' is not known; did you mean 'hog'"),
        ({"descriptor": "hog:1"}, "descriptor='hog:1': only hog has a number behind its colon, the side .*: hog:4"),
        ({"descriptor": "hog:x"}, "descriptor='hog:x': only hog has a number"),
        ({"descriptor": "lbp:4"}, "descriptor='lbp:4': only hog has a number"),
        ({"descriptor": "hog:13"}, "an image of 24x32 is too small for hog:13; use --resize 52x52"),
        ({"target": "label"}, "target='label': the target of images is their folder"),
        ({"resize": (0, 4)}, "resize=.0, 4. must be a height and a width"),
        ({"descriptor": "hog", "resize": (8, 8)}, "an image of 8x8 is too small for hog; use --resize 32x32"),
        ({"drop": ("x",)}, "--drop x does not apply"),
        ({"inputs": (Column("pixel 0"),)}, "has 2304 columns; the data set was made from 1,"),
    ):
        with pytest.raises(SourceError, match=sentence):
            Images(str(folder), Reading(**how))
    with pytest.raises(SourceError, match=r"\.git' holds no images .*; put them into folders named by class"):
        Images(str(folder / ".git"), Reading())
    (folder / "empty").mkdir()
    with pytest.raises(SourceError, match="empty' holds no images; remove it or add images"):
        Images(str(folder), Reading())
    (folder / "empty" / "cat").mkdir()
    with pytest.raises(SourceError, match=r"empty' holds folders, not images; give .*empty' itself"):
        Images(str(folder), Reading())
    Image.new("L", (2, 2)).save(folder / "loose.png")
    with pytest.raises(SourceError, match=r"loose.png' is beside the class folders; move it into one"):
        Images(str(folder), Reading())
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(SourceError, match=r"needs skimage; pip install 'dkl\[images\]'"):
        Images(str(folder), Reading(descriptor="hog"))
