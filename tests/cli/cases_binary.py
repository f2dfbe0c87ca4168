"""Arrays, IDX, Parquet, images, Zarr and bundled sets that cannot be read."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
import zarr
from PIL import Image

from tests.cli.case import TABLE, Case, case, npy, npz

X = np.arange(60.0).reshape(20, 3)
Y = np.arange(20) % 2


def with_value(value: Any, dtype: str = "f8") -> np.ndarray:
    """X with something else in row 7, column 1."""
    spoilt = X.astype(dtype)
    spoilt[7, 1] = value
    return spoilt


def array(name: str, content: bytes, *said: str, more: str = "", **files: Any) -> Case:
    """A spoilt t.npy."""
    return case(f"npy {name}", {"t.npy": content, **files}, f"ingest t.npy d.zarr{more}", 1, *said)


def archive(name: str, content: bytes, *said: str, more: str = "", **files: Any) -> Case:
    """A spoilt t.npz."""
    return case(f"npz {name}", {"t.npz": content, **files}, f"ingest t.npz d.zarr{more}", 1, "t.npz", *said)


def sparse(**changed: Any) -> bytes:
    """A sparse matrix as scipy saves it, with some members replaced."""
    matrix = scipy.sparse.random(20, 5, 0.4, "csr", rng=np.random.default_rng(0))
    members = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array([20, 5])}
    return npz(**{**members, "format": np.array(b"csr"), **changed})


def zipped(**members: bytes) -> bytes:
    """A zip of other things."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


