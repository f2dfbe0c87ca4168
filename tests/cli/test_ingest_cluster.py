"""`dkl ingest` and `dkl resume` with the workers of a cluster, as processes that are killed; on a disk and on s3://."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import finish, kill_session, run, start, tree, wait_until
from tests.engine.conftest import Machines, cluster_of

pytestmark = pytest.mark.timeout(150)

HOW = ("--scale", "standard", "--split", "test=0.2", "--categorical", "auto", "--missing", "mean")
FILES = 12


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two workers of one thread."""
    with cluster_of(tmp_path_factory.mktemp("cluster"), 2) as machines:
        yield machines


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in several files, with gaps and names."""
    folder, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(0)
    for i in range(FILES):
        frame = pd.DataFrame(rng.standard_normal((2000, 30))).rename(columns=str)
        frame["kind"] = rng.choice(["a", "b", "c"], 2000)
        frame["7"] = frame["7"].where(rng.random(2000) > 0.1)
        frame["label"] = rng.choice(["yes", "no"], 2000)
        frame.to_csv(folder / f"part-{i:02}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def alone(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The data set that one process makes, by the same words in another folder."""
    folder = tmp_path_factory.mktemp("alone")
    run(folder, "ingest", f"{parts}/part-*.csv", "rows.zarr", *HOW)
    return tree(folder / "rows.zarr")


def staged(folder: Path, kind: str) -> int:
    """How many notes of a kind lie in the staging folder."""
    return len(list((folder / "rows.zarr.ingest").glob(f"{kind}-*.json")))


def test_a_worker_and_the_client_are_killed(
    machines: Machines, parts: Path, alone: dict[str, bytes], tmp_path: Path
) -> None:
    """In the middle; another worker comes, `dkl resume` goes on, and the bytes are the same."""
    words = ("ingest", f"{parts}/part-*.csv", "rows.zarr", *HOW, "--scheduler", str(machines.file))
    client = start(tmp_path, *words)
    wait_until(lambda: staged(tmp_path, "stretch") >= 2, "two files")
    machines.kill(next(iter(machines.workers)))
    wait_until(lambda: staged(tmp_path, "stretch") >= 4, "four files")
    kill_session(client)
    assert not (tmp_path / "rows.zarr").exists()
    machines.add(1)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "rows.zarr.ingest").glob("stretch-*")}
    said = run(tmp_path, "resume", "rows.zarr", "--scheduler", str(machines.file))
    assert "rows.zarr is complete" in said.out
    assert tree(tmp_path / "rows.zarr") == alone
    assert 4 <= len(before) < FILES or len(before) == FILES
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == ["rows.zarr"]


def test_a_destination_that_workers_do_not_see(machines: Machines, parts: Path, tmp_path: Path) -> None:
    """One line says so; nothing of the data set is made."""
    words = ("ingest", f"{parts}/part-00.csv", "memory://here/rows.zarr", *HOW, "--scheduler", str(machines.file))
    said = run(tmp_path, *words, ok=False)
    assert said.code == 1, said
    assert "does not find this ingest in 'memory://here/rows.zarr.ingest'" in said.err


def test_a_local_cluster(parts: Path, alone: dict[str, bytes], tmp_path: Path) -> None:
    """--workers starts one; a destination that exists is refused before."""
    words = ("ingest", f"{parts}/part-*.csv", "rows.zarr", *HOW, "--workers", "2", "--threads", "1")
    process = start(tmp_path, *words)
    assert finish(process, tmp_path).code == 0
    assert tree(tmp_path / "rows.zarr") == alone
    said = run(tmp_path, *words, ok=False)
    assert (said.code, "exists" in said.err) == (1, True)
