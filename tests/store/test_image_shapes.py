"""The recipe of a data set knows the height, width and colours of its images, if its rows are whole images."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import zarr

import dkl
from dkl.store.recipe import Recipe

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six colour images of 6 x 5 pixels in two classes, and five grey ones of 4 x 7 in an IDX file."""
    place = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for i in range(6):
        (place / "im" / str(i % 2)).mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (6, 5, 3)).astype("u1")
        Image.fromarray(pixels).save(place / "im" / str(i % 2) / f"{i}.png")
    head = np.array([0x803, 5, 4, 7], ">u4").tobytes()
    grey = rng.integers(0, 255, (5, 4, 7)).astype("u1")
    (place / "grey-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + grey.tobytes()))
    np.save(place / "rows.npy", rng.random((9, 12)))
    return place


CASES = {
    "im": [6, 5, 3],
    "im resize": [8, 9, 3],
    "im lbp": None,
    "im gcn": [6, 5, 3],
    "grey-images-idx3-ubyte.gz": [4, 7, 1],
    "grey-images-idx3-ubyte.gz resize": [8, 9, 1],
    "grey-images-idx3-ubyte.gz drop": None,
    "rows.npy": None,
}
HOW = {"resize": {"resize": (8, 9)}, "lbp": {"descriptor": "lbp"}, "gcn": {"scale": "gcn"}, "drop": {"drop": ["3"]}}


@pytest.mark.parametrize("case", CASES)
def test_shapes(folder, tmp_path, case):
    """Of folders and IDX files, resized or not, scaled or not; not of descriptors, nor of rows that lack a pixel."""
    name, _, how = case.partition(" ")
    target = {} if name == "im" else {"target": "none"}
    path = dkl.ingest(folder / name, tmp_path / "d.zarr", verbose=0, **target, **HOW.get(how, {}))
    group = zarr.open_group(path, mode="r")
    recipe = Recipe.from_json(group.attrs["recipe"])
    assert group.attrs["recipe"]["channels"][0].get("image_shape") == CASES[case]
    shape = recipe.channels[0].image_shape
    assert shape == (None if CASES[case] is None else tuple(CASES[case]))
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe
    if shape is not None:
        assert group["X"].shape[1] == np.prod(shape)
