"""A disk that is full, a Zarr that cannot be read, a source that is the destination: one sentence each."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest
import zarr

import dkl
from dkl.sources import text
from dkl.sources.batch import Reading
from dkl.sources.labels import open_labels
from dkl.store.seen import column_range
from tests.cli.in_process import dkl_in
from tests.store.made import ingest

LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from dkl.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def limited(folder, most, *words):
    """dkl in a process that cannot write a file of more than `most` bytes."""
    command = [sys.executable, "-c", LIMITED, str(most), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_no_room_on_the_disk(tmp_path):
    """Exit code 3 and one sentence, from ingest, fit and predict; nothing half written has its name."""
    X = np.random.default_rng(0).normal(size=(4000, 30))
    np.savez(tmp_path / "t.npz", X=X, y=(X[:, 0] > 0).astype(int))
    ingest(tmp_path / "t.npz", tmp_path / "d.zarr")
    dkl.SingleKernelClassifier(n_components=10, verbose=0).fit(str(tmp_path / "d.zarr")).save(tmp_path / "m.zarr")
    for most, out, words in (
        (100_000, "e.zarr", ("ingest", "t.npz", "e.zarr")),
        (20_000, "n.zarr", ("fit", "d.zarr", "n.zarr", "--n-components", "600")),
        (2_000, "a.csv", ("predict", "m.zarr", "d.zarr", "a.csv")),
        (2_000, "a.parquet", ("predict", "m.zarr", "d.zarr", "a.parquet")),
        (2_000, "a.zarr", ("predict", "m.zarr", "d.zarr", "a.zarr")),
    ):
        ran = limited(tmp_path, most, *words)
        assert ran.returncode == 3, (words, ran)
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert "no room on the disk" in ran.stderr
        assert not (tmp_path / out).exists()


def test_a_source_that_is_the_destination(tmp_path):
    """With and without --overwrite, however it is spelt."""
    np.savez(tmp_path / "t.npz", X=np.eye(4), y=[0, 1, 0, 1])
    ingest(tmp_path / "t.npz", tmp_path / "d.zarr")
    for words in (("d.zarr", "d.zarr"), ("d.zarr", "./d.zarr/"), ("d.zarr", "d.zarr", "--overwrite")):
        said = dkl_in(tmp_path, "ingest", *words)
        assert said.code == 1
        assert "both a source and the destination" in said.err


def test_a_source_inside_the_destination(tmp_path):
    """A split would be lost with the rest of what it replaces."""
    np.savez(tmp_path / "t.npz", X=np.eye(40), y=[0, 1] * 20)
    ingest(tmp_path / "t.npz", tmp_path / "d.zarr", split={"test": 0.5})
    said = dkl_in(tmp_path, "ingest", "d.zarr/train", "d.zarr", "--overwrite")
    assert said.code == 1
    assert "'d.zarr/train' is inside the destination 'd.zarr'" in said.err
    assert (tmp_path / "d.zarr" / "test").exists()


@pytest.mark.parametrize("attributes", ["[]", "", "{", "3"])
def test_a_zarr_that_cannot_be_read(tmp_path, attributes):
    """A group of Zarr v2 with attributes that are none: a sentence, and no advice to ingest it into itself."""
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2)
    group.create_array("X", data=np.eye(4))
    group.create_array("y", data=np.arange(4) % 2)
    (tmp_path / "a.zarr" / ".zattrs").write_text(attributes)
    said = dkl_in(tmp_path, "fit", "a.zarr", "m.zarr")
    assert said.code == 1
    assert "a.zarr" in said.err
    assert "dkl ingest" not in said.err
    assert len(said.err.splitlines()) == 1
    with pytest.raises(ValueError, match=r"cannot open .*a\.zarr"):
        dkl.SingleKernelClassifier().fit(str(tmp_path / "a.zarr"))


def test_a_part_without_its_summary_is_parsed_again(tmp_path):
    """Rows that are staged do not count until what they hold is written too (the writer was killed in between)."""
    from concurrent.futures import ThreadPoolExecutor

    from dkl.engine.progress import Progress
    from dkl.sources.find import open_source
    from dkl.store.folder import Folder
    from dkl.store.staging import Staging

    np.savetxt(tmp_path / "t.csv", np.arange(12.0).reshape(6, 2), delimiter=",")
    folder = Folder(str(tmp_path / "staging"))
    folder.create()
    folder.write("part-0-0.rows", b"cut off")
    staging = Staging(folder)
    with ThreadPoolExecutor(1) as pool:
        staging.stage(0, open_source(str(tmp_path / "t.csv"), Reading(target="none")), pool, 2, Progress(0))
    [part] = staging.parts(0)
    np.testing.assert_array_equal(staging.load(part).X, np.arange(12.0).reshape(6, 2))


def test_the_range_of_a_sparse_channel_ends_before_the_next():
    """Columns first .. last-1: neither the entry before nor the one after counts, and the last one does."""
    from scipy.sparse import csr_array

    X = csr_array(np.array([[-9.0, 1.0, 2.0, 9.0], [-8.0, 3.0, 4.0, 8.0]]))
    assert column_range(X, 1, 3) == (1.0, 4.0)
    assert column_range(X, 0, 1) == (-9.0, -8.0)
    assert column_range(X, 3, 4) == (8.0, 9.0)
    assert column_range(csr_array(np.array([[0.0, 1.0, 2.0, 9.0]])), 0, 3) == (0.0, 2.0)


def test_labels_that_go_on_in_a_later_segment(tmp_path, monkeypatch):
    """Surplus labels are found however far behind the last row they stand."""
    path = tmp_path / "labels.txt"
    path.write_text("1\n" * 3 + "\n" * 60 + "1\n")
    monkeypatch.setattr("dkl.sources.labels.segments", functools.partial(text.segments, size=8))
    labels = open_labels(str(path), Reading()).open()
    try:
        labels.read(3)
        with pytest.raises(ValueError, match="labels after line"):
            labels.finish()
    finally:
        labels.close()
