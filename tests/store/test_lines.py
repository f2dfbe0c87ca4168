"""Lines added one by one: what lies in the file, or in the object, after each of them."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import fsspec
import pytest

from dkl.store import lines
from dkl.store.lines import open_lines


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is set."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(lines, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


@pytest.fixture
def store():
    """Something to read and write objects with, and a URL where nothing is."""
    fs, name = fsspec.filesystem("memory"), f"/lines-{uuid.uuid4().hex}"
    return SimpleNamespace(
        url=f"memory:/{name}", read=lambda: fs.cat_file(name), put=lambda text: fs.pipe_file(name, text)
    )


def test_a_local_file_has_each_line_at_once(tmp_path):
    """Whoever watches it sees the line before the file is closed; a second run adds to the first."""
    path = tmp_path / "log.jsonl"
    for number in (1, 2):
        out = open_lines(str(path))
        out.write(f"line {number}")
        assert path.read_text() == "".join(f"line {i}\n" for i in range(1, number + 1))
        out.close()
        assert out.file.closed


@pytest.mark.parametrize(("before", "front"), [(None, b""), (b"", b""), (b"old", b"old\n"), (b"old\n", b"old\n")])
def test_what_an_object_held_stays_in_front(store, before, front):
    """With its last line ended, and no empty line made; it is written at once, so a refusal comes at once."""
    if before is not None:
        store.put(before)
    out = open_lines(store.url)
    assert store.read() == front
    out.write("new")
    out.close()
    assert store.read() == front + b"new\n"


def test_an_object_is_written_every_ten_seconds(store, clock):
    """Not before, and then ten seconds from there; the end writes what is left."""
    out = open_lines(store.url)
    sent = b""
    for number, (at, is_sent) in enumerate([(0, False), (9.9, False), (10, True), (19.9, False), (27, True)]):
        clock.seconds = 1000.0 + at
        out.write(f"é{number}")
        if is_sent:
            sent = "".join(f"é{i}\n" for i in range(number + 1)).encode()
        assert store.read() == sent
    out.write("last")
    out.close()
    assert store.read() == sent + b"last\n"


def test_the_end_writes_only_what_is_left(store, clock):
    """An object that has every line is not written again."""
    out = open_lines(store.url)
    store.put(b"another's")
    out.close()
    assert store.read() == b"another's"
    clock.seconds += 10
    out.write("mine")
    assert store.read() == b"mine\n"
    store.put(b"another's")
    out.close()
    assert store.read() == b"another's"


def test_a_store_that_fails_is_tried_again(tmp_path, clock):
    """One warning, however often it fails; nothing is lost once it is there again."""
    folder = tmp_path / "away"
    folder.mkdir()
    out = open_lines(f"file://{folder}/log")
    (folder / "log").unlink()
    folder.rmdir()
    clock.seconds += 10
    with pytest.warns(UserWarning, match="could not be written: .*; retrying"):
        out.write("a")
    clock.seconds += 10
    out.write("b")
    folder.mkdir()
    out.close()
    assert (folder / "log").read_text() == "a\nb\n"
