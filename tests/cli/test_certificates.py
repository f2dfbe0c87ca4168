"""dkl certificates: what may speak to what, by TLS itself, and a cluster started by the printed lines."""

from __future__ import annotations

import contextlib
import os
import shlex
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from cryptography import x509

import dkl
from dkl.cli.certificates import ROLES
from tests.cli.conftest import environment, wait_until
from tests.cli.in_process import dkl_in, done
from tests.cli.test_where import free_port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets of certificates, ours and those of strangers, and what was printed."""
    found = tmp_path_factory.mktemp("tls")
    (found / "said").write_text(done(found, "certificates", "our own", "--hosts", "localhost,10.0.0.5", "--days", "30"))
    done(found, "certificates", "strangers")
    return found


def context(folder: Path, role: str, answers: bool) -> ssl.SSLContext:
    """As dask makes it: both sides show certificates of the authority, names are not compared."""
    purpose = ssl.Purpose.CLIENT_AUTH if answers else ssl.Purpose.SERVER_AUTH
    made = ssl.create_default_context(purpose, cafile=str(folder / "ca.pem"))
    made.verify_mode, made.check_hostname = ssl.CERT_REQUIRED, False
    made.load_cert_chain(folder / f"{role}.pem", folder / f"{role}.key")
    return made


def shake_hands(caller: ssl.SSLContext, answerer: ssl.SSLContext, name: str | None = None) -> None:
    """A TLS handshake in memory, and a word each way."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = caller.wrap_bio(down, up, server_side=False, server_hostname=name)
    two = answerer.wrap_bio(up, down, server_side=True)
    left = [one, two]
    for _ in range(10):
        for side in list(left):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
                left.remove(side)
    assert left == []
    one.write(b"ask")
    two.write(b"say")
    assert (two.read(3), one.read(3)) == (b"ask", b"say")


@pytest.mark.parametrize("caller", ROLES)
@pytest.mark.parametrize("answerer", ROLES)
def test_who_may_speak(folder, caller, answerer):
    """Everyone may call, and a client may not answer: whoever stole its key cannot pose as the scheduler."""
    ours = folder / "our own"
    hands = context(ours, caller, False), context(ours, answerer, True)
    if answerer == "client":
        with pytest.raises(ssl.SSLError, match="purpose"):
            shake_hands(*hands)
    else:
        shake_hands(*hands)


def test_strangers_are_refused(folder):
    """Signed by another authority: either side refuses the other."""
    ours, theirs = folder / "our own", folder / "strangers"
    with pytest.raises(ssl.SSLError, match="verify failed"):
        shake_hands(context(ours, "client", False), context(theirs, "scheduler", True))
    with pytest.raises(ssl.SSLError):
        shake_hands(context(theirs, "client", False), context(ours, "scheduler", True))


def test_names_and_days(folder):
    """Programs that compare names accept those of --hosts alone; certificates hold so many days."""
    ours = folder / "our own"
    strict = context(ours, "client", False)
    strict.check_hostname = True
    for name in ("localhost", "10.0.0.5"):
        shake_hands(strict, context(ours, "scheduler", True), name)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(strict, context(ours, "scheduler", True), "elsewhere")
    for path in ours.glob("*.pem"):
        found = x509.load_pem_x509_certificate(path.read_bytes())
        assert 30 <= (found.not_valid_after_utc - found.not_valid_before_utc).total_seconds() / 86400 < 30.1


def test_keys_are_private(folder):
    """Only their owner may read them, even with a lenient umask."""
    before = os.umask(0)
    try:
        done(folder, "certificates", "lenient")
    finally:
        os.umask(before)
    for place in ("lenient", "our own"):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder / place).iterdir()}
        assert [name for name in modes if name.endswith(".key")] != []
        assert all(mode == 0o600 for name, mode in modes.items() if name.endswith(".key"))
        assert stat.S_IMODE((folder / place).stat().st_mode) == 0o700


