"""A folder of small files on any filesystem; each file is written atomically."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from dkl.sources.batch import Unreachable
from dkl.sources.files import filesystem, one_line

LOCK = ".lock"


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def absolute(path: str) -> str:
    """The same place from any working directory."""
    return path.rstrip("/") if is_url(path) else os.path.abspath(path)


@contextmanager
def reaching(path: str) -> Iterator[None]:
    """Any failure of a remote filesystem becomes Unreachable, with the path."""
    try:
        yield
    except FileNotFoundError as error:
        if is_url(path) and "bucket does not exist" in str(error):
            raise Unreachable(f"{path!r} cannot be reached: {one_line(error)}") from None
        raise
    except Exception as error:  # each filesystem raises its own
        if not is_url(path):
            raise
        raise Unreachable(f"{path!r} cannot be reached: {one_line(error)}") from None


def exists(path: str) -> bool:
    """Whether a path or URL exists (on an object store: has anything under it)."""
    if not is_url(path):
        return os.path.lexists(path)
    with reaching(path):
        fs, name = filesystem(path)
        fs.invalidate_cache()
        return bool(fs.exists(name))


def remove(path: str) -> None:
    """Delete a file or folder, or everything under a URL."""
    if not is_url(path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)
        return
    with reaching(path):
        fs, name = filesystem(path)
        fs.invalidate_cache()
        if fs.exists(name):
            fs.rm(name, recursive=True)


def check_parent(path: str) -> None:
    """Refuse a path whose parent folder does not exist."""
    parent = Path(absolute(path)).parent
    if not is_url(path) and not parent.is_dir():
        fault = "is a file; choose another path" if parent.exists() else "does not exist; create it first"
        raise FileNotFoundError(f"the folder {str(parent)!r} for {os.path.basename(path)!r} {fault}")


class Folder:
    """Named files in one folder or under one URL."""

    def __init__(self, path: str) -> None:
        self.path = absolute(path)

    def create(self) -> None:
        """Create the folder; FileExistsError if it exists, so only one of two processes succeeds."""
        if is_url(self.path):
            if exists(self.path):
                raise FileExistsError(self.path)
        else:
            Path(self.path).mkdir()

    def begin(self, journal: str, value: Any, files: Mapping[str, bytes] | None = None) -> None:
        """Create the folder together with its journal and files, atomically; FileExistsError if it exists."""
        if is_url(self.path):
            self.create()
            for name, data in (files or {}).items():
                self.write(name, data)
            self.write_json(journal, value)
            return
        fresh = Folder(f"{self.path}.begin-{os.getpid()}")
        remove(fresh.path)
        fresh.create()
        try:
            for name, data in (files or {}).items():
                fresh.write(name, data)
            fresh.write_json(journal, value)
            os.rename(fresh.path, self.path)
        except OSError as error:
            remove(fresh.path)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FileExistsError(self.path) from None
            raise

    def clear(self) -> None:
        """Remove the remains of a process that was killed before the journal was written or after it was removed."""
        if is_url(self.path) or not Path(self.path).parent.is_dir():
            return
        if not self.names():
            remove(self.path)
        begun = re.compile(re.escape(os.path.basename(self.path)) + r"\.begin-\d+")
        for left in filter(lambda path: begun.fullmatch(path.name), Path(self.path).parent.iterdir()):
            if not psutil.pid_exists(int(left.name.rpartition("-")[2])):
                remove(str(left))

    def end(self, journal: str) -> None:
        """Remove everything, the journal last, so that a killed removal can be repeated."""
        if is_url(self.path):
            with reaching(self.path):
                fs, folder = filesystem(self.path)
                fs.invalidate_cache()
                files = [path for path in fs.find(folder) if path != f"{folder}/{journal}"]
                if files:
                    fs.rm(files)
                fs.rm_file(f"{folder}/{journal}")
            return
        for path in Path(self.path).iterdir():
            if path.name not in (journal, LOCK):
                remove(str(path))
        Path(self.path, journal).unlink(missing_ok=True)
        remove(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock against other processes of this machine; an object store has no lock."""
        if is_url(self.path):
            yield
            return
        import fcntl

        with open(Path(self.path, LOCK), "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BlockingIOError(f"another process is working in {self.path!r}; wait for it or stop it") from None
            yield

    def write(self, name: str, data: bytes) -> None:
        """Write a file, replacing an older one."""
        if is_url(self.path):
            with reaching(self.path):
                fs, folder = filesystem(self.path)
                fs.pipe_file(f"{folder}/{name}", data)
            return
        fresh = Path(self.path, f".{name}.{uuid.uuid4().hex[:12]}")  # processes of two containers may share a number
        fresh.write_bytes(data)
        os.replace(fresh, Path(self.path, name))

    def remove(self, name: str) -> None:
        """Delete a file."""
        remove(f"{self.path}/{name}")

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        if is_url(self.path):
            with reaching(self.path):
                fs, folder = filesystem(self.path)
                return fs.cat_file(f"{folder}/{name}")
        return Path(self.path, name).read_bytes()

    def names(self) -> set[str]:
        """Names of the files."""
        if not is_url(self.path):
            found = Path(self.path)
            return {p.name for p in found.iterdir() if not p.name.startswith(".")} if found.is_dir() else set()
        with reaching(self.path):
            fs, folder = filesystem(self.path)
            fs.invalidate_cache()
            return {p.rsplit("/", 1)[-1] for p in fs.find(folder)}

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        self.write(name, json.dumps(value, indent=1).encode())

    def read_json(self, name: str) -> Any:
        """The value of a JSON file; None if there is no such file."""
        try:
            return json.loads(self.read(name))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise ValueError(f"{self.path}/{name} is damaged: {error}; remove it and start over") from None
