"""An ingest by the workers of a cluster: stretches are parsed, groups surveyed and regions written by tasks.

The bytes are those of an ingest in one process, for any number of workers. No row passes through this process.
"""

from __future__ import annotations

from typing import Any, Self

import zarr

from dkl.sources.files import stored_size
from dkl.sources.stretch import stretches_of
from dkl.store.assemble import Preparation, attributes_of, close_root, complete_split, open_groups
from dkl.store.coords import RowCoords, coords_beside
from dkl.store.crew import JOURNAL, Crew, Job
from dkl.store.folder import Folder, absolute, exists
from dkl.store.layout import lay_out
from dkl.store.opened import Opened, find_files
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.seen import Seen
from dkl.store.spread_staging import Files
from dkl.store.spread_survey import Counted, spread_survey
from dkl.store.spread_writing import Region, Writing, regions, write_region
from dkl.store.staging import Aligned, Part, Staging
from dkl.store.survey import Survey
from dkl.store.write import empty_group

BEGUN = "writing.json"
"""The identity of the data set whose arrays have been laid out, and its coordinates."""

__all__ = ["JOURNAL", "Spread"]


class Spread:
    """The tasks of one ingest."""

    def __init__(self, request: Request, folder: Folder, crew: Crew, origin: Any) -> None:
        self.request, self.folder, self.crew, self.origin = request, folder, crew, origin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Tasks end with the calls that wait for them."""

    def stage(self, files: list[Opened], progress: Any) -> list[list[Part]]:
        """The parts of every file, in order."""
        named = [file._replace(path=_anywhere(file.path)) for file in find_files(self.request)]
        columns = {file.channel: file.source.columns for file in files if file.source is not None}
        self.job = Job(self.folder.path, self.origin, self.request, named, columns)
        known = [stretches_of(file.source) if file.source is not None else None for file in files]
        sizes = [_size(file) for file in files]
        return Files(self.crew, self.job, self.folder, known).stage(sizes, progress)

    def survey(
        self, parts: list[list[Part]], channels: tuple[Channel, ...], sparse: bool, fixed: bool
    ) -> Survey:  # fmt: skip
        """Constants of the channels, and rows of the splits."""
        found, self.counted = spread_survey(self.crew, self.job, self._aligned(parts), channels, sparse, fixed)
        return found

    def _aligned(self, parts: list[list[Part]]) -> Aligned:
        """Where the parts lie; only workers read them."""
        return Aligned(Staging(self.folder, None, ()), parts, None)  # type: ignore[arg-type]

    def assemble(
        self, place: str, parts: list[list[Part]], found: Survey, prepared: Preparation, origin: Any,
        files: list[Opened], progress: Any,
    ) -> None:  # fmt: skip
        """Whole chunks by workers; what the splits say is merged here."""
        aligned, recipe, target = self._aligned(parts), prepared.recipe, prepared.target
        total = sum(part.rows for part in parts[0])
        attributes = attributes_of(total, found, recipe, target, origin)
        known = _with_coords(files)
        root, groups, coords = self._lay_out(place, attributes["id"], found, prepared, [files[n] for n in known])
        writing = Writing(self.job, place, prepared, [group.path for group in groups], known)
        seen = [Seen(recipe, target.has_classes) for _ in groups]
        self._write(
            writing, self._regions(aligned, self.counted, groups, prepared.sparse), seen, sum(found.rows), progress
        )
        names, splits = [c.name for c in recipe.channels], self.request.split_names
        for group, own, rows, split in zip(groups, seen, found.rows, splits or [None], strict=True):
            complete_split(group, attributes, rows, own, names, target, split, coords)
        close_root(root, attributes, found, self.request)

    def _lay_out(
        self, place: str, identity: str, found: Survey, prepared: Preparation, with_coords: list[Opened]
    ) -> tuple[Any, list[Any], list[str]]:  # fmt: skip
        """(root, groups of the splits, names of coordinates): of an interrupted run of the same data set, or new."""
        begun = self.folder.read_json(BEGUN)
        if begun is not None and begun["id"] == identity and exists(place):
            root = zarr.open_group(place, mode="r+")
            return root, [root[name] for name in self.request.split_names] or [root], begun["coords"]
        for name in self.folder.names():
            if name == BEGUN or name.startswith("wrote-"):
                self.folder.remove(name)
        root = empty_group(place)
        groups, coords, beside = open_groups(root, self.request), list[str](), coords_beside(with_coords)
        for group, rows, entries in zip(groups, found.rows, found.entries, strict=True):
            row_coords = RowCoords(beside)
            _, _, coords = lay_out(
                group, rows, entries, prepared.recipe, prepared.target, prepared.sparse, beside, row_coords
            )
        self.folder.write_json(BEGUN, {"id": identity, "coords": coords})
        return root, groups, coords

    @staticmethod
    def _regions(aligned: Aligned, counted: Counted, groups: list[Any], sparse: bool) -> list[Region]:
        names = ("row", "X/data", "X/indptr") if sparse else ("row", "X")
        return [
            region
            for i, group in enumerate(groups)
            for region in regions(aligned, counted, i, {name: group[name] for name in names}, sparse)
        ]

    def _write(self, writing: Writing, wanted: list[Region], seen: list[Seen], rows: int, progress: Any) -> None:
        """Run the tasks of the regions that an interrupted run has not written; merge what all have seen."""
        progress.begin(rows)
        notes, held = self.folder.names(), self.crew.hold(writing)

        def take(region: Region, told: dict) -> None:
            if region.kind == "rows":
                seen[region.split].merge(told)
                progress.advance(region.last - region.first)

        for region in [region for region in wanted if region.name in notes]:
            take(region, self.folder.read_json(region.name))
        left = [region for region in wanted if region.name not in notes]
        for k, told in self.crew.run("write", write_region, [(held, region) for region in left]):
            take(left[k], told)
        progress.end()


def _anywhere(path: str) -> str:
    """The same file from any working directory."""
    return path if path.startswith("sklearn:") else absolute(path)


def _size(file: Opened) -> int:
    if file.source is not None:
        return int(file.source.size or 0)
    try:
        return stored_size(file.path)
    except (OSError, ValueError):  # a folder
        return 0


def _with_coords(files: list[Opened]) -> tuple[int, ...]:
    """The files whose coordinates the rows have: each channel is one file."""
    channels = [file.channel for file in files]
    return tuple(range(len(files))) if len(set(channels)) == len(channels) else ()
