"""Coordinates by hand: whose they are, when they differ, and what is written of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from dkl.sources.coords import NO_COORDS, Coords
from dkl.store.coords import CoordWriter, RowCoords, coords_beside, create_coords, renamed, storable, write_inputs


class Labelled(np.ndarray):
    """An array with attributes, as one of a Zarr."""

    attrs: dict


def along(values, **attrs):
    """Values along the rows."""
    array = np.asarray(values).view(Labelled)
    array.attrs = attrs
    return array


def test_which_sources_have_some():
    """Each channel of one source; several files of a channel have none in common."""
    own = Coords(names=None, inputs={}, rows={})
    a = SimpleNamespace(channel=0, source=SimpleNamespace(coords=own))
    b = SimpleNamespace(channel=1, source=SimpleNamespace())
    assert coords_beside([a, b]) == [own, NO_COORDS]
    assert coords_beside([a, b, SimpleNamespace(channel=1, source=b.source)]) == []
    assert [renamed(name) for name in ("X", "y", "row", "channel", "input", "x", "time")] == [
        "source_X", "source_y", "source_row", "source_channel", "source_input", "x", "time",
    ]  # fmt: skip


def rows(**arrays):
    """Coordinates along the rows alone."""
    return Coords(names=None, inputs={}, rows={name: along(values) for name, values in arrays.items()})


def test_rows_of_several_channels():
    """From the first that has them; gaps at the same rows are the same."""
    nan = np.nan
    both = RowCoords([rows(t=[1.0, nan, 3.0]), rows(t=[1.0, nan, 3.0], y=["a", "b", "c"]), NO_COORDS])
    found = both.read(1, 3)
    np.testing.assert_array_equal(found["t"], [nan, 3])
    assert found["source_y"].tolist() == ["b", "c"]
    assert list(found) == ["t", "source_y"]


@pytest.mark.parametrize(
    ("mine", "other"), [([1.0, 2, 3], [1.0, 2, 4]), ([1.0, 2, 4], [1.0, 2, 3]), ([1, 2, np.nan], [1.0, 2, 3]),
                        ([1, 2, 3], [1, 2, np.nan]), (["a", "b", "c"], ["a", "b", "d"])],
)  # fmt: skip
def test_rows_that_differ(mine, other):
    """Larger, smaller, missing in one of them: the row is named, counted from the first of all."""
    both = RowCoords([rows(t=mine), rows(t=other)])
    assert len(both.read(0, 2)["t"]) == 2
    with pytest.raises(ValueError, match=rf"row 2 has t {mine[2]}(\.0)? in one source and {other[2]}(\.0)? in another"):
        both.read(1, 3)


@pytest.mark.parametrize("beside", [1, 2])
def test_what_is_written(beside):
    """Along the inputs of one channel only; along the rows with units, those of the split."""
    inputs = {"wave": np.array([0.5, 0.6]), "input": np.array(["a", "b"])}
    times = along(["x", "yy", "zzz"], units="days", calendar="c", long_name="n", other=1)
    coords = Coords(names=None, inputs=inputs, rows={"time": times, "row": along([7, 8, 9])})
    every = [coords] + [NO_COORDS] * (beside - 1)
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    labels = RowCoords(every)
    with ThreadPoolExecutor(1) as pool:
        arrays, names = create_coords(group, every, labels, 2, (2, None))
        writer = CoordWriter(arrays, pool)
        writer.add(labels.read(0, 2), np.array([False, False]))
        writer.add(labels.read(0, 3), np.array([True, False, True]))
        writer.close()
    along_inputs = ["wave", "source_input"] if beside == 1 else []
    assert names == [*along_inputs, "time", "source_row"]
    assert group["time"][:].tolist() == ["x", "zzz"]
    assert group["source_row"][:].tolist() == [7, 9]
    told = dict(group["time"].attrs)
    assert {key: told[key] for key in told if key in ("units", "calendar", "long_name", "other")} == {
        "units": "days", "calendar": "c", "long_name": "n",
    }  # fmt: skip
    assert ("wave" in group) == (beside == 1)
    if beside == 1:
        assert group["wave"][:].tolist() == [0.5, 0.6]
        assert group["source_input"][:].tolist() == ["a", "b"]


def test_arrays_along_the_inputs():
    """Texts of any length, numbers as they are; no inputs at all make an array without entries."""
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    for name, values in (("t", np.array(["a", "long one"])), ("n", np.array([3, 4], np.int16)), ("e", np.empty(0))):
        made = write_inputs(group, name, values)
        assert made[:].tolist() == values.tolist()
        assert made.metadata.dimension_names == ("input",)
        assert made.chunks == (max(1, len(values)),)
    assert storable(np.array(["a"])).dtype == np.dtypes.StringDType()
    assert storable(np.array([1.5])).dtype == np.float64
