"""Sources parsed by workers: a task for each stretch, which stages its parts and returns their summaries.

A stretch of text may begin inside quotes. It is read as if it did not; the quotes that were counted before it tell, and
those that were read wrong are read again.
"""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from dkl.sources.batch import SourceError
from dkl.sources.shown import shown
from dkl.sources.stretch import Stretch, segments_of, settle, stretches_of
from dkl.store.crew import Crew, Job
from dkl.store.folder import Folder
from dkl.store.staging import Part

READERS = 16


class Staged(NamedTuple):
    """A stretch that was read, its parts, and why it could not be; or the stretches that a file turned out to have."""

    stretch: Stretch
    parts: list[Part]
    error: str | None = None
    others: list[Stretch] | None = None


def stage_stretch(job: Job, number: int, k: int, stretch: Stretch | None) -> Staged:
    """The task: parse a stretch of a file, and write its parts; None: the whole file, if it is one stretch."""
    staging, source = job.staging(), job.source(number)
    if stretch is None:
        own = stretches_of(source)
        if len(own) > 1:
            return Staged(own[0], [], None, own)
        stretch = own[0]
    stretch = dataclasses.replace(stretch, quotes=0)
    parts: list[Part] = []
    try:
        for segment in segments_of(source, stretch):
            name, batch = f"part-{number}-{k}-{segment.number}", source.parse(segment)
            summary = job.staging().put(name, batch)  # refused if another ingest has begun meanwhile
            parts.append(Part(name, summary["rows"], summary))
    except SourceError as error:
        if hasattr(source, "quotes") and (stretch.first or stretch.last is not None):  # not the whole file
            stretch.quotes = source.quotes(stretch)
        return Staged(stretch, [], str(error))
    told = {"stretch": dataclasses.asdict(stretch), "parts": parts}
    staging.folder.write(_marker(number, k), json.dumps(told).encode())
    return Staged(stretch, parts)


def _marker(number: int, k: int) -> str:
    return f"stretch-{number}-{k}.json"


class Files:
    """What is known of the stretches of every file."""

    def __init__(self, crew: Crew, job: Job, folder: Folder, known: list[list[Stretch] | None]) -> None:
        self.crew, self.held, self.folder = crew, crew.hold(job), folder
        self.files, self.plan = job.files, known
        self.found: list[dict[int, Staged]] = [{} for _ in known]

    def stage(self, sizes: list[int], progress: Any) -> list[list[Part]]:
        """The parts of every file, in order."""
        self._resume()
        progress.name(f"reading {shown(self.files[0].path)}" + (" ..." if len(self.files) > 1 else ""))
        progress.begin(sum(sizes), "bytes")
        try:
            while calls := self._missing():
                for call, staged in self.crew.run("parse", stage_stretch, [(self.held, *call) for call in calls]):
                    number, k, _ = calls[call]
                    self._take(number, k, staged)
                    if staged.others is None:
                        progress.advance(sizes[number] // len(self.plan[number] or [0]))
        finally:
            progress.end()
        for number, found in enumerate(self.found):
            if not any(staged.parts for staged in found.values()):
                raise SourceError(f"{self.files[number].path!r} has no rows; give at least one")
        return [[part for k in sorted(found) for part in found[k].parts if part.rows] for found in self.found]

    def _resume(self) -> None:
        """What an interrupted run has staged."""
        names = [name for name in self.folder.names() if name.startswith("stretch-")]
        with ThreadPoolExecutor(READERS) as pool:
            for name, told in zip(names, pool.map(self.folder.read_json, names), strict=True):
                number, k = map(int, name.removesuffix(".json").split("-")[1:])
                parts = [Part(*part) for part in told["parts"]]
                self.found[number][k] = Staged(Stretch(**told["stretch"]), parts)

    def _missing(self) -> list[tuple[int, int, Stretch | None]]:
        """Stretches that have not been read, or must be read again."""
        calls: list[tuple[int, int, Stretch | None]] = []
        for number, plan in enumerate(self.plan):
            found = self.found[number]
            if plan is None and list(found) == [0] and found[0].stretch.last is None:
                continue
            if plan is None:
                calls.append((number, 0, None))
                continue
            calls += [(number, k, stretch) for k, stretch in enumerate(plan) if k not in found]
            wrong, known = settle([found[k].stretch if k in found else None for k in range(len(plan))])
            for k in wrong:
                plan[k] = dataclasses.replace(plan[k], odd=not found.pop(k).stretch.odd)
                calls.append((number, k, plan[k]))
            self._refuse(number, known)
        return calls

    def _take(self, number: int, k: int, staged: Staged) -> None:
        if staged.others is not None:
            self.plan[number] = staged.others
            return
        self.found[number][k] = staged
        if staged.error is not None and k == 0:
            raise SourceError(staged.error)

    def _refuse(self, number: int, known: int) -> None:
        """Raise the first error of a stretch whose beginning is known, with the lines of the file."""
        for k in range(known):
            staged = self.found[number].get(k)
            if staged is not None and staged.error is not None:
                exact = dataclasses.replace(staged.stretch, exact=True)
                for _, again in self.crew.run("explain", stage_stretch, [(self.held, number, k, exact)]):
                    raise SourceError(again.error or staged.error)
