"""The checkpoint of a fit: a folder from which a fit of the same parameters and rows resumes, bit for bit.

fit.json        the fingerprint of the fit; another fit is refused
prepared        the feature map and the seed, as a record
step-N          the state of learning after N steps (iterations, and ends of starts and stages), as a record; only the
                newest is kept
weights-N       the same of the loop that finds the weights
sums-N          the sums of the first N blocks of the last pass, likewise

Each record names, under its digest, its fit and what it covers. So a record that was renamed, or copied from another
checkpoint, is refused.
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
LOOPS = ("step", "weights")
"""Records of the loop that learns, and of the one that finds weights."""
RECORD_KEYS = ("format", "version", "arrays", "covers", DIGEST)
"""Attributes that save_record and _save add."""
Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]


class Checkpoint:
    """The folder of one fit, created on first use."""

    def __init__(self, path: str, fingerprint: dict, free: tuple[str, ...] = ()) -> None:
        """`free` names the entries of the fingerprint that may differ from those of the first run."""
        self.folder = Folder(path)
        check_parent(path)
        if os.path.isfile(path):
            raise FileExistsError(f"checkpoint {path!r} is a file; choose a folder")
        known = _journal(self.folder)
        if known is None:
            if exists(path) and self.folder.names():
                raise FileExistsError(
                    f"checkpoint {path!r} exists and is not a checkpoint of dkl; choose another folder"
                )
            if not exists(path):
                self.folder.create()
            known = {"format": FORMAT, "fit": fingerprint, "run": uuid.uuid4().hex}
            self.folder.write_json(JOURNAL, known)
        begun = known.get("fit", {})
        names = sorted({*fingerprint, *begun} - {*free})
        changed = [name for name in names if begun.get(name) != fingerprint.get(name)]
        if changed:
            raise ValueError(
                f"checkpoint {path!r} belongs to another fit ({', '.join(changed)} differ); choose another, or start "
                "over with fit(resume=False)"
            )
        if begun != fingerprint:
            self.folder.write_json(JOURNAL, {**known, "fit": fingerprint})
        lasting = {name: value for name, value in fingerprint.items() if name not in free}
        self.fit = digest_of({"fit": lasting, "run": known.get("run")})
        """The digest that all records of this folder carry, and those of no other folder."""

    def prepared(self) -> tuple[dict, dict[str, np.ndarray]] | None:
        """Attributes and arrays of the feature map; None if it is not saved yet."""
        path = f"{self.folder.path}/prepared"
        return open_covering(path, {"fit": self.fit, "kind": "prepared"}) if _is_whole(path) else None

    def save_prepared(self, attributes: dict, arrays: Arrays) -> None:
        """Save the feature map."""
        _save(f"{self.folder.path}/prepared", attributes, arrays, {"fit": self.fit, "kind": "prepared"})

    def place(self, done: int, kind: str = "sums") -> str:
        """The path of the sums of `done` blocks, or of the state after `done` steps."""
        return f"{self.folder.path}/{kind}-{done}"

    def newest(self, kind: str = "sums") -> int:
        """Blocks in the newest sums, or the newest step; 0 if there is none."""
        counts = sorted(saved_counts(self.folder, kind), reverse=True)
        return next((count for count in counts if _is_whole(self.place(count, kind))), 0)

    def covered(self, done: int, kind: str = "sums", **more: Any) -> dict:
        """The attribute `covers` of a record of `done` blocks or steps."""
        return {"fit": self.fit, "kind": kind, "count": done, **more}

    def sums_of(self, program: str, blocks: int) -> int:
        """Blocks in the newest sums of the program with this digest; sums of an earlier program are removed."""
        done = self.newest()
        if not done:
            return 0
        kept = open_attributes(self.place(done), FORMAT).get("covers")
        found = (kept.get("program"), kept.get("of")) if isinstance(kept, dict) else (None, None)
        same_fit = kept == self.covered(done, program=found[0], of=found[1])
        if same_fit and found != (program, blocks):
            remove(self.place(done))  # the state has changed since these were summed
            return self.sums_of(program, blocks)
        _check_covers(self.place(done), kept, self.covered(done, program=program, of=blocks))
        return done

    def save_step(self, number: int, attributes: dict, arrays: Arrays, kind: str = "step") -> None:
        """Save the state of learning, or of another loop, and remove older ones."""
        _save(self.place(number, kind), attributes, arrays, self.covered(number, kind))
        for older in saved_counts(self.folder, kind):
            if older != number:
                remove(self.place(older, kind))

    def open_step(self, kind: str = "step") -> tuple[int, dict, dict[str, np.ndarray]] | None:
        """Number, attributes and arrays of the newest step."""
        number = self.newest(kind)
        if not number:
            return None
        return number, *open_covering(self.place(number, kind), self.covered(number, kind))

    def forget_sums(self) -> None:
        """Remove all sums, as the state they belong to will change."""
        for count in saved_counts(self.folder):
            remove(self.place(count))

    def keep_only(self, done: int) -> None:
        """Remove older sums, after checking that the newest are visible to the client."""
        if not _is_whole(self.place(done)):
            raise FileNotFoundError(
                f"the workers wrote the checkpoint {self.place(done)!r}, but the client cannot see it; use a folder "
                "that the client and all workers share"
            )
        for count in saved_counts(self.folder):
            if count != done:
                remove(self.place(count))


def _journal(folder: Folder) -> dict | None:
    """What the folder says of its fit; None if it says nothing."""
    known = folder.read_json(JOURNAL)
    if known is None:
        return None
    if not isinstance(known, dict) or known.get("format") != FORMAT or not isinstance(known.get("fit"), dict):
        raise ValueError(f"{shown(folder.path)!r} holds no checkpoint: its {JOURNAL} is damaged; remove the folder")
    return known


def saved_counts(folder: Folder, kind: str = "sums") -> list[int]:
    """Numbers of all records of a kind in a folder, complete or not."""
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
    except DamagedRecord:  # refused when it is opened
        return True
    except ValueError:
        return False
    return True


def save_sums(sums: Any, path: str, covers: dict) -> bool:
    """Write sums from the process that holds them, with what they cover."""
    _save(path, {"refusal": sums.refusal}, {name: (_axes(a), a) for name, a in _arrays(sums).items()}, covers)
    return True


def _save(path: str, attributes: dict, arrays: Arrays, covers: dict) -> None:
    """Write a record; an incomplete one at the path is replaced."""
    if exists(path) and not _is_whole(path):
        remove(path)
    save_record(path, {**attributes, "covers": covers}, arrays, FORMAT, overwrite=True)


def open_covering(path: str, covers: dict) -> tuple[dict, dict[str, np.ndarray]]:
    """Attributes and arrays of a record with these `covers`; refuses anything else, and damage."""
    found, arrays = open_record(path, MOST_BYTES, FORMAT)
    _check_covers(path, found.get("covers") if DIGEST in found else None, covers)
    return {name: value for name, value in found.items() if name not in RECORD_KEYS}, arrays


def _check_covers(path: str, found: Any, covers: dict) -> None:
    """Refuse a record of another fit or other blocks, or one without `covers`."""
    if not isinstance(found, dict):
        raise ValueError(
            f"{shown(path)!r} does not say what it covers (an older dkl wrote it); start over with fit(resume=False)"
        )
    wrong = sorted(name for name in {*covers, *found} if found.get(name) != covers.get(name))
    if wrong:
        raise ValueError(
            f"{shown(path)!r} was renamed or copied: its contents do not match its name ({', '.join(wrong)} differ); "
            "start "
            "over with fit(resume=False)"
        )


def open_sums(kind: Any, path: str, covers: dict) -> Any:
    """Read sums back, as an instance of `kind`."""
    attributes, arrays = open_covering(path, covers)
    refusal = attributes["refusal"]
    return kind(**arrays, refusal=None if refusal is None else tuple(refusal))


def _arrays(sums: Any) -> dict[str, np.ndarray]:
    return {name: value for name, value in vars(sums).items() if isinstance(value, np.ndarray)}


def _axes(array: np.ndarray) -> tuple[str, ...]:
    return ("fold", "first", "second")[: array.ndim]


def progress_of(path: str) -> dict | None:
    """The progress of a checkpoint, without opening its arrays; None if there is no checkpoint."""
    folder = Folder(path)
    known = _journal(folder)
    if known is None:
        return None
    newest = {
        kind: max((n for n in saved_counts(folder, kind) if _is_whole(f"{folder.path}/{kind}-{n}")), default=0)
        for kind in ("sums", *LOOPS)
    }
    prepared = _is_whole(f"{folder.path}/prepared")
    return {
        "fit": known["fit"],
        "prepared": prepared,
        "blocks": newest["sums"],
        "steps": sum(newest[kind] for kind in LOOPS),
    }
