"""Small files that appear whole, here and behind a URL."""

from __future__ import annotations

import uuid

import pytest

from dkl.store import folder
from dkl.store.folder import Folder, absolute, exists, is_url, remove


@pytest.fixture(params=["local", "memory"])
def path(request, tmp_path):
    """A place where nothing is yet."""
    return str(tmp_path / "f") if request.param == "local" else f"memory://dkl-tests/{uuid.uuid4().hex}"


def test_files(path):
    """Written, replaced, listed, read, gone."""
    folder = Folder(path)
    assert not exists(path)
    assert folder.names() == set()
    assert folder.read_json("a.json") is None
    folder.create()
    folder.write_json("a.json", {"x": [1, 2.5, None]})
    folder.write("b", b"1")
    folder.write("b", b"\x00\xff")
    assert exists(path)
    assert folder.names() == {"a.json", "b"}
    assert folder.read("b") == b"\x00\xff"
    assert folder.read_json("a.json") == {"x": [1, 2.5, None]}
    with pytest.raises(FileExistsError):
        Folder(path).create()
    folder.write("a.json", b"{")
    with pytest.raises(ValueError, match=r"a\.json is damaged"):
        folder.read_json("a.json")
    remove(path)
    assert not exists(path)
    remove(path)


def test_paths(tmp_path, monkeypatch):
    """A local path means the same from everywhere; a URL is itself."""
    monkeypatch.chdir(tmp_path)
    assert absolute("x/../y") == str(tmp_path / "y")
    assert absolute("s3://b/x/") == "s3://b/x"
    assert is_url("s3://b/x")
    assert not is_url("/a:b")


def test_no_half_file_is_listed(tmp_path):
    """What a killed writer left does not count."""
    folder = Folder(str(tmp_path / "f"))
    folder.create()
    (tmp_path / "f" / ".part.json.123").write_text("{")
    assert folder.names() == set()


def test_the_journal_goes_last(tmp_path, monkeypatch):
    """Whoever is interrupted while removing a folder still finds its journal, and can end it again."""
    place = folder.Folder(str(tmp_path / "a.ingest"))
    place.begin("ingest.json", {})
    for name in ("part-0-0.rows", "part-0-0.json"):
        (tmp_path / "a.ingest" / name).touch()

    def interrupted(path):
        raise OSError("pulled out")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "remove", interrupted)
        with pytest.raises(OSError, match="pulled out"):
            place.end("ingest.json")
    assert (tmp_path / "a.ingest" / "ingest.json").exists()
    place.end("ingest.json")
    assert list(tmp_path.iterdir()) == []
