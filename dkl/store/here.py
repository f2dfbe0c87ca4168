"""An ingest by the threads of this process: parsed side by side, written in row order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from dkl.sources.shown import shown
from dkl.store.assemble import Preparation, assemble
from dkl.store.coords import coords_beside
from dkl.store.folder import Folder
from dkl.store.opened import Opened
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.staging import Aligned, Part, Staging
from dkl.store.survey import Survey, survey
from dkl.store.write import empty_group, staging_dtype


class Here:
    """Threads that parse, and one that waits for the disk."""

    def __init__(self, request: Request, folder: Folder, threads: int) -> None:
        self.request, self.threads = request, threads
        self.staging = Staging(folder, staging_dtype(request))
        self.pool = ThreadPoolExecutor(threads + 1, thread_name_prefix="dkl-ingest")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.shutdown()

    def stage(self, files: list[Opened], progress: Any) -> list[list[Part]]:
        """The parts of every file, in order."""
        for number, file in enumerate(files):
            progress.name(f"reading {shown(file.path)}").begin(file.source.size or 0, "bytes")
            try:
                self.staging.stage(number, file.source, self.pool, 2 * self.threads, progress)
            finally:
                progress.end()
        return [self.staging.parts(number) for number in range(len(files))]

    def survey(
        self, parts: list[list[Part]], channels: tuple[Channel, ...], sparse: bool, fixed: bool
    ) -> Survey:  # fmt: skip
        """Constants of the channels, and rows of the splits, in one pass or several."""
        return survey(Aligned(self.staging, parts, self.pool), channels, self.request, sparse, fixed)

    def assemble(
        self, place: str, parts: list[list[Part]], found: Survey, prepared: Preparation, origin: Any,
        firsts: list[Opened], progress: Any,
    ) -> None:  # fmt: skip
        """All rows in their order."""
        aligned = Aligned(self.staging, parts, self.pool)
        assemble(empty_group(place), aligned, found, prepared, origin, self.pool, progress, coords_beside(firsts))
