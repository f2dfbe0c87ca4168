"""A path becomes a source by what it holds, a pattern its files."""

from __future__ import annotations

import bz2
import gzip
import lzma

import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr

from dkl.sources.arrays import SparseNpz
from dkl.sources.batch import Reading, SourceError
from dkl.sources.bundled import Bundled
from dkl.sources.delimited import Delimited
from dkl.sources.dense import DenseRows
from dkl.sources.find import FORMATS, expand, find_format, open_source
from dkl.sources.images import Images
from dkl.sources.parquet import Parquet
from dkl.sources.svmlight import Svmlight
from dkl.sources.zarr_rows import DenseZarr


@pytest.fixture
def files(tmp_path):
    """One file of each format, none with a name that tells."""
    np.save(tmp_path / "npy", np.ones((3, 2)))
    (tmp_path / "npy.npy").rename(tmp_path / "npy")
    np.savez(tmp_path / "npz", X=np.ones((3, 2)))
    (tmp_path / "npz.npz").rename(tmp_path / "npz")
    (tmp_path / "idx").write_bytes(b"\0\0\x08\x02\0\0\0\x01\0\0\0\x02ab")
    (tmp_path / "csv").write_text("a,b\n1,2\n")
    (tmp_path / "svmlight").write_text("# c\n1 1:2\n")
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "parquet")
    zarr.create_array(str(tmp_path / "zarr"), data=np.ones((3, 2)))
    (tmp_path / "images" / "cat").mkdir(parents=True)
    pytest.importorskip("PIL.Image").new("L", (2, 2)).save(tmp_path / "images" / "cat" / "a.png")
    return tmp_path


KINDS = {"npy": DenseRows, "npz": DenseRows, "idx": DenseRows, "csv": Delimited, "svmlight": Svmlight,
         "parquet": Parquet, "zarr": DenseZarr, "images": Images}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_by_content(files, kind):
    """Said or seen; also behind a URL."""
    path = str(files / kind)
    assert type(open_source(path, Reading())) is KINDS[kind]
    assert type(open_source(path, Reading(format=kind))) is KINDS[kind]
    fsspec.filesystem("memory").put(path, f"/find/{kind}", recursive=True)
    source = open_source(f"memory://find/{kind}", Reading())
    assert type(source) is KINDS[kind]
    assert sum(source.parse(segment).X.shape[0] for segment in source.segments()) in (1, 3)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("kind", ["npy", "npz", "idx", "csv", "svmlight", "parquet"])
def test_by_decompressed_content(files, kind, pack):
    """Compression is seen through."""
    (files / "packed").write_bytes(pack((files / kind).read_bytes()))
    source = open_source(str(files / "packed"), Reading())
    assert type(source) is KINDS[kind]
    assert sum(source.parse(segment).X.shape[0] for segment in source.segments()) in (1, 3)


def test_all_formats_are_tested():
    """None is forgotten."""
    assert set(FORMATS) == {*KINDS, "sklearn"}
    assert type(open_source("sklearn:iris", Reading())) is Bundled


def test_text(tmp_path):
    """An extension outweighs what looks like svmlight; an encoding is looked through."""
    for name, content, kind in (
        ("a.csv", b"1 1:2\n3 4:5\n", "csv"),
        ("a.tsv.gz", gzip.compress(b"1 1:2\n"), "csv"),
        ("a.txt", "1 1:2\n".encode("utf-16"), "svmlight"),
    ):
        (tmp_path / name).write_bytes(content)
        assert find_format(str(tmp_path / name), Reading(encoding="utf-16" if name == "a.txt" else "utf-8")) == kind


def test_sparse_npz_is_an_npz(tmp_path):
    """By its members."""
    import scipy.sparse

    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.eye(3, format="csr"))
    assert type(open_source(str(tmp_path / "a.npz"), Reading())) is SparseNpz


def test_refusals(tmp_path):
    """A format that is not known, and what is not there."""
    with pytest.raises(SourceError, match="format='parket' is not known; did you mean 'parquet'"):
        open_source("x", Reading(format="parket"))
    with pytest.raises(SourceError, match="'nowhere' does not exist"):
        open_source("nowhere", Reading())
    with pytest.raises(SourceError, match="'what://x' cannot be reached"):
        open_source("what://x", Reading())
    (tmp_path / "a").write_bytes(b"\x89HDF\r\n\x1a\n\0\0")
    with pytest.raises(SourceError, match="NUL bytes"):
        open_source(str(tmp_path / "a"), Reading())
    (tmp_path / "a").write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(SourceError, match="is compressed with zstd; decompress it"):
        open_source(str(tmp_path / "a"), Reading())


def test_expand(tmp_path, monkeypatch):
    """Patterns and folders of tables, sorted; anything else is itself."""
    for name in ("b.csv", "a.csv.gz", "c.csv", ".hidden.csv", "_SUCCESS"):
        (tmp_path / name).write_text("1,2\n")
    here = str(tmp_path)
    assert expand(f"{here}/*.csv") == [f"{here}/b.csv", f"{here}/c.csv"]
    assert expand(f"{here}/[ab].csv*") == [f"{here}/a.csv.gz", f"{here}/b.csv"]
    assert expand(here) == [f"{here}/a.csv.gz", f"{here}/b.csv", f"{here}/c.csv"]
    assert expand(f"{here}/b.csv") == [f"{here}/b.csv"]
    assert expand("sklearn:iris") == ["sklearn:iris"]
    assert expand("nowhere.csv") == ["nowhere.csv"]
    with pytest.raises(SourceError, match="matches no file"):
        expand(f"{here}/*.parquet")
    (tmp_path / "d.txt").write_text("")
    assert expand(here) == [here]
    (tmp_path / "odd[1].csv").write_text("1,2\n")
    assert expand(f"{here}/odd[1].csv") == [f"{here}/odd[1].csv"]
    fsspec.filesystem("memory").put(here + "/", "/many/", recursive=True)
    assert expand("memory://many/?.csv") == ["memory:///many/b.csv", "memory:///many/c.csv"]
    for path in expand("memory://many/?.csv"):
        assert open_source(path, Reading()).has_target