GOOD = npy(X)
ARRAYS = [
    array("empty", b"", "t.npy", "empty"),
    array("empty said to be npy", b"", "t.npy", more=" --format npy"),
    array("only its magic", GOOD[:6], "t.npy"),
    array("cut in its header", GOOD[:40], "t.npy"),
    array("cut after its header", GOOD[:128], "t.npy", "truncated", "0 of its 20"),
    array("cut in the middle", GOOD[:300], "t.npy", "truncated", "20 rows"),
    array("without its last byte", GOOD[:-1], "t.npy", "truncated", "19 of its 20"),
    array("bytes after the last row", GOOD + b"more", "t.npy", "bytes after"),
    array("header is no dictionary", GOOD.replace(b"{'descr'", b"['descr'"), "t.npy"),
    array("header with an unknown dtype", GOOD.replace(b"<f8", b"<q9"), "t.npy"),
    array("header with a negative shape", GOOD.replace(b"(20, 3)", b"(-2, 3)"), "t.npy"),
    array("a version of the future", GOOD[:6] + b"\x09\x00" + GOOD[8:], "t.npy"),
    array("Python objects", npy(np.array([[1, "a"]], object)), "t.npy", "objects"),
    array("complex numbers", npy(X + 1j), "t.npy", "complex"),
    array("text", npy(np.array([["a", "b"]])), "t.npy", "text"),
    array("dates", npy(np.array([["2020-01-01"]], "M8[D]")), "t.npy"),
    array("records", npy(np.zeros(5, [("a", "f8"), ("b", "i4")])), "t.npy", "records"),
    array("one number", npy(np.float64(3)), "t.npy"),
    array("one axis", npy(np.arange(5.0)), "t.npy", "1-D"),
    array("three axes", npy(np.zeros((4, 3, 2))), "t.npy", "3-D"),
    array("no rows", npy(np.zeros((0, 3))), "t.npy", "(0, 3)"),
    array("no columns", npy(np.zeros((3, 0))), "t.npy", "(3, 0)"),
    array("NaN", npy(with_value(np.nan)), "t.npy", "row 7", "'1'", "missing"),
    array("inf", npy(with_value(np.inf)), "t.npy", "row 7", "'1'", "inf"),
    array("float16 inf", npy(with_value(-np.inf, "f2")), "t.npy", "row 7", "-inf"),
    array("beyond float32", npy(with_value(1e300)), "1e+300", "float32"),
    array("long double beyond float64", npy(np.full((2, 2), np.longdouble("1e4000"))), "t.npy", "row 0"),
    array("target column that is not there", GOOD, "t.npy", "3 columns", "5", more=" --target 5"),
    array("target file that is not there", GOOD, "gone.npy", more=" --target gone.npy"),
    array("too few labels", GOOD, "t.npy", "20 rows", "19 labels", more=" --target l.npy", **{"l.npy": npy(Y[1:])}),
    array("labels of two columns", GOOD, "l.npy", "(20, 3)", more=" --target l.npy", **{"l.npy": GOOD}),
    array("too few lines of labels", GOOD, "l.txt", "5 labels", more=" --target l.txt", **{"l.txt": "0\n" * 5}),
    array("too many lines of labels", GOOD, "l.txt", "line 20", more=" --target l.txt", **{"l.txt": "0\n" * 21}),
    array("a blank line of labels", GOOD, "l.txt", "line 3", more=" --target l.txt",
          **{"l.txt": "0\n1\n\n" + "0\n" * 17}),
    array("a label that is infinite", GOOD, "row 4", more=" --target l.npy",
          **{"l.npy": npy(np.where(np.arange(20) == 4, np.inf, 0))}),
    array("a label that is missing", GOOD, "row 4", more=" --target l.npy",
          **{"l.npy": npy(np.where(np.arange(20) == 4, np.nan, 0))}),
    array("empty labels", GOOD, "l.txt", "empty", more=" --target l.txt", **{"l.txt": b""}),
    array("categorical", GOOD, "--categorical", "t.npy", more=" --categorical 1"),
    array("drop everything", GOOD, "t.npy", "no column left", more=" --drop 0,1,2"),
    array("no target for classification", GOOD, "classification", "target", more=" --task classification"),
    case("npy in gzip, cut", {"t.npy.gz": gzip.compress(GOOD)[:-20]}, "ingest t.npy.gz d.zarr", 1, "t.npy.gz"),
    case("npy in Fortran order in gzip, cut", {"t.npy.gz": gzip.compress(npy(np.asfortranarray(X))[:-100])},
         "ingest t.npy.gz d.zarr", 1, "t.npy.gz", "truncated"),
    case("npy in Fortran order, cut", {"t.npy": npy(np.asfortranarray(X))[:-100]}, "ingest t.npy d.zarr", 1, "t.npy"),
    case("npy said of a CSV", {"t.csv": TABLE}, "ingest t.csv d.zarr --format npy", 1, "t.csv", "npy"),
    archive("cut in the middle", npz(X=X, y=Y)[:400], "damaged"),
    archive("without its last bytes", npz(X=X, y=Y)[:-30], "damaged"),
    archive("one byte turned over", npz(X=X, y=Y).replace(X[3].tobytes(), X[4].tobytes()), "damaged"),
    archive("a zip of nothing", zipped()),
    archive("a zip of a CSV", zipped(**{"t.csv": b"1,2\n"}), "t.csv"),
    archive("a member that is no array", zipped(**{"X.npy": b"rubbish"}), "X"),
    archive("no X, and several matrices", npz(a=X, b=X), "a", "b", "X"),
    archive("X has one axis", npz(X=Y, y=Y), "X", "(20,)"),
    archive("y has another length", npz(X=X, y=Y[1:]), "20 rows", "19 labels"),
    archive("X is of objects", npz(X=np.array([[1, "a"]], object), y=Y), "objects"),
    archive("NaN in X", npz(X=with_value(np.nan), y=Y), "row 7", "missing"),
    archive("NaN in y", npz(X=X, y=np.where(Y, np.nan, 0)), "row 1"),
    archive("sparse with indptr that falls", sparse(indptr=np.arange(21)[::-1]), "indptr"),
    archive("sparse with short indptr", sparse(indptr=np.arange(5)), "indptr"),
    archive("sparse with an index outside", sparse(shape=np.array([20, 2])), "damaged", "column"),
    archive("sparse with a shape of three", sparse(shape=np.array([20, 5, 2])), "(20, 5, 2)"),
    archive("sparse in csc", sparse(format=np.array(b"csc")), "csc"),
    archive("sparse of text", sparse(data=np.full(40, "a")), "text"),
    archive("sparse with NaN", sparse(data=np.full(40, np.nan)), "row 0", "missing"),
    archive("sparse with inf", sparse(data=np.full(40, np.inf)), "row 0", "inf"),
    archive("sparse with a target column", sparse(), "target='2'", more=" --target 2"),
    archive("sparse without data", npz(indices=Y, indptr=Y, shape=Y, format=Y), "X"),
]  # fmt: skip


def idx(kind: int, *shape: int, data: bytes | None = None) -> bytes:
    """An IDX file."""
    body = bytes(i % 251 for i in range(int(np.prod(shape)))) if data is None else data
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + body


