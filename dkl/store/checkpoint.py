"""What a fit has done so far: a folder that a fit of the same parameters and rows goes on from, bit for bit.

fit.json        what is being fitted; another fit is refused
prepared        the map and the seed, as a record
step-N          where learning stands after N steps (iterations, and ends of starts and stages), as a record; the
                newest counts, older ones are removed
sums-N          the sums of the first N blocks of the last pass, likewise

Each record says, under its digest, which fit it belongs to and what it covers, so one that was renamed, or copied from
another checkpoint, is refused.
"""

from __future__ import annotations

import os
import re
import uuid
from typing import Any

import numpy as np

from dkl.sources.shown import shown
from dkl.store.folder import Folder, check_parent, exists, remove
from dkl.store.record import DIGEST, DamagedRecord, digest_of, open_attributes, open_record, save_record

JOURNAL, FORMAT = "fit.json", "dkl-checkpoint"
MOST_BYTES = 2**62
RECORD_KEYS = ("format", "version", "arrays", "covers", DIGEST)
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
            known = {"format": FORMAT, "fit": fingerprint, "run": uuid.uuid4().hex}
            self.folder.write_json(JOURNAL, known)
        begun = known.get("fit", {})
        names = sorted({*fingerprint, *begun} - {*free})
        changed = [name for name in names if begun.get(name) != fingerprint.get(name)]
        if changed:
            raise ValueError(
                f"checkpoint {path!r} is of another fit ({', '.join(changed)} differ); choose another, or begin anew "
                "with fit(resume=False)"
            )
        if begun != fingerprint:
            self.folder.write_json(JOURNAL, {**known, "fit": fingerprint})
        lasting = {name: value for name, value in fingerprint.items() if name not in free}
        self.fit = digest_of({"fit": lasting, "run": known.get("run")})
        """What every record of this folder, and of no other, was written for."""

    def prepared(self) -> tuple[dict, dict[str, np.ndarray]] | None:
        """Attributes and arrays of the map, if that has been made."""
        path = f"{self.folder.path}/prepared"
        return open_covering(path, {"fit": self.fit, "kind": "prepared"}) if _is_whole(path) else None

    def save_prepared(self, attributes: dict, arrays: Arrays) -> None:
        """Keep the map."""
        _save(f"{self.folder.path}/prepared", attributes, arrays, {"fit": self.fit, "kind": "prepared"})

    def place(self, done: int, kind: str = "sums") -> str:
        """Where the sums of so many blocks, or the state after so many steps, belong."""
        return f"{self.folder.path}/{kind}-{done}"

    def newest(self, kind: str = "sums") -> int:
        """Blocks in the newest sums, or the number of the newest step; 0 if there are none."""
        counts = sorted(saved_counts(self.folder, kind), reverse=True)
        return next((count for count in counts if _is_whole(self.place(count, kind))), 0)

    def covered(self, done: int, kind: str = "sums", **more: Any) -> dict:
        """What a record of so many blocks, or steps, says of itself."""
        return {"fit": self.fit, "kind": kind, "count": done, **more}

    def sums_of(self, program: str, blocks: int) -> int:
        """Blocks in the newest sums of a program that is known by its digest; sums of an earlier one are removed."""
        done = self.newest()
        if not done:
            return 0
        kept = open_attributes(self.place(done), FORMAT).get("covers")
        found = (kept.get("program"), kept.get("of")) if isinstance(kept, dict) else (None, None)
        same_fit = kept == self.covered(done, program=found[0], of=found[1])
        if same_fit and found != (program, blocks):
            remove(self.place(done))  # learning ended elsewhere than when they were added up
            return self.sums_of(program, blocks)
        _check_covers(self.place(done), kept, self.covered(done, program=program, of=blocks))
        return done

    def save_step(self, number: int, attributes: dict, arrays: Arrays) -> None:
        """Keep where learning stands, and let go of where it stood before."""
        _save(self.place(number, "step"), attributes, arrays, self.covered(number, "step"))
        for older in saved_counts(self.folder, "step"):
            if older != number:
                remove(self.place(older, "step"))

    def open_step(self) -> tuple[int, dict, dict[str, np.ndarray]] | None:
        """Number, attributes and arrays of the newest step."""
        number = self.newest("step")
        if not number:
            return None
        return number, *open_covering(self.place(number, "step"), self.covered(number, "step"))

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
    except DamagedRecord:  # whoever opens it says so
        return True
    except ValueError:
        return False
    return True


def save_sums(sums: Any, path: str, covers: dict) -> bool:
    """Write a record of sums where it lies, with what they cover."""
    _save(path, {"refusal": sums.refusal}, {name: (_axes(a), a) for name, a in _arrays(sums).items()}, covers)
    return True


def _save(path: str, attributes: dict, arrays: Arrays, covers: dict) -> None:
    """Write a record in place of one that was not written to its end."""
    if exists(path) and not _is_whole(path):
        remove(path)
    save_record(path, {**attributes, "covers": covers}, arrays, FORMAT, overwrite=True)


def open_covering(path: str, covers: dict) -> tuple[dict, dict[str, np.ndarray]]:
    """Attributes and arrays of a record that covers that; refuses whatever is not exactly what was written."""
    found, arrays = open_record(path, MOST_BYTES, FORMAT)
    _check_covers(path, found.get("covers") if DIGEST in found else None, covers)
    return {name: value for name, value in found.items() if name not in RECORD_KEYS}, arrays


def _check_covers(path: str, found: Any, covers: dict) -> None:
    """Refuse a record of another fit, of other blocks, or one that does not say."""
    if not isinstance(found, dict):
        raise ValueError(
            f"{shown(path)!r} does not say what it covers (an older dkl wrote it); begin anew with fit(resume=False)"
        )
    wrong = sorted(name for name in {*covers, *found} if found.get(name) != covers.get(name))
    if wrong:
        raise ValueError(
            f"{shown(path)!r} covers something else than its name says ({', '.join(wrong)} differ): it was renamed or "
            "copied; begin anew with fit(resume=False)"
        )


def open_sums(kind: Any, path: str, covers: dict) -> Any:
    """The sums back, as the record `kind`."""
    attributes, arrays = open_covering(path, covers)
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
