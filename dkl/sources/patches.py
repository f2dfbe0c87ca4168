"""Patches cut from the images of a folder, at random places: each becomes a row of its descriptor.

Images come in order, and of each image as many patches of every region as are asked for; a patch lies inside its
region. The class is the folder of the image, or its file name if there are no folders. Places depend on the seed and
on the number of the image alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Batch, Coded, Patches, Reading, Segment, SourceError
from dkl.sources.images import BYTES, FILES, File, Images, last_part
from dkl.sources.stretch import Stretch, stretches

WHOLE = "whole"
OPPOSITE = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
"""Halves of an image, each with the other one."""


class Piece(NamedTuple):
    """Patches first .. stop-1 of one image."""

    image: int
    first: int
    stop: int


def half(region: str, height: int, width: int) -> tuple[int, int, int, int]:
    """Top, left, bottom and right of a region of an image."""
    middle, centre = height // 2, width // 2
    return {
        WHOLE: (0, 0, height, width),
        "left": (0, 0, height, centre),
        "right": (0, centre, height, width),
        "top": (0, 0, middle, width),
        "bottom": (middle, 0, height, width),
    }[region]


def open_images(path: str, how: Reading) -> Images:
    """The images of a folder, whole or cut into patches."""
    return Images(path, how) if how.patches is None else PatchImages(path, how, how.patches)


class PatchImages(Images):
    """Patches of every image of a folder."""

    def __init__(self, path: str, how: Reading, cut: Patches) -> None:
        self.cut = cut
        super().__init__(path, how)
        row_bytes = self.width * self.dtype.itemsize
        self.step = max(1, min(2**16, BYTES // row_bytes))

    def _find(self) -> tuple[list[str], list[File]]:
        """As without patches; images beside each other are a class each."""
        folders, loose = self._list(self.folder, 0)
        if folders or not loose or not self.has_target:
            return super()._find()
        names = [last_part(file.name).rpartition(".")[0] for file in loose]
        for name in names:
            if names.count(name) > 1:
                raise SourceError(f"{self.path!r} has {names.count(name)} images called {name!r}; give each its own")
        return names, [file._replace(label=i) for i, file in enumerate(loose)]

    def _check_size(self, file: File, image: Any) -> None:
        """Any size: the inputs are those of a patch."""

    def _example(self, file: File, image: Any) -> Any:
        """The first patch."""
        return self._crop(image, self._places(0, file, image)[0])

    def _places(self, number: int, file: File, image: Any) -> np.ndarray:
        """(of_each for every region, 2): top and left of the patches of an image."""
        height, width = self.cut.shape
        found = []
        for i, region in enumerate(self.cut.regions):
            top, left, bottom, right = half(region, image.size[1], image.size[0])
            if bottom - top < height or right - left < width:
                where = "" if region == WHOLE else f", and its {region} half {bottom - top}x{right - left}"
                raise SourceError(
                    f"{file.name!r} is {image.size[1]}x{image.size[0]}{where}, smaller than a patch of "
                    f"{height}x{width}; use smaller --patches, or leave the image out"
                )
            rng = np.random.default_rng([self.cut.seed, number, i])
            corners = rng.integers((top, left), (bottom - height, right - width), (self.cut.of_each, 2), endpoint=True)
            found.append(corners)
        return np.concatenate(found)

    def _crop(self, image: Any, corner: np.ndarray) -> Any:
        (top, left), (height, width) = corner.tolist(), self.cut.shape
        return image.crop((left, top, left + width, top + height))

    def stretches(self) -> list[Stretch]:
        """Segments."""
        return stretches(sum(1 for _ in self._segments()))

    def _segments(self) -> Iterator[Segment]:
        """Some patches of an image, or those of several images."""
        each, pieces = self.cut.of_each * len(self.cut.regions), list[Piece]()
        rows = number = 0
        for image in range(len(self.files)):
            for first in range(0, each, self.step):
                piece = Piece(image, first, min(each, first + self.step))
                if pieces and (rows + piece.stop - first > self.step or len(pieces) == FILES):
                    yield self._segment(number, pieces)
                    pieces, rows, number = [], 0, number + 1
                pieces.append(piece)
                rows += piece.stop - first
        yield self._segment(number, pieces)

    def _segment(self, number: int, pieces: list[Piece]) -> Segment:
        """An image counts for the progress with its first patch."""
        return Segment(number, pieces, sum(self.files[piece.image].size for piece in pieces if not piece.first))

    def parse(self, segment: Segment) -> Batch:
        """A row per patch."""
        pieces: list[Piece] = segment.data
        rows = sum(piece.stop - piece.first for piece in pieces)
        X, codes, place = np.empty((rows, self.width), self.dtype), np.empty(rows, np.int32), 0
        for piece in pieces:
            file = self.files[piece.image]
            image = self._read(file)
            for corner in self._places(piece.image, file, image)[piece.first : piece.stop]:
                X[place], codes[place] = self._checked(file, self._crop(image, corner)), file.label
                place += 1
        return Batch(X, {}, Coded(codes, list(self.classes)) if self.has_target else None)
