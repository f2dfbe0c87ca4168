"""Inputs that cannot be used: one line that says why, the right exit code, and nothing left behind."""

from __future__ import annotations

import bz2
import functools
import gzip
import json
import lzma
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dkl.sources import delimited, svmlight, text
from tests.cli import cases_binary, cases_models, cases_options, cases_text
from tests.cli.case import SHARED, TABLE, put, spoilt
from tests.cli.in_process import Said, dkl_in
from tests.cli.shared import make_shared

ROOT = Path(__file__).parents[2]
CASES = [*cases_text.CASES, *cases_binary.CASES, *cases_options.CASES, *cases_models.CASES]
LEAST = 200
FOREIGN = re.compile(r"Traceback|\w+(Error|Exception|Warning):| object at 0x")
"""What belongs to a programmer, not to the person at the terminal."""
IN_PROCESSES = [
    "csv one field less in the middle",
    "csv empty file",
    "csv latin-1",
    "csv duplicate header",
    "gz cut in the middle",
    "npy Python objects",
    "a folder said to be CSV",
    "ingest --split test",
    "log on a full disk",
    "fit --n-components 9999999",
    "config has a misspelt key",
    "inspect what is not there",
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Good data sets and models, made once; nothing may change them."""
    folder = tmp_path_factory.mktemp("shared")
    make_shared(folder)
    SHARED[:] = [folder]
    before = listing(folder)
    yield folder
    assert listing(folder) == before


def listing(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if path.name not in (".out", ".err")
    }


def words_of(case, shared: Path) -> list[str]:
    """What is typed."""
    return case.words.replace("{shared}", str(shared)).split(" ")


def assert_refused(said: Said, code: int, *words: str) -> None:
    """One line, which holds the words, and the exit code."""
    assert said.err.startswith("dkl: "), said
    assert said.err.endswith("\n"), said
    assert said.err.count("\n") == 1, said
    assert not FOREIGN.search(said.err), said
    assert said.code == code, said
    for word in words:
        assert word in said.err, said


def process(folder: Path, *words: object, shell: str = 'exec "$@"', **more) -> Said:
    """`python -m dkl WORDS` in a process of its own, started by a line of sh."""
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "dkl", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, **more)
    return Said(ran.returncode, ran.stdout, ran.stderr)


def test_there_are_enough_cases():
    """Two hundred that differ, each with a name of its own."""
    assert len({case.name for case in CASES}) == len(CASES) >= LEAST
    typed = {(case.words, repr(sorted(case.files.items(), key=lambda item: item[0]))) for case in CASES}
    assert len(typed) >= LEAST
    assert set(IN_PROCESSES) <= {case.name for case in CASES}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_refused(case, shared, tmp_path):
    """Every case in this process; the folder is afterwards as it was, byte for byte."""
    put(tmp_path, case.files)
    before = listing(tmp_path)
    temporary = set(os.listdir(tempfile.gettempdir()))
    said = dkl_in(tmp_path, *words_of(case, shared))
    assert_refused(said, case.code, *case.said)
    assert said.out == ""
    assert listing(tmp_path) == before
    left = set(os.listdir(tempfile.gettempdir())) - temporary
    assert not [name for name in left if name.startswith("dkl-")]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.name in IN_PROCESSES])
def test_refused_in_a_process(case, shared, tmp_path):
    """A few as they are typed."""
    put(tmp_path, case.files)
    before = listing(tmp_path)
    assert_refused(process(tmp_path, *words_of(case, shared)), case.code, *case.said)
    assert listing(tmp_path) == before


def test_debug_shows_the_traceback(tmp_path):
    """--debug anywhere."""
    (tmp_path / "t.csv").write_text(spoilt(15, "1,2"))
    said = process(tmp_path, "ingest", "t.csv", "d.zarr", "--debug")
    assert said.code == 1
    assert "Traceback" in said.err
    assert "line 15" in said.err


@pytest.fixture(params=[64, 1000])
def small(request, monkeypatch):
    """Segments of a few bytes."""
    for module in (delimited, svmlight):
        monkeypatch.setattr(module, "segments", functools.partial(text.segments, size=request.param))


LATER = {
    "ragged": ("x.csv", spoilt(25, "1,2"), "x.csv", "line 25", "2 fields"),
    "too long": ("x.csv", spoilt(25, "1,2,3,4"), "x.csv", "line 25", "4 fields"),
    "both": ("x.csv", spoilt(25, "1,2,3,4\n1,2"), "x.csv", "line 25", "4 fields"),
    "text": ("x.csv", spoilt(25, "1,two,0"), "x.csv", "line 25", "'two'"),
    "gap": ("x.csv", spoilt(25, "1,,0"), "x.csv", "line 25", "'b'"),
    "infinite": ("x.csv", spoilt(25, "1,1e999,0"), "x.csv", "line 25", "1e999"),
    "beyond float32": ("x.csv", spoilt(25, "1,1e99,0"), "1e+99", "float32"),
    "last": ("x.csv", TABLE + "7,7\n", "x.csv", "line 32"),
    "foreign": ("x.csv", spoilt(25, "1,ü,0").encode("latin-1"), "x.csv", "utf-8"),
    "svmlight": ("x.svm", "1 1:2\n" * 40 + "1 2:1 1:3\n" + "1 1:2\n" * 9, "x.svm", "line 41", "1:3"),
    "svmlight nan": ("x.svm", "1 1:2\n" * 40 + "1 1:nan\n" + "1 1:2\n" * 9, "x.svm", "line 41", "missing"),
}


@pytest.mark.parametrize("name", LATER)
def test_refused_in_a_later_segment(name, small, tmp_path):
    """Line numbers are the file's, not the segment's; other segments that were parsed are gone."""
    file, content, *said = LATER[name]
    put(tmp_path, {file: content})
    before = listing(tmp_path)
    assert_refused(dkl_in(tmp_path, "ingest", file, "d.zarr"), 1, *said)
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", functools.partial(lzma.compress, preset=0))],
)
@pytest.mark.parametrize("how", ["cut", "spoilt"])
def test_damage_behind_the_sample(suffix, pack, how, tmp_path):
    """Compressed bytes that are good for as long as the header and the sample are read."""
    rng = np.random.default_rng(0)
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(*rng.integers(0, 10**9, (3, 90_000)).tolist(), strict=True))
    data = bytearray(pack(("a,b,y\n" + rows).encode()))
    if how == "cut":
        del data[-2000:]
    else:
        data[-3000:-2900] = bytes(100)
    file = f"x.csv.{suffix}"
    (tmp_path / file).write_bytes(data)
    before = listing(tmp_path)
    assert_refused(dkl_in(tmp_path, "ingest", file, "d.zarr"), 1, file)
    assert listing(tmp_path) == before


@pytest.fixture
def locked():
    """A folder that another user may enter; as root, that user is nobody."""
    folder = Path(tempfile.mkdtemp(prefix="locked-"))
    folder.chmod(0o777)
    user = os.geteuid()
    if not user:
        os.seteuid(65534)
    yield folder
    if not user:
        os.seteuid(0)
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o777)
    shutil.rmtree(folder)


LOCKED = {
    "file": ("t.csv", 0o000, "ingest t.csv d.zarr", "t.csv", "permission"),
    "compressed file": ("t.csv.gz", 0o000, "ingest t.csv.gz d.zarr", "t.csv.gz", "permission"),
    "folder of the source": ("f/", 0o000, "ingest f/t.csv d.zarr", "t.csv"),
    "folder of images": ("f/", 0o000, "ingest f d.zarr", "f", "permission"),
    "folder of the destination": ("f/", 0o555, "ingest sklearn:iris f/d.zarr", "f"),
    "array": ("t.npy", 0o000, "ingest t.npy d.zarr", "t.npy", "permission"),
    "configuration": ("c.toml", 0o000, "fit x m --config c.toml", "c.toml", "ermission"),
    "data set": ("d.zarr/", 0o000, "inspect d.zarr", "d.zarr"),
    "model": ("m.zarr/", 0o000, "predict m.zarr d.zarr o.csv", "m.zarr"),
    "data set to fit": ("d.zarr/", 0o000, "fit d.zarr m.zarr", "d.zarr"),
}


@pytest.mark.parametrize("name", LOCKED)
def test_no_permission(name, locked):
    """What may not be read or written is named."""
    file, mode, words, *said = LOCKED[name]
    path = locked / file
    path.mkdir() if file.endswith("/") else path.write_text(TABLE)
    path.chmod(mode)
    before = sorted(os.listdir(locked))
    assert_refused(dkl_in(locked, *words.split(" ")), 1, *said)
    assert sorted(os.listdir(locked)) == before


def test_log_without_permission(locked):
    """A wrong --log is wrong usage."""
    (locked / "l.jsonl").touch()
    (locked / "l.jsonl").chmod(0o444)
    said = dkl_in(locked, "ingest", "sklearn:iris", "d.zarr", "--log", "l.jsonl")
    assert_refused(said, 2, "--log", "l.jsonl", "ermission")
    assert sorted(os.listdir(locked)) == ["l.jsonl"]


def limited(folder: Path, size: int, *words: object) -> Said:
    """A process whose files may have so many bytes: as on a disk that is full, each write beyond fails."""
    return process(
        folder, *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    )


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Numbers that do not compress, and a model of them."""
    folder = tmp_path_factory.mktemp("wide")
    X = np.random.default_rng(0).normal(size=(3000, 20))
    np.savez(folder / "t.npz", X=X, y=np.arange(3000) % 2)
    for words in ("ingest t.npz d.zarr", "fit d.zarr m.zarr --n-components 50"):
        assert dkl_in(folder, *words.split(" ")).code == 0
    return folder


def test_disk_full_while_ingesting(wide, tmp_path):
    """Exit code 3, no data set; what was read can be resumed when there is room."""
    said = limited(tmp_path, 100_000, "ingest", wide / "t.npz", "d.zarr")
    assert_refused(said, 3, "no room")
    assert not (tmp_path / "d.zarr").exists()
    if (tmp_path / "d.zarr.ingest").exists():
        assert dkl_in(tmp_path, "resume", "d.zarr").code == 0
        assert json.loads(dkl_in(tmp_path, "inspect", "d.zarr", "--json").out)["splits"][0]["rows"] == 3000


def test_disk_full_while_fitting(wide, tmp_path):
    """Exit code 3, no model; the fit can be resumed."""
    said = limited(tmp_path, 4000, "fit", wide / "d.zarr", "m.zarr", "--n-components", 50)
    assert_refused(said, 3, "no room")
    assert not (tmp_path / "m.zarr").exists()
    assert [name for name in os.listdir(tmp_path) if "writing" in name] == []
    if (tmp_path / "m.zarr.fit").exists():
        assert dkl_in(tmp_path, "resume", "m.zarr").code == 0
        assert (tmp_path / "m.zarr").exists()


@pytest.mark.parametrize("out", ["o.csv", "o.parquet", "o.zarr"])
def test_disk_full_while_predicting(wide, tmp_path, out):
    """Exit code 3, and nothing of the answers."""
    said = limited(tmp_path, 2000, "predict", wide / "m.zarr", wide / "d.zarr", out, "--scores")
    assert_refused(said, 3, "no room")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("address", ["gopher://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_no_scheduler_there(wide, tmp_path, address):
    """Exit code 4 when nobody can be asked; nothing stands in the way of the next fit."""
    words = ["fit", wide / "d.zarr", "m.zarr", "--scheduler", address, "--n-components", 10]
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text("not PEM")
        words += [f"--tls-{name}", f"{name}.pem"] if address.startswith("tls") else []
    before = listing(tmp_path)
    assert_refused(process(tmp_path, *words), 4, address)
    assert listing(tmp_path) == before


def test_tls_without_its_files(tmp_path):
    """One line that says which flags are missing."""
    said = dkl_in(tmp_path, "doctor", "--scheduler", "tls://127.0.0.1:1")
    assert_refused(said, 4, "give --tls-ca, --tls-cert and --tls-key, or DASK_CONFIG")
