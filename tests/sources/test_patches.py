"""Patches of images: where they are, how many, of which class, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.cli.ingest import HALVES
from dkl.sources import patches
from dkl.sources.batch import Patches, Reading, SourceError
from dkl.sources.find import open_source
from dkl.sources.patches import OPPOSITE, PatchImages, half
from tests.sources.whole import read_whole

Image = pytest.importorskip("PIL.Image")
SIZES = {"bark/1.png": (20, 31), "bark/2.png": (25, 20), "sand/1.png": (40, 40)}


@pytest.fixture
def folder(tmp_path):
    """Grey images of two classes; a pixel tells its column, so that a patch tells where it was."""
    for name, (height, width) in SIZES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        rows, columns = np.mgrid[:height, :width]
        pixels = np.stack([rows, columns, np.full_like(rows, len(name))], axis=2).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / name)
    return tmp_path


def cut(shape=(8, 5), of_each=30, seed=0, regions=("whole",)):
    return Patches(shape, of_each, seed, regions)


def corners(X, shape=(8, 5)):
    """Top and left of each patch; its other pixels must follow."""
    pixels = X.reshape(-1, *shape, 3).astype(int)
    top, left = pixels[:, 0, 0, 0], pixels[:, 0, 0, 1]
    np.testing.assert_array_equal(pixels[..., 0], (top[:, None] + np.arange(shape[0]))[:, :, None] + 0 * pixels[..., 0])
    np.testing.assert_array_equal(
        pixels[..., 1], (left[:, None] + np.arange(shape[1]))[:, None, :] + 0 * pixels[..., 1]
    )
    return np.column_stack([top, left])


def test_patches_are_whole_and_anywhere(folder):
    """As many of each image, with the pixels of the image, at every place that there is."""
    source = open_source(str(folder), Reading(patches=cut(of_each=2000)))
    assert isinstance(source, PatchImages)
    X, y, _, _ = read_whole(source)
    assert y == ["bark"] * 4000 + ["sand"] * 2000
    found = corners(X)
    for i, (height, width) in enumerate(SIZES.values()):
        own = found[2000 * i : 2000 * (i + 1)]
        assert own.min(axis=0).tolist() == [0, 0]
        assert own.max(axis=0).tolist() == [height - 8, width - 5]
        assert abs(own.mean(axis=0) - (np.array([height - 8, width - 5]) / 2)).max() < 1
    assert X[0, 0] != X[1, 0] or X[0, 1] != X[1, 1]


@pytest.mark.parametrize("region", OPPOSITE)
def test_halves_have_no_pixel_in_common(folder, region):
    """Patches of each half in turn, for every image."""
    source = open_source(str(folder), Reading(patches=cut((4, 4), 50, regions=(region, OPPOSITE[region]))))
    found = corners(read_whole(source)[0], (4, 4))
    axis = int(region in ("left", "right"))
    for i, size in enumerate(SIZES.values()):
        own = [found[100 * i + 50 * j : 100 * i + 50 * (j + 1), axis] for j in (0, 1)]
        first, second = own if region in ("left", "top") else own[::-1]
        assert first.max() + 4 <= size[axis] // 2 <= second.min()
        assert second.max() <= size[axis] - 4


@pytest.mark.parametrize(("step", "files"), [(7, 256), (64, 256), (1000, 2), (1000, 256)])
def test_segments_change_nothing(folder, monkeypatch, step, files):
    """The same rows, however they are cut into segments of bounded size; another seed has other places."""
    whole = read_whole(open_source(str(folder), Reading(patches=cut())))
    monkeypatch.setattr(patches, "BYTES", step * 8 * 5 * 3)
    monkeypatch.setattr(patches, "FILES", files)
    source = open_source(str(folder), Reading(patches=cut()))
    parts = list(source.segments())
    assert [part.number for part in parts] == list(range(len(parts)))
    assert sum(part.size for part in parts) == source.size
    assert max(len(source.parse(part).X) for part in parts) <= step
    X, y, _, _ = read_whole(source)
    np.testing.assert_array_equal(X, whole[0])
    assert y == whole[1]
    other = read_whole(open_source(str(folder), Reading(patches=cut(seed=1))))[0]
    assert (other == X).all(axis=1).mean() < 0.2


def test_files_are_classes_if_there_are_no_folders(tmp_path):
    """Their names without the suffix; without a target they need not be unique."""
    for name in ("D9-grass.png", "D12-bark.png"):
        Image.new("L", (9, 9), len(name)).save(tmp_path / name)
    X, y, _, _ = read_whole(open_source(str(tmp_path), Reading(patches=cut(of_each=2))))
    assert y == ["D12-bark"] * 2 + ["D9-grass"] * 2
    assert X.tolist() == [[12] * 40] * 4
    Image.new("L", (9, 9)).save(tmp_path / "D9-grass.bmp")
    with pytest.raises(SourceError, match="has 2 images called 'D9-grass'; give each its own"):
        open_source(str(tmp_path), Reading(patches=cut()))
    plain = open_source(str(tmp_path), Reading(patches=cut(of_each=2), target="none"))
    assert read_whole(plain)[1] is None


def test_descriptors_of_patches(folder):
    """Of each patch by itself, after the image has been resized."""
    source = open_source(str(folder), Reading(patches=cut((6, 6), 3), descriptor="color", resize=(12, 10)))
    X = read_whole(source)[0]
    assert X.shape == (9, 64)
    np.testing.assert_allclose(X.sum(axis=1), 1)


def test_refusals(folder):
    """Images, or halves of them, that are smaller than a patch, and images of another mode."""
    with pytest.raises(SourceError, match=r"1.png' is 20x31, smaller than a patch of 21x5; use smaller --patches"):
        open_source(str(folder), Reading(patches=cut((21, 5))))
    with pytest.raises(SourceError, match=r"2.png' is 25x20, and its left half 25x10, smaller than a patch of 8x11"):
        read_whole(open_source(str(folder), Reading(patches=cut((8, 11), regions=("left", "right")))))
    Image.new("L", (30, 30)).save(folder / "sand" / "2.png")
    with pytest.raises(SourceError, match=r"sand/2.png' is 8x5 L; convert them to one mode"):
        read_whole(open_source(str(folder), Reading(patches=cut())))


def test_halves():
    """They part an image, and the command line knows them."""
    assert tuple(OPPOSITE) == HALVES
    for one, other in OPPOSITE.items():
        seen = np.zeros((7, 5), int)
        for name in (one, other):
            top, left, bottom, right = half(name, 7, 5)
            seen[top:bottom, left:right] += 1
        assert (seen == 1).all()
