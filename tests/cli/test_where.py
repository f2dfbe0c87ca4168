"""Where it runs: in this process, on a local cluster, on schedulers and workers that were started by hand, with TLS."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dkl.cli.where import ClusterError, cluster
from tests.cli.conftest import (
    assert_refused,
    assert_same_tree,
    environment,
    leftovers,
    run,
    run_each,
    wait_until,
    write_csv,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

FIT = ("fit", "d.zarr", "m.zarr", "--n-components", "60", "--cv", "3")
BOUND = 40.0
"""Seconds in which a cluster that is not there must have been refused."""


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_patience_is_set_by_dask():
    """dkl.scheduler-timeout is how long a scheduler may take to answer; the default is ten seconds."""
    begun, nobody = time.monotonic(), cluster(scheduler=f"tcp://127.0.0.1:{free_port()}")
    with dask.config.set({"dkl.scheduler-timeout": "0.3"}), pytest.raises(ClusterError, match="no scheduler answers"):
        nobody.__enter__()
    assert time.monotonic() - begun < 9


def make_authority(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """An authority, and a certificate with its key that it signed: three PEM files."""
    folder.mkdir()
    now = datetime.datetime.now(datetime.UTC)
    span = now - datetime.timedelta(days=1), now + datetime.timedelta(days=2)
    top, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def build(who: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        named = x509.CertificateBuilder().subject_name(who).issuer_name(issuer).public_key(key.public_key())
        return named.serial_number(x509.random_serial_number()).not_valid_before(span[0]).not_valid_after(span[1])

    root = build(issuer, top).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    host = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = build(subject, own).add_extension(host, critical=False)
    files = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(root.sign(top, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(leaf.sign(top, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files[2].write_bytes(own.private_bytes(*form, plain))
    return files


def tls_flags(files: tuple[Path, Path, Path], names: tuple[str, str, str]) -> list[str]:
    """The files as options of that name."""
    return [word for name, file in zip(names, files, strict=True) for word in (name, str(file))]


DASK = ("--tls-ca-file", "--tls-cert", "--tls-key")
DKL = ("--tls-ca", "--tls-cert", "--tls-key")


@contextlib.contextmanager
def by_hand(folder: Path, workers: int, tls: tuple[Path, Path, Path] | None = None) -> Iterator[tuple[str, Path]]:
    """`dask scheduler` and `dask worker` processes; (address, scheduler file)."""
    folder.mkdir()
    file, port = folder / "scheduler.json", free_port()
    protocol = "tcp" if tls is None else "tls"
    safe = [] if tls is None else tls_flags(tls, DASK)
    address = f"{protocol}://127.0.0.1:{port}"
    processes: list[subprocess.Popen] = []

    def begin(what: str, *options: str) -> Path:
        log = folder / f"{what}-{len(processes)}.log"
        with log.open("wb") as out:
            words = [sys.executable, "-m", "dask", what, "--protocol", protocol, *safe, *options]
            processes.append(subprocess.Popen(words, stdout=out, stderr=out, cwd=folder, env=environment()))
        return log

    try:
        logs = [begin("scheduler", "--host", "127.0.0.1", "--port", str(port), "--scheduler-file", str(file),
                      "--no-dashboard", "--dashboard-address", ":0")]  # fmt: skip
        wait_until(lambda: file.exists() and file.stat().st_size, "a scheduler")
        for _ in range(workers):
            logs.append(begin("worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny",
                              "--no-dashboard", "--memory-limit", "2GB"))  # fmt: skip
        wait_until(lambda: all("Registered to" in log.read_text() for log in logs[1:]), "workers")
        yield address, file
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(10)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set, and what this process alone makes of it: a model, an evaluation and predictions."""
    folder = tmp_path_factory.mktemp("embedded")
    write_csv(folder / "a.csv.gz", 1500, 5, 2)
    run(folder, "ingest", "a.csv.gz", "d.zarr", "--scale", "standard", "--split", "test=0.2")
    run(folder, *FIT)
    (folder / "e.json").write_text(run(folder, "evaluate", "m.zarr", "d.zarr", "--json").out)
    run(folder, "predict", "m.zarr", "d.zarr", "p.csv", "--scores")
    return folder


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The files of the cluster."""
    return make_authority(tmp_path_factory.mktemp("tls") / "ours", "cluster")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory, authority: tuple[Path, Path, Path]) -> Iterator[tuple[str, Path]]:
    """Scheduler and two workers that speak TLS only."""
    with by_hand(tmp_path_factory.mktemp("hand") / "tls", 2, authority) as found:
        yield found


@pytest.fixture(scope="module")
def tcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Scheduler and one worker without."""
    with by_hand(tmp_path_factory.mktemp("hand") / "tcp", 1) as found:
        yield found


