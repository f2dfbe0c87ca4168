"""Data sets, models and answers on s3://, on a real S3-compatible server process: the same bits as on a disk."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from distributed import Client, LocalCluster

import dkl
from dkl.store.lines import open_lines
from tests.cli.conftest import (
    assert_refused,
    environment,
    finish,
    kill_session,
    run,
    run_each,
    session,
    start,
    tree,
    wait_until,
    write_csv,
)

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")

pytestmark = pytest.mark.timeout(150)

HOW = ("--scale", "standard", "--split", "test=0.2")
MODEL = ("--n-components", "60", "--cv", "3")
BOUND = 45.0
"""Seconds in which a store that cannot be reached must have been refused."""


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Store:
    """A server process and its bucket."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.environ = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        words = ["-m", "moto.server", "-H", "127.0.0.1", "-p", self.url.rpartition(":")[2]]
        with (folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *words], stdout=log, stderr=log, cwd=folder, env=environment(**more)
            )
        wait_until(self._answers, "a server")
        options = {"endpoint_url": self.url, "key": "tester", "secret": "secret", "use_listings_cache": False}
        self.fs = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        if not more:
            self.fs.mkdir("bucket")

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server ended"
        try:
            socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), 1).close()
        except OSError:
            return False
        return True

    def tree(self, path: str) -> dict[str, bytes]:
        """Every object under a path."""
        self.fs.invalidate_cache()
        return {name.removeprefix(f"{path}/"): self.fs.cat_file(name) for name in self.fs.find(path)}

    def names(self, path: str) -> list[str]:
        """What lies right under a path."""
        self.fs.invalidate_cache()
        return sorted({name.removeprefix(f"{path}/").split("/")[0] for name in self.fs.find(path)})

    def close(self) -> None:
        """End the server."""
        self.process.kill()
        self.process.wait(10)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The server, for this module."""
    made = Store(tmp_path_factory.mktemp("server"))
    yield made
    made.close()


@pytest.fixture
def here(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process reaches the server, too."""
    for name, value in store.environ.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def base(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source on the server, and everything that is made of it on a disk."""
    folder = tmp_path_factory.mktemp("local")
    write_csv(folder / "a.csv.gz", 1500, 5, 2)
    store.fs.pipe_file("bucket/a.csv.gz", (folder / "a.csv.gz").read_bytes())
    run(folder, "ingest", "a.csv.gz", "d.zarr", *HOW)
    run(folder, "fit", "d.zarr", "m.zarr", *MODEL)
    (folder / "e.json").write_text(run(folder, "evaluate", "m.zarr", "d.zarr", "--json").out)
    run(folder, "predict", "m.zarr", "d.zarr", "p.csv", "--scores")
    return folder


@pytest.fixture(scope="module")
def remote(store: Store, base: Path) -> str:
    """The same data set and model on the server, made by commands."""
    run(base, "ingest", "s3://bucket/a.csv.gz", "s3://bucket/d.zarr", *HOW, **store.environ)
    run(base, "fit", "s3://bucket/d.zarr", "s3://bucket/m.zarr", *MODEL, **store.environ)
    return "s3://bucket"


def plain(files: dict[str, bytes]) -> dict[str, Any]:
    """Files without what names the place they came from: the origin of a data set, and its id."""
    found: dict[str, Any] = dict(files)
    for name in files:
        if name.endswith("zarr.json"):
            about = json.loads(files[name])
            for key in ("origin", "id", "digest"):  # that of a model covers its request
                about.get("attributes", {}).pop(key, None)
            about.get("attributes", {}).get("fitted", {}).pop("request", None)
            found[name] = about
    return found


def assert_same(store: Store, path: str, local: Path) -> None:
    """The same files with the same bytes."""
    ours, theirs = plain(store.tree(path)), plain(tree(local))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_everything_on_s3(store: Store, base: Path, remote: str, here: None) -> None:
    """Ingest, inspect, fit, evaluate and predict: what they make is what they make on a disk."""
    assert_same(store, "bucket/d.zarr", base / "d.zarr")
    assert_same(store, "bucket/m.zarr", base / "m.zarr")
    assert [name for name in store.names("bucket") if name.endswith((".ingest", ".fit"))] == []
    found = json.loads(run(base, "inspect", f"{remote}/d.zarr", "--json", **store.environ).out)
    assert [split["rows"] for split in found["splits"]] == [
        zarr.open(str(base / "d.zarr" / name / "X")).shape[0] for name in ("train", "test")
    ]
    told = run(base, "evaluate", f"{remote}/m.zarr", f"{remote}/d.zarr", "--json", **store.environ).out
    assert json.loads(told) == json.loads((base / "e.json").read_text())
    model = dkl.load(f"{remote}/m.zarr")
    assert model.coef_.tobytes() == dkl.load(base / "m.zarr").coef_.tobytes()
    assert model.set_params(verbose=0).score(f"{remote}/d.zarr/test") == json.loads(told)["accuracy"]


def test_ingest_on_s3_by_workers(store: Store, base: Path, tmp_path: Path) -> None:
    """Objects that a pattern names, parsed and written by processes that share the store alone: the same bytes."""
    rng = np.random.default_rng(3)
    for i in range(3):
        frame = pd.DataFrame(rng.standard_normal((500, 4)), columns=list("abcd")).assign(y=rng.integers(0, 2, 500))
        frame.to_parquet(tmp_path / f"part-{i}.parquet", row_group_size=200)
        store.fs.pipe_file(f"bucket/parts/part-{i}.parquet", (tmp_path / f"part-{i}.parquet").read_bytes())
    run(tmp_path, "ingest", "part-*.parquet", "p.zarr", *HOW)
    words = ("ingest", "s3://bucket/parts/part-*.parquet", "s3://bucket/p.zarr", *HOW)
    run(tmp_path, *words, "--workers", "2", "--threads", "1", **store.environ)
    assert_same(store, "bucket/p.zarr", tmp_path / "p.zarr")
    assert "p.zarr.ingest" not in store.names("bucket")


def test_answers_on_s3_by_workers(store: Store, base: Path, remote: str, here: None) -> None:
    """Predictions and features that workers write to the store: what one process writes to a disk."""
    model, names = dkl.load(f"{remote}/m.zarr"), {"score": [], "probability": []}
    X, n = f"{remote}/d.zarr/test", zarr.open_array(str(base / "d.zarr/test/X"), mode="r").shape[0]
    features = dkl.FourierFeatures(n_components=30, random_state=0).fit(str(base / "d.zarr/test"))
    features.transform_to(str(base / "d.zarr/test"), base / "f.zarr")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        for kind in ("zarr", "parquet"):
            assert model.predict_to(X, f"{remote}/w.{kind}", names, numbers=X) == n
        assert features.transform_to(X, f"{remote}/f.zarr") == n
    assert_same(store, "bucket/f.zarr", base / "f.zarr")
    expected = pd.read_csv(base / "p.csv")
    found = zarr.open_group(f"{remote}/w.zarr", mode="r")["prediction"]
    np.testing.assert_array_equal(pd.read_parquet(f"{remote}/w.parquet"), expected[["row", "prediction"]])
    np.testing.assert_array_equal(np.array(found.attrs["classes"])[found[:]], expected["prediction"])
    assert store.fs.exists("bucket/w.parquet/_SUCCESS")
    assert [name for name in store.names("bucket") if ".writing" in name] == []


def test_log_and_config_on_s3(store: Store, base: Path, tmp_path: Path) -> None:
    """The options come from an object and the events go to one, after what stood there; the model is the same."""
    log, config = "s3://bucket/runs/fit.jsonl", "s3://bucket/fit.toml"
    store.fs.pipe_file("bucket/fit.toml", b"n_components = 60\ncv = 3\n")
    store.fs.pipe_file("bucket/runs/fit.jsonl", b'{"event": "before"}\n')
    words = ("fit", str(base / "d.zarr"), "m.zarr", "--config", config, "--log", log)
    run(tmp_path, *words, **store.environ)
    assert tree(tmp_path / "m.zarr") == tree(base / "m.zarr")
    store.fs.invalidate_cache()
    events = [json.loads(line) for line in store.fs.cat_file("bucket/runs/fit.jsonl").splitlines()]
    assert [event["event"] for event in events[:2]] == ["before", "begin"]
    assert {"pass", "solve"} <= {event["event"] for event in events}
    assert events[-1]["event"] == "end"
    refused = [
        ("fit", str(base / "d.zarr"), "n.zarr", "--config", "s3://bucket/none.toml"),
        ("fit", str(base / "d.zarr"), "n.zarr", "--config", "s3://nowhere/fit.toml"),
        ("fit", str(base / "d.zarr"), "n.zarr", "--log", "s3://nowhere/l.jsonl"),
    ]
    ran = run_each(tmp_path, tmp_path, refused, **store.environ)
    assert_refused(ran[0], 1, "s3://bucket/none.toml", "does not exist")
    assert_refused(ran[1], 1, "s3://nowhere/fit.toml")
    assert_refused(ran[2], 2, "--log", "s3://nowhere/l.jsonl")
    assert [path.name for path in tmp_path.glob("n.zarr*")] == []


def test_log_on_s3_is_there_before_the_end(store: Store, here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines appear while it runs; a store that fails for a while loses none of them."""
    monkeypatch.setattr("dkl.store.lines.WRITE_SECONDS", 0.0)
    lines = open_lines("s3://bucket/slow.jsonl")
    lines.write("one")
    assert store.fs.cat_file("bucket/slow.jsonl") == b"one\n"
    store.fs.rm("bucket/slow.jsonl")
    lines.name = "nowhere/slow.jsonl"
    with pytest.warns(UserWarning, match="could not be written.*retrying"):
        lines.write("two")
    lines.write("three")
    lines.name = "bucket/slow.jsonl"
    lines.close()
    assert store.fs.cat_file("bucket/slow.jsonl") == b"one\ntwo\nthree\n"


def test_lost_chunk_on_s3(store: Store, base: Path, remote: str, tmp_path: Path) -> None:
    """An object that is gone, or of which a bit is flipped, is refused by name; the data set is not listed for it."""
    store.fs.invalidate_cache()
    name = next(name for name in sorted(store.fs.find("bucket/d.zarr/train/X")) if "/c/" in name)
    data = store.fs.cat_file(name)
    array, _, key = name.partition("/c/")
    spoilt = bytearray(data)
    spoilt[len(spoilt) // 2] ^= 16
    commands = [
        ("fit", f"{remote}/d.zarr", "x.zarr", *MODEL),
        ("evaluate", f"{remote}/m.zarr", f"{remote}/d.zarr", "--split", "train"),
        ("predict", f"{remote}/m.zarr", f"{remote}/d.zarr", "x.csv", "--split", "train"),
        ("inspect", f"{remote}/d.zarr", "--verify"),
    ]
    try:
        for what, damage in (("missing", None), ("damaged", bytes(spoilt))):
            store.fs.rm(name) if damage is None else store.fs.pipe_file(name, damage)
            for ran in run_each(tmp_path, tmp_path, commands, **store.environ):
                assert ran.code == 1, ran
                assert "Traceback" not in ran.err, ran
                assert f"chunk c/{key} of s3://{array} " in ran.out + ran.err, ran
                assert what in ran.out + ran.err, ran
                assert ran.seconds < BOUND
    finally:
        store.fs.pipe_file(name, data)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".csv"] == []
    assert not (tmp_path / "x.zarr").exists()


@pytest.mark.long
def test_predict_to_s3(store: Store, base: Path, remote: str, tmp_path: Path, here: None) -> None:
    """CSV, Parquet and Zarr; a second time only with --overwrite."""
    words = ("predict", f"{remote}/m.zarr", f"{remote}/d.zarr")
    outs = [f"{remote}/p.{kind}" for kind in ("csv", "parquet", "zarr")]
    ran = run_each(base, tmp_path, [(*words, out, "--scores") for out in outs], **store.environ)
    assert [one.code for one in ran] == [0, 0, 0], ran
    expected = (base / "p.csv").read_bytes()
    assert store.fs.cat_file("bucket/p.csv") == expected
    rows = [line.split(",") for line in expected.decode().splitlines()]
    import pandas as pd

    table = pd.read_parquet(f"{remote}/p.parquet")
    assert list(table.columns) == rows[0]
    assert table["prediction"].tolist() == [row[1] for row in rows[1:]]
    assert table[rows[0][2]].tolist() == [float(row[2]) for row in rows[1:]]
    group = zarr.open_group(f"{remote}/p.zarr", mode="r")
    names = np.array(group["prediction"].attrs["classes"])
    assert names[group["prediction"][:]].tolist() == [row[1] for row in rows[1:]]
    assert group.attrs["complete"] is True
    for one in run_each(base, tmp_path, [(*words, out) for out in outs], **store.environ):
        assert_refused(one, 1, "--overwrite")
    again = [(*words, out, "--scores", "--overwrite") for out in outs]
    assert [one.code for one in run_each(base, tmp_path, again, **store.environ)] == [0, 0, 0]
    assert store.fs.cat_file("bucket/p.csv") == expected


@pytest.mark.long
@pytest.mark.cluster
def test_workers_read_s3(store: Store, base: Path, remote: str) -> None:
    """Every worker opens the store itself; the model is the same, and its sums were kept on the store."""
    words = (f"{remote}/d.zarr", f"{remote}/w.zarr", *MODEL, "--workers", "2", "--threads", "1")
    run(base, "fit", *words, **store.environ)
    assert_same(store, "bucket/w.zarr", base / "m.zarr")
    assert "w.zarr.fit" not in store.names("bucket")


def kill_when(store: Store, folder: Path, seen: Any, *words: str) -> None:
    """kill -9 of a command as soon as a condition on the store holds."""
    process = start(folder, *words, **store.environ)
    with session(process):
        wait_until(lambda: seen() or process.poll() is not None, "a moment to kill at")
        assert process.poll() is None, (folder / ".err").read_text()
        kill_session(process)


def exists(store: Store, pattern: str) -> bool:
    """Whether an object of that pattern is there."""
    store.fs.invalidate_cache()
    return bool(store.fs.glob(pattern))


@pytest.mark.parametrize(("name", "pattern"), [
    pytest.param("parsing", "bucket/{}.zarr.ingest/part-0-3.json", marks=pytest.mark.long),
    pytest.param("writing", "bucket/{}.zarr/train/X/c/**", marks=pytest.mark.long),
])  # fmt: skip
def test_killed_ingest_on_s3(store: Store, base: Path, tmp_path: Path, name: str, pattern: str, here: None) -> None:
    """What stands there is refused by every verb until resume has made it whole."""
    dest = f"s3://bucket/{name}.zarr"
    words = ("ingest", "s3://bucket/a.csv.gz", dest, *HOW)
    kill_when(store, tmp_path, lambda: exists(store, pattern.format(name)), *words)
    assert_refused(run(tmp_path, *words, ok=False, **store.environ), 1, "dkl resume")
    if name == "writing":
        for refused in (
            ("fit", dest, "s3://bucket/never.zarr"),
            ("evaluate", "s3://bucket/m.zarr", dest),
            ("inspect", dest),
        ):
            assert_refused(run(tmp_path, *refused, ok=False, **store.environ), 1, "dkl resume")
        with pytest.raises(ValueError, match="not ingested completely"):
            dkl.SingleKernelClassifier(verbose=0).fit(f"{dest}/train")
        assert [n for n in store.names("bucket") if n.startswith("never")] == []
    run(tmp_path, "resume", dest, **store.environ)
    assert_same(store, f"bucket/{name}.zarr", base / "d.zarr")
    assert f"{name}.zarr.ingest" not in store.names("bucket")


@pytest.mark.long
@pytest.mark.parametrize(("name", "pattern"), [
    ("sums", "bucket/{}.zarr.fit/sums/sums-*/zarr.json"),
    ("saving", "bucket/{}.zarr/*/c/**"),
])  # fmt: skip
def test_killed_fit_on_s3(
    store: Store, base: Path, remote: str, tmp_path: Path, name: str, pattern: str, here: None
) -> None:
    """A fit whose model and checkpoint lie on the store."""
    dest = f"s3://bucket/fit-{name}.zarr"
    words = ("fit", f"{remote}/d.zarr", dest, *MODEL)
    kill_when(store, tmp_path, lambda: exists(store, pattern.format(f"fit-{name}")), *words)
    with pytest.raises(ValueError):
        dkl.load(dest)
    assert_refused(run(tmp_path, "evaluate", dest, f"{remote}/d.zarr", ok=False, **store.environ), 1)
    run(tmp_path, "resume", dest, **store.environ)
    assert_same(store, f"bucket/fit-{name}.zarr", base / "m.zarr")
    assert f"fit-{name}.zarr.fit" not in store.names("bucket")


@pytest.mark.long
def test_interrupted_ingest_on_s3(store: Store, base: Path, tmp_path: Path) -> None:
    """Ctrl-C names the URL to resume."""
    dest = "s3://bucket/stopped.zarr"
    process = start(tmp_path, "ingest", "s3://bucket/a.csv.gz", dest, *HOW, **store.environ)
    with session(process):
        wait_until(lambda: exists(store, "bucket/stopped.zarr.ingest/part-*.json") or process.poll(), "a part")
        process.send_signal(signal.SIGINT)
        ran = finish(process, tmp_path, 20)
    assert_refused(ran, 130, f"dkl resume {dest}")
    run(tmp_path, "resume", dest, **store.environ)
    assert_same(store, "bucket/stopped.zarr", base / "d.zarr")


def refuse_all(base: Path, tmp_path: Path, commands: list[tuple[str, ...]], environ: dict[str, str]) -> None:
    """Each ends soon with one line that names where it was, and leaves nothing."""
    wrong = {}
    for words, ran in zip(commands, run_each(base, tmp_path, commands, **environ), strict=True):
        try:
            assert_refused(ran, 1, "s3://")
            assert ran.seconds < BOUND
            assert [*base.glob("x.zarr*")] == []
        except AssertionError as error:
            wrong[" ".join(words)] = str(error).splitlines()[:6]
    assert wrong == {}, "\n".join(map(str, wrong.items()))


@pytest.mark.long
def test_missing_on_s3(store: Store, base: Path, tmp_path: Path) -> None:
    """Buckets and keys that are not there, and that nobody makes."""
    commands = [
        ("ingest", "s3://bucket/nothing.csv", "x.zarr"),
        ("ingest", "s3://nowhere/a.csv.gz", "x.zarr"),
        ("ingest", "a.csv.gz", "s3://nowhere/x.zarr"),
        ("inspect", "s3://bucket/nothing.zarr"),
        ("inspect", "s3://nowhere/x.zarr"),
        ("fit", "s3://nowhere/d.zarr", "x.zarr"),
        ("fit", "d.zarr", "s3://nowhere/x.zarr"),
        ("predict", "m.zarr", "d.zarr", "s3://nowhere/p.csv"),
        ("predict", "m.zarr", "d.zarr", "s3://nowhere2/p.parquet"),
        ("predict", "m.zarr", "d.zarr", "s3://nowhere3/p.zarr"),
        ("resume", "s3://nowhere/x.zarr"),
    ]
    refuse_all(base, tmp_path, commands, store.environ)
    store.fs.invalidate_cache()
    assert store.fs.ls("") == ["bucket"]


COMMANDS = [
    ("ingest", "s3://bucket/a.csv.gz", "x.zarr"),
    ("ingest", "a.csv.gz", "s3://bucket/x.zarr"),
    ("inspect", "s3://bucket/d.zarr"),
    ("fit", "d.zarr", "s3://bucket/x.zarr"),
    ("predict", "m.zarr", "d.zarr", "s3://bucket/p.csv"),
]


@pytest.mark.long
def test_endpoint_down(store: Store, base: Path, tmp_path: Path) -> None:
    """Nobody listens there."""
    refuse_all(base, tmp_path, COMMANDS[:1], store.environ | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})


def test_wrong_credentials(base: Path, tmp_path: Path) -> None:
    """A server that asks for the keys it knows, and knows none."""
    strict = Store(tmp_path, INITIAL_NO_AUTH_ACTION_COUNT="0")
    try:
        refuse_all(base, tmp_path, COMMANDS, strict.environ)
    finally:
        strict.close()
