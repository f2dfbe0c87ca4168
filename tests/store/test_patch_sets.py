"""Data sets of patches: halves as splits, the recipe, other images, and interruptions."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dkl
from dkl.cli.open import rows_for
from dkl.sources.batch import Patches
from dkl.store import ingest as module
from dkl.store.dataset import open_node, recipe_of
from dkl.store.request import Request, request_like
from tests.store.made import ingest, tree

Image = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(0)


def texture(name, size, seed):
    """Stripes of a direction and length of their own, and noise."""
    rng, (height, width) = np.random.default_rng(seed), size
    y, z = np.mgrid[:height, :width]
    wave = np.cos(2 * np.pi * {"up": 0.2 * z, "flat": 0.2 * y, "fine": 0.4 * z}[name] + rng.uniform(0, 6))
    return np.clip(128 + 50 * wave + 30 * rng.normal(size=size), 0, 255).astype(np.uint8)


def write(folder, sizes, seed=0):
    """One image of each texture."""
    folder.mkdir(exist_ok=True)
    for i, (name, size) in enumerate(sizes.items()):
        Image.fromarray(texture(name, size, seed + i)).save(folder / f"{name}.png")
    return folder


@pytest.fixture
def images(tmp_path):
    return write(tmp_path / "textures", {"up": (40, 60), "flat": (50, 50), "fine": (45, 64)})


def test_halves_are_splits(images, tmp_path):
    """Train has the other half; the rows of the splits are those of the source, half of them each."""
    root = ingest(images, tmp_path / "d.zarr", patches=9, per_image=20, split={"test": "right"})
    assert root.attrs["sizes"] == {"train": 60, "test": 60}
    assert root["train/X"].shape == (60, 81)
    assert root["train/y"].attrs["classes"] == ["fine", "flat", "up"]
    for name in ("train", "test"):
        assert np.bincount(root[f"{name}/y"][:]).tolist() == [20, 20, 20]
        place = {"train": 0, "test": 20}[name]
        expected = np.add.outer(np.array([0, 40, 80]), place + np.arange(20)).ravel()
        np.testing.assert_array_equal(root[f"{name}/row"][:], expected)
    picture = np.asarray(Image.open(images / "up.png"))
    parts = {"train": picture[:, :30], "test": picture[:, 30:]}
    for name, part in parts.items():
        windows = np.lib.stride_tricks.sliding_window_view(part, (9, 9)).reshape(-1, 81)
        known = {window.tobytes() for window in windows}
        assert all(row.astype(np.uint8).tobytes() in known for row in root[f"{name}/X"][40:])


def test_shares_of_patches(images, tmp_path):
    """A hash of the row, as for any rows; places are anywhere."""
    root = ingest(images, tmp_path / "d.zarr", patches=(9, 5), split={"test": 0.25}, per_image=200)
    assert root["train/X"].shape[1] == 45
    assert root.attrs["rows"] == 600
    assert 100 < root.attrs["sizes"]["test"] < 200


def test_other_images_are_cut_as_those_of_the_fit(images, tmp_path):
    """By the recipe that the model keeps: as many patches, at places of the same seed, without classes or folders."""
    ingest(images, tmp_path / "d.zarr", patches=9, per_image=150, seed=3, split={"test": "right"}, scale="minmax")
    reading = recipe_of(str(tmp_path / "d.zarr"))["reading"]
    assert (reading["patches"], reading["per_image"], reading["seed"]) == ([9, 9], 150, 3)
    assert "split" not in reading
    model = dkl.SingleKernelClassifier(n_components=200, random_state=0, verbose=0).fit(str(tmp_path / "d.zarr/train"))
    model.save(tmp_path / "m.zarr")
    model = dkl.load(tmp_path / "m.zarr")
    new = write(tmp_path / "new", {"up": (30, 30), "flat": (30, 33)}, seed=9)
    with rows_for(model, (str(new),), None, {"target": "none"}) as rows:
        node = open_node(rows)
        X = node["X"][:]
        assert "y" not in node
        assert X.shape == (300, 81)
        answers = model.predict(X)
    assert (answers[:150] == "flat").mean() > 0.8
    assert (answers[150:] == "up").mean() > 0.8
    ingest(new, tmp_path / "like.zarr", like=str(tmp_path / "d.zarr"))
    np.testing.assert_array_equal(open_node(str(tmp_path / "like.zarr"))["X"][:], X)
    other = request_like(recipe_of(str(tmp_path / "d.zarr")), ("a",), "b", {"per_image": 7, "patches": None})
    assert other.cut == Patches((9, 9), 7, 3, ("whole",))


def test_other_recipes_say_nothing_of_patches(tmp_path):
    """Nor of a seed, which is that of the split alone."""
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(10)))
    ingest(tmp_path / "t.csv", tmp_path / "d.zarr", seed=5)
    assert {"patches", "per_image", "seed"}.isdisjoint(recipe_of(str(tmp_path / "d.zarr"))["reading"])


def test_interrupted_and_resumed(images, tmp_path, monkeypatch):
    """The same bits; the request is read back from the staging folder as it was."""
    how = {"patches": 9, "per_image": 40, "split": {"test": "top"}}
    ingest(images, tmp_path / "whole.zarr", **how)
    dest = tmp_path / "d.zarr"
    with monkeypatch.context() as patch:
        patch.setattr("dkl.store.here.assemble", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            dkl.ingest(str(images), str(dest), verbose=0, **how)
    request, folder, _ = module.open_ingest(str(dest))
    assert request.region == "top"
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request
    from dkl.engine.progress import Progress

    module.run_ingest(request, folder, 2, Progress(0), None)
    assert tree(dest) == tree(tmp_path / "whole.zarr")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"per_image": 5}, "per_image=5 counts patches; say how large they are: --patches 16"),
        ({"patches": (9, 9, 3)}, r"patches=\(9, 9, 3\) must be a height and a width, such as --patches 16x16"),
        ({"patches": 0}, "patches=0 must be a whole number of at least 1"),
        ({"patches": 9, "per_image": 0}, "per_image=0 must be a whole number of at least 1"),
        ({"split": {"test": "right"}}, "split test=right is a half of images cut into patches; add --patches 16"),
        ({"patches": 9, "split": {"test": "rihgt"}}, "the half of a split='rihgt' is not known; did you mean 'right'"),
        ({"patches": 9, "split": {"test": "right", "val": 0.1}}, "test=right leaves the left half to train; give no"),
        ({"patches": 9, "split": {"train": "right"}}, "split train=right is not valid"),
        ({"patches": 33, "split": {"test": "right"}}, "fine.png' is 45x64, and its left half 45x32, smaller than"),
    ],
)
def test_refusals(images, tmp_path, how, said):
    """Before anything is written."""
    with pytest.raises(ValueError, match=said):
        dkl.ingest(str(images), str(tmp_path / "d.zarr"), verbose=0, **how)
    assert not list(tmp_path.glob("d.zarr*"))


def test_only_folders_are_cut(tmp_path):
    """Not tables, nor images in one file."""
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    np.save(tmp_path / "x.npy", np.zeros((4, 3)))
    for name in ("t.csv", "x.npy"):
        with pytest.raises(ValueError, match=f"--patches are cut from a folder of images, and '.*{name}' is none"):
            dkl.ingest(str(tmp_path / name), str(tmp_path / "d.zarr"), patches=9, verbose=0)