def check_everything(base: Path, folder: Path, *where: str) -> None:
    """fit, evaluate and predict there; each is, byte by byte, what one process makes of the same data set."""
    os.symlink(base / "d.zarr", folder / "d.zarr")
    run(folder, "fit", str(base / "d.zarr"), *FIT[2:], *where)
    assert_same_tree(folder / "m.zarr", base / "m.zarr")
    found = json.loads(run(folder, "evaluate", "m.zarr", "d.zarr", "--json", *where).out)
    assert found == json.loads((base / "e.json").read_text())
    run(folder, "predict", "m.zarr", "d.zarr", "p.csv", "--scores", *where)
    assert (folder / "p.csv").read_bytes() == (base / "p.csv").read_bytes()
    assert leftovers(folder) == ["d.zarr", "m.zarr", "p.csv"]


def test_local_cluster_gives_the_same_bytes(base: Path, tmp_path: Path) -> None:
    """--workers 2 --threads 1."""
    check_everything(base, tmp_path, "--workers", "2", "--threads", "1")


def test_tls_cluster_gives_the_same_bytes(
    base: Path, tmp_path: Path, tls: tuple[str, Path], authority: tuple[Path, Path, Path]
) -> None:
    """--scheduler tls:// with the three files, against processes that were started by hand."""
    assert tls[0].startswith("tls://")
    check_everything(base, tmp_path, "--scheduler", tls[0], *tls_flags(authority, DKL))


def test_scheduler_file_of_a_tls_cluster(
    base: Path, tmp_path: Path, tls: tuple[str, Path], authority: tuple[Path, Path, Path]
) -> None:
    """The file names a tls:// address."""
    run(tmp_path, "fit", str(base / "d.zarr"), *FIT[2:], "--scheduler", str(tls[1]), *tls_flags(authority, DKL))
    assert_same_tree(tmp_path / "m.zarr", base / "m.zarr")


@pytest.mark.long
def test_tcp_cluster_by_address_and_by_file(base: Path, tmp_path: Path, tcp: tuple[str, Path]) -> None:
    """tcp://, the bare host:port, and file.json."""
    for number, where in enumerate((tcp[0], tcp[0].removeprefix("tcp://"), str(tcp[1]))):
        run(tmp_path, "fit", str(base / "d.zarr"), f"m{number}.zarr", *FIT[3:], "--scheduler", where)
        assert_same_tree(tmp_path / f"m{number}.zarr", base / "m.zarr")


def refuse(base: Path, folder: Path, code: int, *where: str, says: tuple[str, ...] = (), **more: str) -> None:
    """A fit there ends soon, in one line; the same fit in this process is not in its way afterwards."""
    words = ("fit", str(base / "d.zarr"), *FIT[2:])
    begun = time.monotonic()
    ran = run(folder, *words, *where, ok=False, **more)
    assert time.monotonic() - begun < BOUND
    assert_refused(ran, code, *says)
    assert not (folder / "m.zarr").exists()
    again = run(folder, *words, ok=False)
    if again.code:
        assert_refused(again, 1, "dkl resume")
        run(folder, "resume", "m.zarr")
    assert_same_tree(folder / "m.zarr", base / "m.zarr")
    assert leftovers(folder) == ["m.zarr"]


def test_tls_without_files(base: Path, tmp_path: Path, tls: tuple[str, Path]) -> None:
    """The cluster speaks TLS, and nobody said with which files."""
    refuse(base, tmp_path, 4, "--scheduler", tls[0], says=("tls",))


