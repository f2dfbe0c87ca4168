"""Images in folders, one folder per class: each image becomes a row of its descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Batch, Coded, Column, Reading, Segment, SourceError
from dkl.sources.columns import MOST_COLUMNS, check_width, numbered, refuse_unused
from dkl.sources.descriptors import check_installed, find_descriptor, image_shape, pixels, prepared
from dkl.sources.files import bare_name, filesystem, one_line, reading
from dkl.sources.stretch import Stretch, stretches, within

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
OTHER_SUFFIXES = (".gif", ".webp", ".heic", ".svg")
FILES, BYTES = 256, 64 * 2**20


class File(NamedTuple):
    """An image file, the number of its class (-1 without classes), and its size in bytes."""

    name: str
    label: int
    size: int


class Images:
    """A folder with one subfolder of images per class; with --target none also a flat folder of images."""

    def __init__(self, path: str, how: Reading) -> None:
        refuse_unused(path, how, "a folder of images", "categorical", "drop")
        self.descriptor = find_descriptor(how.descriptor)
        if how.target not in (None, "none"):
            raise SourceError(
                f"target={how.target!r}: the target of images is their folder; leave --target out, or use none"
            )
        if how.resize is not None and min(how.resize) < 1:
            raise SourceError(f"resize={how.resize} must be a height and a width of at least 1, such as 32x32")
        check_installed(path, self.descriptor)
        self.path, self.how, self.name = path, how, bare_name(path)
        self.fs, self.folder = filesystem(path)
        self.has_target = how.target != "none"
        self.classes, self.files = self._find()
        self.size = sum(file.size for file in self.files)
        first = self._read(self.files[0])
        example = self._example(self.files[0], first)
        self.like = (example.size, example.mode)
        row = self._measure(self.files[0], example)
        self.width, self.dtype = len(row), row.dtype
        check_width(path, self.width, how)
        of_pixels = self.descriptor.measure is pixels
        self.image_shape = image_shape(np.asarray(first).shape) if of_pixels else None
        self.columns = [Column(name) for name in numbered(self.width, self.descriptor.column)]
        self.step = max(1, min(FILES, BYTES // max(1, row.nbytes)))

    def _find(self) -> tuple[list[str], list[File]]:
        """Names of the classes and every image, sorted by class, then by name."""
        folders, loose = self._list(self.folder, 0)
        if loose and not folders:
            if not self.has_target:
                return [], [file._replace(label=-1) for file in loose]
            raise SourceError(
                f"{self.path!r} holds {len(loose)} images but no folder per class; move them into folders named by "
                "class, or use --target none"
            )
        if loose:
            raise SourceError(f"{loose[0].name!r} is beside the class folders; move it into one of them")
        if not folders:
            raise SourceError(
                f"{self.path!r} holds no images ({' '.join(SUFFIXES)}); put them into folders named by class"
            )
        files = []
        for label, folder in enumerate(folders):
            inner, found = self._list(folder, label)
            if not found:
                hint = f"give {folder!r} itself" if inner else "remove it or add images"
                what = "folders, not images" if inner else "no images"
                raise SourceError(f"{folder!r} holds {what}; {hint}")
            if inner:
                raise SourceError(f"{inner[0]!r} is a folder inside a class folder; move its images up or away")
            files += found
        return [last_part(folder) for folder in folders], files

    def _list(self, folder: str, label: int) -> tuple[list[str], list[File]]:
        with reading(folder):
            entries = sorted(self.fs.ls(folder, detail=True), key=lambda entry: last_part(entry["name"]))
        entries = [entry for entry in entries if not last_part(entry["name"]).startswith(".")]
        folders = [entry["name"] for entry in entries if entry["type"] == "directory"]
        files = [entry for entry in entries if entry["type"] != "directory" and entry["name"].rstrip("/") != folder]
        for entry in files:
            if entry["name"].lower().endswith(OTHER_SUFFIXES):
                raise SourceError(f"{entry['name']!r} has a format that is not supported; convert it to png")
        images = [entry for entry in files if entry["name"].lower().endswith(SUFFIXES)]
        return folders, [File(entry["name"], label, int(entry.get("size") or 0)) for entry in images]

    def _read(self, file: File) -> Any:
        """The image, fully decoded, in the descriptor's mode and size."""
        from PIL import Image, UnidentifiedImageError

        try:
            with reading(file.name), self.fs.open(file.name, "rb") as stream:
                try:
                    image = Image.open(stream)
                except UnidentifiedImageError:
                    raise SourceError(f"{file.name!r} is not a readable image; replace or remove it") from None
                self._check_size(file, image)
                image.load()
                return prepared(image, self.descriptor, self.how.resize)
        except Exception as error:  # decoders raise any exception
            if isinstance(error, SourceError):
                raise
            message = one_line(error).removeprefix(f"{file.name!r} cannot be read: ")
            raise SourceError(f"{file.name!r} is not a readable image: {message}; replace or remove it") from None

    def _check_size(self, file: File, image: Any) -> None:
        """Refuse, before decoding, an image with more inputs than a model can have."""
        inputs = image.size[0] * image.size[1] * len(image.getbands())
        if self.descriptor.needs_equal_sizes and self.how.resize is None and inputs > MOST_COLUMNS:
            raise SourceError(
                f"{file.name!r} is {image.size[1]}x{image.size[0]}, which makes {inputs:,} inputs; use --resize 32x32"
            )

    def _measure(self, file: File, image: Any) -> np.ndarray:
        try:
            return self.descriptor.measure(image)
        except SourceError as error:
            raise SourceError(f"{file.name!r}: {error}") from None

    def _example(self, file: File, image: Any) -> Any:
        """What a row is made of, as all others must look."""
        return image

    def _row(self, file: File) -> np.ndarray:
        return self._checked(file, self._read(file))

    def _checked(self, file: File, image: Any) -> np.ndarray:
        """The descriptor of an image that looks like the first one."""
        if self.descriptor.needs_equal_sizes and (image.size, image.mode) != self.like:
            (width, height), mode = self.like
            remedy = "use --resize 32x32" if image.size != self.like[0] else "convert them to one mode"
            raise SourceError(
                f"{self.files[0].name!r} is {height}x{width} {mode}, {file.name!r} is "
                f"{image.size[1]}x{image.size[0]} {image.mode}; {remedy}"
            )
        return self._measure(file, image)

    def stretches(self) -> list[Stretch]:
        """Segments."""
        return stretches(-(-len(self.files) // self.step))

    def segments(self, stretch: Stretch | None = None) -> Iterator[Segment]:
        """Files of about 256 images per segment."""
        return within(stretch, self._segments())

    def _segments(self) -> Iterator[Segment]:
        for number, first in enumerate(range(0, len(self.files), self.step)):
            files = self.files[first : first + self.step]
            yield Segment(number, files, sum(file.size for file in files))

    def parse(self, segment: Segment) -> Batch:
        """A row per image."""
        files: list[File] = segment.data
        X = np.empty((len(files), self.width), self.dtype)
        for row, file in zip(X, files, strict=True):
            row[:] = self._row(file)
        codes = np.array([file.label for file in files], np.int32)
        return Batch(X, {}, Coded(codes, list(self.classes)) if self.has_target else None)


def last_part(path: str) -> str:
    """The name of a file or folder."""
    return path.rstrip("/").rpartition("/")[2]
