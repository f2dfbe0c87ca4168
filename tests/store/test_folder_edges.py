"""Folders on their edges: links, leftovers, locks, stores that fail, and parents that are not there."""

from __future__ import annotations

import os
import subprocess
import uuid

import fsspec
import pytest

from dkl.sources.batch import Unreachable
from dkl.store import folder as module
from dkl.store.folder import LOCK, Folder, absolute, check_parent, exists, reaching, remove


def test_whatever_a_store_raises_is_said_with_its_url():
    """Here every error is itself; of a URL it is a sentence, but a file that is not there stays that."""
    for error in (ValueError("x"), PermissionError("x"), FileNotFoundError("bucket does not exist")):
        with pytest.raises(type(error)) as caught, reaching("/tmp/a"):
            raise error
        assert caught.value is error
    for error in (ValueError("x"), FileNotFoundError("The specified bucket does not exist")):
        with pytest.raises(Unreachable, match="'s3://b/a' cannot be reached: "), reaching("s3://b/a"):
            raise error
    with pytest.raises(FileNotFoundError, match="no key"), reaching("s3://b/a"):
        raise FileNotFoundError("no key")


def test_removing(tmp_path):
    """A folder with all in it, a file, a link without what it points at; what is not there is no error."""
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "file").touch()
    assert exists(str(tmp_path / "dangling"))
    for name in ("link", "dangling", "file"):
        remove(str(tmp_path / name))
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert (tmp_path / "folder" / "deep" / "file").exists()
    for _ in range(2):
        remove(str(tmp_path / "folder"))
        assert list(tmp_path.iterdir()) == []
    url = f"memory://edges-{uuid.uuid4().hex}"
    fsspec.filesystem("memory").pipe_file(f"/{url[9:]}/a/b", b"")
    assert exists(url)
    for _ in range(2):
        remove(url)
        assert not exists(url)


def test_parents(tmp_path, monkeypatch):
    """Each fault by its name; a URL has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for path in ("a", str(tmp_path / "a"), "s3://b/no/where", "memory://no/where/a"):
        check_parent(path)
    with pytest.raises(FileNotFoundError, match="for 'a' is a file; choose another path"):
        check_parent("file/a")
    with pytest.raises(FileNotFoundError, match="for 'a' does not exist; create it first"):
        check_parent("none/a")
    assert (absolute("memory://x/y//"), absolute("a/")) == ("memory://x/y", str(tmp_path / "a"))


def test_beginning_with_a_journal(tmp_path):
    """Of two who try one gets it, and nothing lies beside it; other faults are not taken for that."""
    place = Folder(str(tmp_path / "a"))
    place.begin("j.json", {"n": 1})
    with pytest.raises(FileExistsError):
        Folder(str(tmp_path / "a")).begin("j.json", {"n": 2})
    assert place.read_json("j.json") == {"n": 1}
    assert (tmp_path / "a" / "j.json").read_text() == '{\n "n": 1\n}'
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Folder(str(tmp_path / "file")).begin("j.json", {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "file"]
    url = f"memory://edges-{uuid.uuid4().hex}"
    Folder(url).begin("j.json", {"n": 1})
    with pytest.raises(FileExistsError):
        Folder(url).begin("j.json", {"n": 2})
    assert Folder(url).read_json("j.json") == {"n": 1}
    assert Folder(url).names() == {"j.json"}


def test_leftovers_are_cleared(tmp_path):
    """An empty folder, and beginnings of processes that are gone; not those of one at work, nor of other names."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    names = [f"a.begin-{gone.pid}", f"a.begin-{os.getpid()}", f"b.begin-{gone.pid}", f"xa.begin-{gone.pid}", "a"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "a" / LOCK).touch()
    Folder(str(tmp_path / "a")).clear()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names[1:4])
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "part").touch()
    Folder(str(tmp_path / "a")).clear()
    assert (tmp_path / "a" / "part").exists()
    Folder(str(tmp_path / "no" / "where")).clear()
    Folder("memory://edges/nothing").clear()


def test_ending(tmp_path):
    """Everything goes; a journal that is gone already is no error, and nor is a store with a journal alone."""
    place = Folder(str(tmp_path / "a"))
    place.create()
    (tmp_path / "a" / "part").mkdir()
    place.end("j.json")
    assert list(tmp_path.iterdir()) == []
    url = f"memory://edges-{uuid.uuid4().hex}"
    store = Folder(url)
    for names in ((), ("part-1", "part-2")):
        store.begin("j.json", {})
        for name in names:
            store.write(name, b"1")
        store.end("j.json")
        assert not exists(url)


def test_ending_goes_from_the_parts_to_the_journal(tmp_path, monkeypatch):
    """Killed before the last step, it has left an empty folder with its lock, which the next one clears."""
    place = Folder(str(tmp_path / "a"))
    place.begin("j.json", {})
    for name in ("part", LOCK):
        (tmp_path / "a" / name).touch()

    def killed(path):
        if path == place.path:
            raise OSError("killed")
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(module, "remove", killed)
        with pytest.raises(OSError, match="killed"):
            place.end("j.json")
    assert [p.name for p in (tmp_path / "a").iterdir()] == [LOCK]
    place.clear()
    assert list(tmp_path.iterdir()) == []


def test_one_at_a_time(tmp_path):
    """The second is told that another is at work, at once; afterwards the folder is free, and a URL has no lock."""
    place = Folder(str(tmp_path / "a"))
    place.create()
    with place.locked():
        with pytest.raises(BlockingIOError, match="another process is working in"), place.locked():
            pass
        assert place.names() == set()
    with place.locked():
        pass
    with Folder("memory://edges/a").locked(), Folder("memory://edges/a").locked():
        pass


def test_names_on_a_store():
    """Files anywhere below, by their last name."""
    url = f"memory://edges-{uuid.uuid4().hex}"
    fs = fsspec.filesystem("memory")
    for name in ("a", "deep/er/b"):
        fs.pipe_file(f"/{url[9:]}/{name}", b"")
    assert Folder(url).names() == {"a", "b"}