@pytest.mark.long
def test_tls_with_foreign_files(base: Path, tmp_path: Path, tls: tuple[str, Path]) -> None:
    """Files of another authority."""
    foreign = make_authority(tmp_path / "foreign", "stranger")
    (tmp_path / "run").mkdir()
    refuse(base, tmp_path / "run", 4, "--scheduler", tls[0], *tls_flags(foreign, DKL), says=(tls[0],))


@pytest.mark.long
def test_tls_scheduler_asked_without_tls(base: Path, tmp_path: Path, tls: tuple[str, Path]) -> None:
    """tcp:// to a scheduler that speaks TLS."""
    refuse(base, tmp_path, 4, "--scheduler", tls[0].replace("tls", "tcp"))


@pytest.mark.long
def test_no_scheduler_there(base: Path, tmp_path: Path) -> None:
    """Nobody listens; and a scheduler file that is not there, or is rubbish."""
    (tmp_path / "run").mkdir()
    refuse(base, tmp_path / "run", 4, "--scheduler", f"tcp://127.0.0.1:{free_port()}")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "empty.json").write_text("{}")
    names = ("none.json", "bad.json", "empty.json")
    words = ("fit", str(base / "d.zarr"), *FIT[2:], "--scheduler")
    for name, ran in zip(names, run_each(tmp_path, tmp_path, [(*words, name) for name in names]), strict=True):
        assert_refused(ran, 4, name)
        assert ran.seconds < BOUND


@pytest.mark.long
def test_no_workers_there(base: Path, tmp_path: Path) -> None:
    """A scheduler without workers is given up after a while."""
    (tmp_path / "run").mkdir()
    with by_hand(tmp_path / "alone", 0) as (address, _):
        refuse(base, tmp_path / "run", 4, "--scheduler", address, says=("worker",), DASK_DKL__NO_WORKERS_TIMEOUT="3")


def test_wrong_options(base: Path, tmp_path: Path) -> None:
    """Exit 2, one line, and nothing begun."""
    there = ("--scheduler", "tls://127.0.0.1:1")
    ran = run_each(tmp_path, tmp_path, [("fit", str(base / "d.zarr"), *FIT[2:], *where) for where in (
        ("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"),
        ("--tls-ca", "ca.pem"),
        (*there, "--tls-ca", "nowhere.pem", "--tls-cert", "nowhere.pem", "--tls-key", "k.pem"),
        (*there, "--tls-ca", __file__),
        (*there, "--threads", "2"),
        ("--workers", "0"),
        ("--workers", "two"),
    )])  # fmt: skip
    for one in ran:
        assert_refused(one, 2)
    assert leftovers(tmp_path) == []


def spoil(base: Path, folder: Path, how: str, pattern: str = "train/X/c/*/*") -> str:
    """A copy of the data set with its first chunk lost, or one bit of it flipped; the name of the chunk."""
    shutil.copytree(base / "d.zarr", folder / "d.zarr")
    file = sorted((folder / "d.zarr").glob(pattern))[0]
    if how == "missing":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 16
        file.write_bytes(data)
    array, _, key = file.relative_to(folder).as_posix().partition("/c/")
    return f"chunk c/{key} of {folder / array} ("


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_damaged_chunks_are_refused_on_workers(base: Path, tmp_path: Path, tcp: tuple[str, Path], how: str) -> None:
    """A chunk that workers read: exit code 1 and its name, soon and in one line, as in one process."""
    wanted = spoil(base, tmp_path, how)
    where = ("--scheduler", tcp[0])
    commands = [
        ("fit", "d.zarr", "m.zarr", *FIT[3:], *where),
        ("fit", "d.zarr", "n.zarr", "--n-components", "20", "--learn", "cv", "--cv", "2", *where),
        ("evaluate", str(base / "m.zarr"), "d.zarr", "--split", "train", *where),
        ("predict", str(base / "m.zarr"), "d.zarr", "p.csv", "--split", "train", *where),
    ]
    for words, ran in zip(commands, run_each(tmp_path, tmp_path, commands), strict=True):
        assert ran.seconds < BOUND, words
        assert_refused(ran, 1, wanted, how)
    assert {name.split(".")[0] for name in leftovers(tmp_path, "d.zarr")} <= {"m", "n"}
    assert not (tmp_path / "m.zarr").exists()
    assert not (tmp_path / "n.zarr").exists()