def mnist(name: str, images: bytes, *said: str, labels: bytes | None = None, more: str = "") -> Case:
    """A spoilt pair of IDX files."""
    files = {"t-images-idx3-ubyte": images} | ({} if labels is None else {"t-labels-idx1-ubyte": labels})
    return case(f"idx {name}", files, f"ingest t-images-idx3-ubyte d.zarr{more}", 1, *said)


IDX = [
    mnist("cut in its header", idx(8, 10, 4, 4)[:9], "t-images", "truncated"),
    mnist("cut in the middle", idx(8, 10, 4, 4)[:100], "t-images", "truncated", "5 of its 10"),
    mnist("bytes after the last row", idx(8, 10, 4, 4) + b"x", "t-images", "bytes after"),
    mnist("unknown kind", idx(7, 10, 4, 4), "t-images"),
    mnist("no IDX at all", b"rubbish!", "t-images", "IDX", more=" --format idx"),
    mnist("labels alone", idx(8, 10), "t-images", "1-D"),
    mnist("no rows", idx(8, 0, 4, 4), "t-images", "(0, 4, 4)"),
    mnist("other number of labels", idx(8, 10, 4, 4), "10 rows", "9 labels", labels=idx(8, 9)),
    mnist("labels cut", idx(8, 10, 4, 4), "t-labels", "truncated", labels=idx(8, 10)[:-3]),
    mnist("labels that are images", idx(8, 10, 4, 4), "t-labels", "(10, 4, 4)", labels=idx(8, 10, 4, 4)),
    mnist("floats with NaN", idx(13, 2, 2, data=struct.pack(">4f", 1, 2, float("nan"), 4)), "row 1", "'0'"),
    mnist("floats with inf", idx(13, 2, 2, data=struct.pack(">4f", 1, 2, 3, float("inf"))), "row 1", "inf"),
    mnist("target that is not there", idx(8, 10, 4, 4), "gone", more=" --target gone"),
    case("idx in gzip, cut", {"t-images-idx3-ubyte.gz": gzip.compress(idx(8, 10, 4, 4))[:-10]},
         "ingest t-images-idx3-ubyte.gz d.zarr", 1, "t-images", "truncated"),
]  # fmt: skip


def parquet(name: str, columns: dict[str, Any], *said: str, more: str = "") -> Case:
    """A Parquet file t.parquet of some columns."""

    def write(path: Path) -> None:
        pq.write_table(pa.table(columns), path)

    return case(f"parquet {name}", {"t.parquet": write}, f"ingest t.parquet d.zarr{more}", 1, *said)


def parquet_bytes(name: str, spoil: Any, *said: str) -> Case:
    """A good Parquet file with its bytes spoilt."""
    out = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(5000.0), "y": np.arange(5000) % 2}), out)
    return case(
        f"parquet {name}", {"t.parquet": spoil(out.getvalue())}, "ingest t.parquet d.zarr", 1, "t.parquet", *said
    )


def twice(path: Path) -> None:
    """A Parquet file with two columns of one name."""
    schema = pa.schema([("a", pa.int64()), ("a", pa.int64()), ("y", pa.int64())])
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2])] * 3, schema=schema), path)


