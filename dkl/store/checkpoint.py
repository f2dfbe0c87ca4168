"""What a fit has done so far: a folder that a fit of the same parameters and rows goes on from, bit for bit.

fit.json        what is being fitted; another fit is refused
prepared        the map and the seed, as a record
step-N          where learning stands after N steps (iterations, and ends of starts and stages), as a record; the
                newest counts, older ones are removed
sums-N          the sums of the first N blocks of the last pass, likewise
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

import numpy as np

from dkl.store.folder import Folder, check_parent, exists, remove
from dkl.store.record import open_attributes, open_record, save_record

JOURNAL, FORMAT = "fit.json", "dkl-checkpoint"
MOST_BYTES = 2**62
ADDED = ("format", "version", "arrays", "sha256")
"""Attributes that every record has."""
Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]


class Checkpoint:
    """One fit's folder; made at its first use."""

    def __init__(self, path: str, fingerprint: dict, free: tuple[str, ...] = ()) -> None:
        """`free` names what may differ from the fit that began it."""
        self.folder = Folder(path)
        check_parent(path)
        if os.path.isfile(path):
            raise FileExistsError(f"checkpoint {path!r} is a file; choose a folder")
        known = self.folder.read_json(JOURNAL)
        if known is None:
            if exists(path) and self.folder.names():
                raise FileExistsError(f"checkpoint {path!r} exists and is not one of dkl's; choose another folder")
            if not exists(path):
                self.folder.create()
            self.folder.write_json(JOURNAL, {"format": FORMAT, "fit": fingerprint})
            return
        begun = known.get("fit", {})
        names = sorted({*fingerprint, *begun} - {*free})
        changed = [name for name in names if begun.get(name) != fingerprint.get(name)]
        if changed:
            raise ValueError(
                f"checkpoint {path!r} is of another fit ({', '.join(changed)} differ); choose another, or begin anew "
                "with fit(resume=False)"
            )
        if begun != fingerprint:
            self.folder.write_json(JOURNAL, {"format": FORMAT, "fit": fingerprint})

    def prepared(self) -> tuple[dict, dict[str, np.ndarray]] | None:
        """Attributes and arrays of the map, if that has been made."""
        path = f"{self.folder.path}/prepared"
        return _open(path) if _is_whole(path) else None

    def save_prepared(self, attributes: dict, arrays: Arrays) -> None:
        """Keep the map."""
        _save(f"{self.folder.path}/prepared", attributes, arrays)

    def place(self, done: int, kind: str = "sums") -> str:
        """Where the sums of so many blocks, or the state after so many steps, belong."""
        return f"{self.folder.path}/{kind}-{done}"

    def newest(self, kind: str = "sums") -> int:
        """Blocks in the newest sums, or the number of the newest step; 0 if there are none."""
        counts = sorted(saved_counts(self.folder, kind), reverse=True)
        return next((count for count in counts if _is_whole(self.place(count, kind))), 0)

    def save_step(self, number: int, attributes: dict, arrays: Arrays) -> None:
        """Keep where learning stands, and let go of where it stood before."""
        _save(self.place(number, "step"), attributes, arrays)
        for older in saved_counts(self.folder, "step"):
            if older != number:
                remove(self.place(older, "step"))

    def open_step(self) -> tuple[int, dict, dict[str, np.ndarray]] | None:
        """Number, attributes and arrays of the newest step."""
        number = self.newest("step")
        return (number, *_open(self.place(number, "step"))) if number else None

    def forget_sums(self) -> None:
        """Remove all sums: what they are of is learned further."""
        for count in saved_counts(self.folder):
            remove(self.place(count))

    def keep_only(self, done: int) -> None:
        """Remove sums that newer ones replace, after looking that the newer ones can be seen from here."""
        if not _is_whole(self.place(done)):
            raise FileNotFoundError(
                f"the workers wrote the checkpoint {self.place(done)!r}, but it cannot be seen here; let it be a "
                "folder that the client and all workers share"
            )
        for count in saved_counts(self.folder):
            if count != done:
                remove(self.place(count))


def saved_counts(folder: Folder, kind: str = "sums") -> list[int]:
    """Numbers of every record of that kind in a folder, whole or not."""
    from dkl.store.folder import is_url

    if is_url(folder.path):
        from dkl.sources.files import filesystem

        fs, name = filesystem(folder.path)
        fs.invalidate_cache()
        names = (
            {path.rstrip("/").rsplit("/", 1)[-1] for path in fs.ls(name, detail=False)} if fs.exists(name) else set()
        )
    else:
        names = folder.names()
    return [int(match.group(1)) for name in names if (match := re.fullmatch(rf"{kind}-(\d+)", name))]


def _is_whole(path: str) -> bool:
    try:
        open_attributes(path, FORMAT)
    except ValueError:
        return False
    return True


def save_sums(sums: Any, path: str) -> bool:
    """Write a record of sums where it lies."""
    _save(path, {"refusal": sums.refusal}, {name: (_axes(a), a) for name, a in _arrays(sums).items()})
    return True


def _save(path: str, attributes: dict, arrays: Arrays) -> None:
    """Write a record in place of one that was not written to its end."""
    if exists(path) and not _is_whole(path):
        remove(path)
    save_record(path, {**attributes, "sha256": _digest(attributes)}, arrays, FORMAT)


def _open(path: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Attributes and arrays of a record; refuses whatever is not exactly what was written."""
    found, arrays = open_record(path, MOST_BYTES, FORMAT)
    attributes = {name: value for name, value in found.items() if name not in ADDED}
    if found.get("sha256") != _digest(attributes):
        raise ValueError(f"{path!r} has the wrong digest; the checkpoint is damaged or was changed; remove it")
    return attributes, arrays


def _digest(attributes: dict) -> str:
    return hashlib.sha256(json.dumps(attributes, sort_keys=True).encode()).hexdigest()


def open_sums(kind: Any, path: str) -> Any:
    """The sums back, as the record `kind`."""
    attributes, arrays = _open(path)
    refusal = attributes["refusal"]
    return kind(**arrays, refusal=None if refusal is None else tuple(refusal))


def _arrays(sums: Any) -> dict[str, np.ndarray]:
    return {name: value for name, value in vars(sums).items() if isinstance(value, np.ndarray)}


def _axes(array: np.ndarray) -> tuple[str, ...]:
    return ("fold", "first", "second")[: array.ndim]


def progress_of(path: str) -> dict | None:
    """What is known of a checkpoint from outside; None if there is none."""
    folder = Folder(path)
    known = folder.read_json(JOURNAL)
    if known is None:
        return None
    newest = {
        kind: max((n for n in saved_counts(folder, kind) if _is_whole(f"{folder.path}/{kind}-{n}")), default=0)
        for kind in ("sums", "step")
    }
    prepared = _is_whole(f"{folder.path}/prepared")
    return {"fit": known["fit"], "prepared": prepared, "blocks": newest["sums"], "steps": newest["step"]}
