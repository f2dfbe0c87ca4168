"""Passwords and signatures in URLs: they open a source of a real web server, and are found nowhere afterwards."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import zarr

import dkl
from dkl.sources.shown import clean, shown
from tests.cli.conftest import assert_same_tree
from tests.cli.in_process import Said, dkl_in

pytest.importorskip("aiohttp")

PASSWORD, SIGNATURE = "Pa55word", "s1gnature0f9"
RNG = np.random.default_rng(0)
LINES = [",".join(f"{v:.6f}" for v in row) + f",k{i % 3}" for i, row in enumerate(RNG.normal(size=(20_000, 3)))]
ROWS = "\n".join(["a,b,c,y", *LINES])
FILES = {
    "/rows.csv": ROWS.encode(),
    "/short.csv": "\n".join(ROWS.splitlines()[:200]).encode(),
    "/labels.txt": "\n".join(f"l{i % 2}" for i in range(199)).encode(),
    "/broken.csv": b"a,b,y\n1,2,3\n1,2\n",
    "/noise.bin": b"\x93NUMPY\x01\x00 garbage",
    "/archive.csv.gz": b"\x1f\x8b garbage",
}


class Server:
    """Files behind a password and a signature; after `most` answers it fails."""

    def __init__(self) -> None:
        self.most: int | None = None
        self.served = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.answer(False)

            def do_GET(self) -> None:
                self.answer(True)

            def answer(self, body: bool) -> None:
                parts = urlsplit(self.path)
                wanted = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
                signed = parse_qs(parts.query).get("X-Amz-Signature", [""])[0].startswith(SIGNATURE)
                if self.headers.get("Authorization") != f"Basic {wanted}" or not signed:
                    self.send_error(403)
                    return
                data = FILES.get(parts.path)
                if data is None:
                    self.send_error(404)
                    return
                first, last = 0, len(data) - 1
                if asked := self.headers.get("Range"):
                    low, _, high = asked.removeprefix("bytes=").partition("-")
                    first, last = int(low), min(int(high or last), last)
                if body and outer.most is not None and outer.served >= outer.most:
                    self.send_error(500)
                    return
                outer.served += body
                self.send_response(206 if asked else 200)
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Length", str(last - first + 1))
                if asked:
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                self.end_headers()
                if body:
                    self.wfile.write(data[first : last + 1])

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def url(self, name: str, more: str = "") -> str:
        """A file with its secrets."""
        return f"http://user:{PASSWORD}@127.0.0.1:{self.port}{name}?X-Amz-Signature={SIGNATURE}{more}&x=1,2#t"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own for each test."""
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def assert_no_secret(folder: Path, *said: Said | str) -> None:
    """Not in one byte of one file, or its name, nor in what was said."""
    for path in folder.rglob("*"):
        text = str(path).encode() + (path.read_bytes() if path.is_file() else b"")
        for secret in (PASSWORD, SIGNATURE):
            assert secret.encode() not in text, path
    for one in said:
        for secret in (PASSWORD, SIGNATURE):
            assert secret not in str(one), one


def test_a_data_set_and_a_model_of_a_signed_url(server: Server, tmp_path: Path) -> None:
    """Ingest, inspect, fit, evaluate and predict with logs: the same data as of a file, and no secret in it."""
    (tmp_path / "short.csv").write_bytes(FILES["/short.csv"])
    where = server.url("/short.csv")
    runs = [
        ("ingest", "short.csv", "file.zarr"),
        ("ingest", where, "web.zarr", "--log", "log.jsonl"),
        ("ingest", where, "like.zarr", "--like", "file.zarr", "--log", "log.jsonl"),
        ("ingest", where, "labels.zarr", "--drop", "y", "--target", server.url("/labels.txt"), "--log", "log.jsonl"),
        ("inspect", "web.zarr", "--json"),
        ("fit", "web.zarr", "model.zarr", "--n-components", "10", "--log", "log.jsonl"),
        ("evaluate", "model.zarr", where, "--log", "log.jsonl"),
        ("predict", "model.zarr", where, "answers.csv", "--log", "log.jsonl"),
        ("inspect", "model.zarr"),
    ]
    said = [dkl_in(tmp_path, *words) for words in runs[:3]]
    assert [one.code for one in said] == [0] * 3, said
    X = zarr.open_group(tmp_path / "web.zarr", mode="r")["X"][:]
    np.testing.assert_array_equal(X, zarr.open_group(tmp_path / "file.zarr", mode="r")["X"][:])
    said += [dkl_in(tmp_path, *words) for words in runs[3:]]
    assert [one.code for one in said[4:]] == [0] * 5, said
    assert server.served
    assert_no_secret(tmp_path, *said)
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert f"http://127.0.0.1:{server.port}/short.csv" in json.dumps(events), "the place itself is told"


