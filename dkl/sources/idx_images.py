"""Images in one IDX file: each becomes a row of its descriptor, as an image of a folder does (sources/images.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Column, Reading, Segment, SourceError
from dkl.sources.columns import check_many, check_width, numbered, refuse_unused
from dkl.sources.dense import DenseRows, check_labels
from dkl.sources.descriptors import check_installed, find_descriptor, image_shape, pixels, prepared
from dkl.sources.labels import as_target

IMAGES = 256
"""Most images of a segment."""


class IdxImages:
    """Bytes of shape (n, height, width) or (n, height, width, 3)."""

    def __init__(self, path: str, how: Reading, opener: Callable[[], Any], labels: Any) -> None:
        refuse_unused(path, how, "which holds images", "categorical", "drop")
        self.path, self.how, self.descriptor = path, how, find_descriptor(how.descriptor)
        check_installed(path, self.descriptor)
        self.stored = DenseRows(path, replace(how, inputs=None), opener, labels)
        shape, dtype = self.stored.shape, self.stored.dtype
        if dtype != np.uint8 or len(shape) not in (3, 4) or shape[3:] not in ((), (3,)):
            raise SourceError(
                f"{path!r} holds {dtype} of shape {shape}; descriptors and --resize are for images: bytes of shape "
                "(n, height, width) or (n, height, width, 3)"
            )
        self.stored.step = min(IMAGES, self.stored.step)
        row = self._measure(np.zeros(shape[1:], np.uint8))
        size = (*(how.resize or shape[1:3]), *shape[3:])
        self.image_shape = image_shape(size) if self.descriptor.measure is pixels else None
        self.width, self.dtype = len(row), row.dtype
        check_many(path, self.width)
        check_width(path, self.width, how)
        self.name, self.size, self.has_target = self.stored.name, self.stored.size, self.stored.has_target
        self.columns = [Column(name) for name in numbered(self.width, self.descriptor.column)]

    def _measure(self, pixels: np.ndarray) -> np.ndarray:
        from PIL import Image

        try:
            return self.descriptor.measure(prepared(Image.fromarray(pixels), self.descriptor, self.how.resize))
        except SourceError as error:
            raise SourceError(f"{self.path!r}: {error}") from None

    def segments(self) -> Iterator[Segment]:
        """A few images each, with their labels."""
        return self.stored.segments()

    def parse(self, segment: Segment) -> Batch:
        """A row per image."""
        values, labels, first = segment.data
        X = np.empty((len(values), self.width), self.dtype)
        for row, image in zip(X, values, strict=True):
            row[:] = self._measure(image)
        y = None if labels is None else as_target(labels)
        check_labels(self.path, y, first, self.how)
        return Batch(X, {}, y)
