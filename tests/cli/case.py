"""A malformed input: what to put on disk, what to type, and what must be said."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Make = Callable[[Path], Any]
TABLE = "a,b,y\n" + "".join(f"{i},{i * 0.5 - 3},{i % 2}\n" for i in range(30))
"""Good rows, to be spoilt in one place."""


class Case(NamedTuple):
    """One run in an empty folder; {shared} in `words` is the folder of good data sets and models."""

    name: str
    files: dict[str, Any]
    """Name to bytes, text, or a function that makes what lies there from its path."""
    words: str
    code: int
    said: tuple[str, ...]
    """What the line on stderr must hold."""


def case(name: str, files: dict[str, Any], words: str, code: int, *said: str) -> Case:
    """A case; every one must name something."""
    assert said, name
    return Case(name, files, words, code, said)


def put(folder: Path, files: dict[str, Any]) -> None:
    """Write the files of a case."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def folder(path: Path) -> None:
    """An empty folder where something else should be."""
    path.mkdir()


def spoilt(line: int, text: str) -> str:
    """The table with one of its lines (from 1) replaced."""
    lines = TABLE.splitlines()
    lines[line - 1] = text
    return "\n".join(lines) + "\n"


def npy(array: Any) -> bytes:
    """The bytes of an npy file."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(**arrays: Any) -> bytes:
    """The bytes of an npz file."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


SHARED: list[Path] = []
"""The folder of good data sets and models, once they are made."""


def copy_of(name: str, spoil: Make | None = None) -> Make:
    """A copy of something good, spoilt."""

    def write(path: Path) -> None:
        shutil.copytree(SHARED[0] / name, path)
        if spoil is not None:
            spoil(path)

    return write