@pytest.mark.parametrize("name", ["/missing.csv", "/broken.csv", "/noise.bin", "/archive.csv.gz", "denied", "refused"])
def test_failures_keep_the_secret(server: Server, tmp_path: Path, name: str) -> None:
    """404, malformed content, no permission, nobody listening: one sentence with the place and without the rest."""
    where = server.url(name if name.startswith("/") else "/rows.csv")
    if name == "denied":
        where = where.replace(PASSWORD, PASSWORD[::-1] + PASSWORD)
    if name == "refused":
        server.http.shutdown()
        server.http.server_close()
    for words in (("ingest", where, "d.zarr", "--log", "log.jsonl"), ("inspect", where), ("fit", where, "m.zarr")):
        said = dkl_in(tmp_path, *words)
        assert said.code == 1, said
        assert len([line for line in said.err.splitlines() if "dkl: warning: " not in line]) == 1
        assert "Traceback" not in said.err
        assert_no_secret(tmp_path, said)
    with pytest.raises((ValueError, OSError)) as caught:
        dkl.ingest(where, tmp_path / "d.zarr", verbose=0)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert_no_secret(tmp_path, str(chain))
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)


def test_an_interrupted_ingest_goes_on_with_the_secret_given_again(server: Server, tmp_path: Path) -> None:
    """Nothing of it is kept; resume says what to type; the same command, with a fresh signature, goes on."""
    (tmp_path / "right").mkdir()
    assert dkl_in(tmp_path / "right", "ingest", server.url("/rows.csv"), "d.zarr").code == 0
    server.most, server.served = server.served - 1, 0
    said = dkl_in(tmp_path, "ingest", server.url("/rows.csv"), "d.zarr", "--log", "log.jsonl")
    assert said.code == 1, said
    assert (tmp_path / "d.zarr.ingest").is_dir(), "what was read is kept"
    assert_no_secret(tmp_path, said, dkl_in(tmp_path, "inspect", "d.zarr"))
    server.most = None
    again = dkl_in(tmp_path, "resume", "d.zarr")
    assert again.code == 1
    assert "not stored; type the same dkl ingest" in again.err
    other = dkl_in(tmp_path, "ingest", server.url("/rows.csv"), "d.zarr", "--scale", "standard")
    assert other.code == 1
    assert "is running or was interrupted" in other.err
    last = dkl_in(tmp_path, "ingest", server.url("/rows.csv", "fresh"), "d.zarr")
    assert last.code == 0, last
    assert_no_secret(tmp_path, again, other, last)
    a, b = (zarr.open_group(p / "d.zarr", mode="r") for p in (tmp_path, tmp_path / "right"))
    assert a["X"][:].tobytes() == b["X"][:].tobytes()
    assert_same_tree(tmp_path / "d.zarr" / "y", tmp_path / "right" / "d.zarr" / "y")


def test_places_that_must_be_written_down(tmp_path: Path) -> None:
    """A destination, the data of a fit, a checkpoint: refused before anything is written."""
    secret = f"http://user:{PASSWORD}@127.0.0.1:1/x.zarr"
    (tmp_path / "a.csv").write_bytes(FILES["/short.csv"])
    for words in (("ingest", "a.csv", secret), ("fit", secret, "m.zarr"), ("fit", "d.zarr", secret)):
        said = dkl_in(tmp_path, *words)
        assert said.code == 1
        assert "environment" in said.err
        assert_no_secret(tmp_path, said)
    with pytest.raises(ValueError, match="environment") as caught:
        dkl.SingleKernelRegressor(checkpoint=secret, n_components=5).fit(np.ones((5, 2)), np.arange(5.0))
    assert PASSWORD not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        dkl.load(secret)
    assert PASSWORD not in str(caught.value)


SHOWN = {
    "https://user:pw@h:80/a/r.csv?X-Amz-Signature=S&b=1,2#f": "https://h:80/a/r.csv",
    "https://TOKEN@h/a": "https://h/a",
    "https://h/a?TOKEN": "https://h/a",
    "https://h/a#TOKEN": "https://h/a",
    "http://u:p/w@h/x": "http://.../h/x",
    "http://[::1]:80/x?TOKEN": "http://[::1]:80/x",
    "ftp://u:p@h/x": "ftp://h/x",
    "zip://a.csv::https://t@h/f.zip?sig=S": "zip://a.csv::https://h/f.zip",
    "simplecache::http://u:p@h/a?t=1": "simplecache::http://h/a",
    "s3://bucket/part-?.csv": "s3://bucket/part-?.csv",
    "s3://bucket/x?versionId=S": "s3://bucket/x",
    "memory://a/b": "memory://a/b",
    "/local/a?b=c#d@e": "/local/a?b=c#d@e",
    "sklearn:digits": "sklearn:digits",
}


@pytest.mark.parametrize("url", sorted(SHOWN))
def test_what_is_shown(url: str) -> None:
    """Scheme, host and path; patterns and local paths as they are; also in the middle of a sentence."""
    assert shown(url) == SHOWN[url]
    assert clean(f"{url!r} does not exist") == f"{SHOWN[url]!r} does not exist"
    if "://" in url:
        assert clean(f"(see {url}), then") == f"(see {SHOWN[url]}), then"