@pytest.mark.parametrize(("words", "says"), [
    (("our own",), "nothing is overwritten"),
    (("said",), "nothing is overwritten"),
    (("new", "--hosts", "a b"), "'a b'"),
    (("new", "--hosts", "x,10.0.0.300"), "'10.0.0.300'"),
    (("new", "--hosts", "-x"), "'-x'"),
    (("new", "--days", "0"), "0"),
    (("new\nline",), "characters"),
])  # fmt: skip
def test_refusals(folder, words, says):
    """One line that shows the value; nothing is written and nothing changed."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = dkl_in(folder, "certificates", *words)
    assert said.code in (1, 2)
    assert said.err.count("\n") == 1
    assert says in said.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_without_cryptography(tmp_path, monkeypatch):
    """It says what to install."""
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "dkl.cli.authority", raising=False)
    said = dkl_in(tmp_path, "certificates", "new")
    assert said.code == 1
    assert "pip install 'dkl[tls]'" in said.err
    assert list(tmp_path.iterdir()) == []


def test_dask_config(folder):
    """The roles have their own files, and plain connections are refused."""
    place = folder / "our own"
    comm = yaml.safe_load((place / "dask.yaml").read_text())["distributed"]["comm"]
    assert comm["require-encryption"] is True
    assert comm["default-scheme"] == "tls"
    assert comm["tls"].pop("ca-file") == str(place / "ca.pem")
    assert comm["tls"] == {role: {"cert": f"{place}/{role}.pem", "key": f"{place}/{role}.key"} for role in ROLES}


@contextlib.contextmanager
def printed_cluster(folder: Path, port: int) -> Iterator[list[str]]:
    """Scheduler and worker started by the printed lines with flags; the words of the printed fit."""
    lines = (
        (folder / "said").read_text().replace("tls://HOST:8786", f"tls://127.0.0.1:{port}").split("Or with flags:")[1]
    )
    scheduler, worker, fit = (shlex.split(line) for line in lines.strip().splitlines())
    more = {"scheduler": ["--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0"],
            "worker": ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "1GiB"]}  # fmt: skip
    processes: list[subprocess.Popen] = []
    try:
        for words in (scheduler, worker):
            assert words[0] == "dask"
            with (folder / f"{words[1]}.log").open("wb") as out:
                command = [sys.executable, "-m", *words, *more[words[1]]]
                processes.append(subprocess.Popen(command, cwd=folder, env=environment(), stdout=out, stderr=out))
        wait_until(lambda: "Registered to" in (folder / "worker.log").read_text(), "a worker")
        yield fit
    finally:
        for process in processes:
            process.kill()
            process.wait(10)


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_cluster_by_the_printed_lines(folder, tmp_path):
    """A fit through it has the same bits; a stranger's certificate and a plain connection are refused, soon."""
    X = np.random.default_rng(0).normal(size=(400, 4))
    np.savetxt(
        tmp_path / "a.csv", np.c_[X, X[:, 0] + X[:, 1] ** 2], delimiter=",", header="a,b,c,d,target", comments=""
    )
    done(tmp_path, "ingest", "a.csv", "d.zarr", "--target", "target")
    done(tmp_path, "fit", "d.zarr", "here.zarr", "--n-components", "20")
    port = free_port()
    with printed_cluster(folder, port) as fit:
        words = [str(folder / word) if word.startswith("our own") else word for word in fit[1:]]
        words = ["d.zarr" if word == "DATA" else word for word in words]

        def fitted(words: list[str], model: str) -> list[str]:
            return [model if word == "MODEL" else word for word in words] + ["--n-components", "20"]

        done(tmp_path, *fitted(words, "there.zarr"))
        begun = time.monotonic()
        foreign = [word.replace("our own", "strangers") for word in words]
        plain = ["fit", "d.zarr", "MODEL", "--scheduler", f"tcp://127.0.0.1:{port}"]
        for refused in (foreign, plain):
            said = dkl_in(tmp_path, *fitted(refused, "no.zarr"))
            assert said.code == 4, said
            assert said.err.count("\n") == 1, said
        assert time.monotonic() - begun < 40
    one, other = (dkl.load(tmp_path / name).coef_ for name in ("here.zarr", "there.zarr"))
    assert np.array_equal(one, other)
    assert not (tmp_path / "no.zarr").exists()
