"""Whether this process can read what lies at a path, and write beside it: tried, as permissions say too little.

Every process that writes leaves a mark, a small file named after the place. A process that does not see the marks of
others has another disk under the same name.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from dkl.sources.files import filesystem, one_line
from dkl.sources.shown import clean
from dkl.store.dataset import open_node
from dkl.store.folder import absolute, check_parent, reaching

MARK = ".dkl-doctor-"
HEAD = 2**16
"""Bytes of a file that are read."""


class Seen(NamedTuple):
    """Why the place cannot be read (empty if it can), and a digest of what it says of itself."""

    fault: str
    digest: str


def look(path: str) -> Seen:
    """Read the description and one row of a Zarr store, or the head of a file."""
    try:
        fs, name = _at(path)
        with reaching(path):
            if fs.isfile(name):
                return Seen("", _digest(fs.cat_file(name, start=0, end=HEAD)))
        node = open_node(path)
        _read_row(node)
        with reaching(path):
            return Seen("", _digest(fs.cat_file(f"{name}/zarr.json")))
    except Exception as error:  # every filesystem and store raises its own
        return Seen(_why(error), "")


def _read_row(node: Any) -> None:
    """One row of X of a data set (or of its first split), or of an array."""
    while not hasattr(node, "shape"):
        members = dict(node.members())
        if not members:
            return
        node = members.get("X", members[min(members)])
    if node.size:
        node[:1]


def leave(path: str, mark: str) -> str:
    """Write a mark beside the path; why not, or nothing."""
    try:
        check_parent(path)
        fs, name = _at(path)
        with reaching(path):
            fs.pipe_file(f"{name}{MARK}{mark}", mark.encode())
    except Exception as error:
        return _why(error)
    return ""


def unseen(path: str, marks: list[str]) -> list[str]:
    """The marks that this process does not see, or cannot read."""
    missing = []
    for mark in marks:
        try:
            fs, name = _at(path)
            fs.invalidate_cache()
            if fs.cat_file(f"{name}{MARK}{mark}") != mark.encode():
                missing.append(mark)
        except Exception:
            missing.append(mark)
    return missing


def sweep(path: str, marks: list[str]) -> None:
    """Remove marks."""
    for mark in marks:
        try:
            fs, name = _at(path)
            fs.rm_file(f"{name}{MARK}{mark}")
        except Exception:  # another process has removed it, or none was written
            continue


def _at(path: str) -> tuple[Any, str]:
    fs, name = filesystem(absolute(path))
    return fs, name.rstrip("/")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _why(error: BaseException) -> str:
    text = one_line(error)
    return clean(text) if text else type(error).__name__
