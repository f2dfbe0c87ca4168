"""The files of an ingest: which channel each belongs to, how it is read, and what identifies it."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, NamedTuple

from dkl.sources.batch import Reading, Source, SourceError
from dkl.sources.files import identity
from dkl.sources.find import expand, open_source
from dkl.sources.idx_images import IdxImages
from dkl.sources.images import Images
from dkl.sources.shown import shown
from dkl.store.recipe import Recipe
from dkl.store.request import Request


class Named(NamedTuple):
    """A file of a channel, and how it is to be read."""

    channel: int
    path: str
    reading: Reading


class Opened(NamedTuple):
    """A file of a channel; `source` is None where only workers open it."""

    channel: int
    path: str
    source: Source | Any


def find_files(request: Request) -> list[Named]:
    """Every file of every channel, in order."""
    like = request.recipe and Recipe.from_json(request.recipe)
    if like and request.n_channels != len(like.channels):
        raise ValueError(
            f"{request.n_channels} sources were given; the data set has {len(like.channels)} channels, so give as many"
        )
    found = []
    for s, path in enumerate(request.sources):
        for d, descriptor in enumerate(request.descriptor):
            channel = d if request.rows else s * len(request.descriptor) + d
            known = like.channels[channel] if like else None
            found += [Named(channel, file, request.reading(descriptor, known)) for file in expand(path)]
    return found


def open_file(file: Named) -> Source:
    """The source of a file."""
    source = open_source(file.path, file.reading)
    if file.reading.descriptor != "pixels" and not isinstance(source, Images | IdxImages):
        raise SourceError(
            f"descriptor={file.reading.descriptor!r} applies to images (a folder, or an IDX file), and {file.path!r} "
            "holds none; leave --descriptor out"
        )
    if file.reading.patches is not None and not isinstance(source, Images):
        raise SourceError(f"--patches are cut from a folder of images, and {file.path!r} is none; leave --patches out")
    return source


def open_sources(request: Request, all_of_them: bool = True) -> list[Opened]:
    """Every file, opened; or the first of each channel alone."""
    opened, seen = [], set[int]()
    for file in find_files(request):
        wanted = all_of_them or file.channel not in seen
        seen.add(file.channel)
        opened.append(Opened(file.channel, file.path, open_file(file) if wanted else None))
    return opened


def check_alike(path: str, source: Any, first: str, columns: Any) -> None:
    """Refuse a file whose columns are not those of the first of its channel."""
    if columns != source.columns:
        raise SourceError(f"{path!r} and {first!r} have different columns; give files with the same ones")


def origin_of(request: Request, files: list[Any]) -> list:
    """Values that change when the request or a source does."""
    asked = hashlib.sha256(json.dumps(request.to_json()).encode()).hexdigest()
    return json.loads(
        json.dumps([asked, *([os.path.basename(shown(file.path)), identity(file.path)] for file in files)])
    )