PARQUET = [
    parquet_bytes("cut in the middle", lambda data: data[: len(data) // 2], "damaged"),
    parquet_bytes("without its last byte", lambda data: data[:-1], "damaged"),
    parquet_bytes("only its magic", lambda data: data[:4], "damaged"),
    parquet_bytes("zeros in a page", lambda data: data[:60] + bytes(400) + data[460:]),
    parquet_bytes("zeros in its footer", lambda data: data[:-100] + bytes(80) + data[-20:]),
    case("parquet said of a CSV", {"t.csv": TABLE}, "ingest t.csv d.zarr --format parquet", 1, "t.csv", "Parquet"),
    case("parquet two columns of one name", {"t.parquet": twice}, "ingest t.parquet d.zarr", 1, "two columns", "'a'"),
    parquet("no rows", {"a": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}, "t.parquet", "0 rows"),
    parquet("no columns", {}, "t.parquet", "0 columns"),
    parquet("null", {"a": [1.0, None, 2.0], "y": [0, 1, 0]}, "row 1", "'a'", "missing"),
    parquet("null target", {"a": [1.0, 3.0, 2.0], "y": [0, None, 0]}, "row 1", "'y'", "missing"),
    parquet("NaN", {"a": [1.0, float("nan"), 2.0], "y": [0, 1, 0]}, "row 1", "'a'"),
    parquet("inf", {"a": [1.0, 2.0, float("inf")], "y": [0, 1, 0]}, "row 2", "'a'", "inf"),
    parquet("beyond float32", {"a": [1.0, 1e200], "y": [0, 1]}, "1e+200", "float32"),
    parquet("text", {"s": ["u", "v"], "y": [0, 1]}, "'s'", "--categorical"),
    parquet("dates", {"t": pa.array([1, 2], pa.timestamp("s")), "y": [0, 1]}, "'t'", "timestamp"),
    parquet("lists", {"v": [[1, 2], [3]], "y": [0, 1]}, "'v'", "list"),
    parquet("bytes", {"v": [b"a", b"b"], "y": [0, 1]}, "'v'", "binary"),
    parquet("target that is not there", {"a": [1, 2], "y": [0, 1]}, "'z'", more=" --target z"),
    parquet("target only", {"y": [0, 1]}, "no column left"),
]


def image(path: Path, size: tuple[int, int] = (8, 8), mode: str = "L") -> None:
    """A picture of one colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, 7).save(path)


def rgb(path: Path) -> None:
    """One in colours."""
    image(path, mode="RGB")


def wide(path: Path) -> None:
    """One of another shape."""
    image(path, (9, 8))


def deep(path: Path) -> None:
    """One of 16 bits."""
    image(path, mode="I;16")


def cut(path: Path) -> None:
    """One that ends early."""
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:900])


def pictures(name: str, files: dict[str, Any], *said: str, more: str = "") -> Case:
    """A folder p of images."""
    files = {f"p/{file}": content for file, content in files.items()}
    return case(f"images {name}", files, f"ingest p d.zarr{more}", 1, *said)


IMAGES = [
    pictures("one is cut", {"a/1.png": image, "b/2.png": cut}, "2.png"),
    pictures("the first is cut", {"a/1.png": cut, "b/2.png": image}, "1.png"),
    pictures("one is text", {"a/1.png": image, "b/2.jpg": "no picture"}, "2.jpg", "not a readable image"),
    pictures("one is empty", {"a/1.png": image, "b/2.png": b""}, "2.png"),
    pictures("other sizes", {"a/1.png": image, "b/2.png": wide}, "8x8", "8x9", "--resize"),
    pictures("other modes", {"a/1.png": image, "b/2.png": rgb}, "RGB", "mode"),
    pictures("16 bits", {"a/1.png": deep, "b/2.png": deep}, "1.png", "I;16"),
    pictures("smaller than patches", {"a/1.png": image, "b/2.png": wide}, "1.png", "8x8", "9x9", more=" --patches 9"),
    pictures("halves smaller than patches", {"a/1.png": image}, "left half 8x4",
             more=" --patches 5 --split test=right"),
    pictures("no folders", {"1.png": image, "2.png": image}, "2 images", "--target none"),
    pictures("some beside the folders", {"1.png": image, "a/2.png": image}, "1.png", "beside"),
    pictures("an empty class", {"a/1.png": image, "b/x.txt": "x"}, "b", "no images"),
    pictures("a folder in a class", {"a/1.png": image, "a/x/2.png": image, "b/3.png": image}, "a/x"),
    pictures("folders of folders", {"a/x/1.png": image, "b/y/2.png": image}, "folders"),
    pictures("a GIF", {"a/1.png": image, "a/2.gif": b"GIF89a"}, "2.gif", "convert"),
    pictures("a target", {"a/1.png": image, "b/2.png": image}, "target", "'y'", more=" --target y"),
    pictures("an unknown descriptor", {"a/1.png": image, "b/2.png": image}, "did you mean 'hog'",
             more=" --descriptor hogg"),
    pictures("too small for hog", {"a/1.png": image, "b/2.png": image}, "hog", "8x8", more=" --descriptor hog"),
    pictures("categorical", {"a/1.png": image, "b/2.png": image}, "--categorical", more=" --categorical 1"),
    case("images said of a file", {"t.csv": TABLE}, "ingest t.csv d.zarr --format images", 1, "t.csv"),
]  # fmt: skip


def group(**arrays: Any) -> Any:
    """A Zarr group of arrays; `attrs` are its attributes."""
    attributes = arrays.pop("attrs", {})

    def write(path: Path) -> None:
        root = zarr.open_group(path, mode="w")
        for name, values in arrays.items():
            root.create_array(name, data=np.asarray(values))
        root.attrs.update(attributes)

    return write


def broken_chunk(path: Path) -> None:
    """A group whose chunk is cut."""
    group(X=X, y=Y)(path)
    chunk = next(file for file in (path / "X").rglob("*") if file.is_file() and file.name != "zarr.json")
    chunk.write_bytes(chunk.read_bytes()[:-9])


def broken_metadata(path: Path) -> None:
    """A group whose JSON is cut."""
    group(X=X, y=Y)(path)
    (path / "X" / "zarr.json").write_text('{"shape": [')


def rubbish(path: Path) -> None:
    """A folder that looks like a group."""
    path.mkdir()
    (path / "zarr.json").write_text("{")


def csr_zarr(**changed: Any) -> Any:
    """A csr matrix as a group."""
    parts = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2]} | changed
    attributes = parts.pop("attrs", {"encoding-type": "csr_matrix", "shape": [2, 2]})
    return group(**parts, attrs=attributes)


def stored(name: str, make: Any, *said: str, more: str = "") -> Case:
    """A spoilt Zarr s.zarr."""
    return case(f"zarr {name}", {"s.zarr": make}, f"ingest s.zarr d.zarr{more}", 1, *said)


ZARR = [
    stored("no X", group(a=X, b=X), "s.zarr", "X", "a, b"),
    stored("empty group", group(), "s.zarr", "X"),
    stored("X has one axis", group(X=Y, y=Y), "s.zarr", "(20,)"),
    stored("X without rows", group(X=np.zeros((0, 3))), "s.zarr", "(0, 3)"),
    stored("y of another length", group(X=X, y=Y[1:]), "s.zarr/y", "(19,)", "20"),
    stored("complex X", group(X=X + 1j), "s.zarr", "complex"),
    stored("NaN", group(X=with_value(np.nan), y=Y), "s.zarr", "row 7", "'1'"),
    stored("inf", group(X=with_value(-np.inf), y=Y), "s.zarr", "row 7", "-inf"),
    stored("NaN in y", group(X=X, y=np.where(Y, np.nan, 0)), "row 1"),
    stored("a chunk that is cut", broken_chunk, "s.zarr", "chunk c/0/0"),
    stored("metadata that is cut", broken_metadata, "s.zarr"),
    stored("an incomplete data set", group(X=X, y=Y, attrs={"format": "dkl-dataset", "complete": False}),
           "s.zarr", "not ingested completely"),
    stored("a data set of splits", group(attrs={"format": "dkl-dataset", "complete": True, "splits": ["train"]}),
           "s.zarr", "train"),
    stored("a target that is not there", group(X=X, y=Y), "z", more=" --target z"),
    stored("csr with indptr that does not fit", csr_zarr(indptr=[0, 1, 3]), "s.zarr", "indptr"),
    stored("csr with an index outside", csr_zarr(indices=[0, 9]), "s.zarr", "9"),
    stored("csr without indices", group(data=[1.0], indptr=[0, 1], attrs={"encoding-type": "csr_matrix"}),
           "s.zarr", "indices"),
    stored("csc", csr_zarr(attrs={"encoding-type": "csc_matrix", "shape": [2, 2]}), "s.zarr", "csc_matrix"),
    stored("csr without a shape", csr_zarr(attrs={"encoding-type": "csr_matrix"}), "s.zarr", "shape"),
    stored("rubbish for metadata", rubbish, "s.zarr"),
]  # fmt: skip
BUNDLED = [
    case("sklearn misspelt", {}, "ingest sklearn:digit d.zarr", 1, "did you mean 'sklearn:digits'"),
    case("sklearn of nothing", {}, "ingest sklearn: d.zarr", 1, "no data set"),
    case("sklearn of several targets", {}, "ingest sklearn:linnerud d.zarr", 1, "linnerud", "targets"),
    case("sklearn with a target that is not there", {}, "ingest sklearn:iris d.zarr --target colour", 1, "'colour'"),
    case("sklearn with too many dropped", {}, "ingest sklearn:iris d.zarr --drop petal", 1, "'petal'"),
]
CASES = [*ARRAYS, *IDX, *PARQUET, *IMAGES, *ZARR, *BUNDLED]
