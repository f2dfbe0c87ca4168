"""Text in segments of whole lines, never cut inside quotes, so that each can be parsed on its own."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from dkl.sources.batch import Segment, SourceError
from dkl.sources.files import open_stream, reading, stored_size
from dkl.sources.stretch import Stretch, stretches

SIZE = 8 * 2**20
LONGEST_LINE = 64 * 2**20


class Lines(NamedTuple):
    """Whole lines, and the number of the first in the file (from 1)."""

    data: bytes
    first: int


def open_text(path: str, encoding: str) -> Any:
    """The decompressed bytes, recoded to UTF-8."""
    try:
        "".encode(encoding)  # some codecs are not text encodings
        known = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise SourceError(f"encoding={encoding!r} is not known; use utf-8, latin-1, utf-16 ...") from None
    stream = open_stream(path)
    return stream if known in ("utf-8", "ascii") else _Recoded(path, stream, known)


def read_text_head(path: str, encoding: str, size: int = 2**16) -> bytes:
    """The first bytes as UTF-8; `check_text` refuses NUL and invalid bytes among them."""
    stream = open_text(path, encoding)
    try:
        with reading(path):
            return stream.read(size).removeprefix(codecs.BOM_UTF8)
    finally:
        stream.close()


class _Recoded:
    """UTF-8 bytes of a stream in another encoding."""

    def __init__(self, path: str, stream: BinaryIO, encoding: str) -> None:
        self.path, self.encoding = path, encoding
        self.stream, self.decoder = stream, codecs.getincrementaldecoder(encoding)()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as UTF-8; empty at the end only."""
        text, data = "", b"-"
        while data and not text:
            data = self.stream.read(size)
            try:
                text = self.decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                raise
            except UnicodeError as error:
                raise SourceError(f"{self.path!r} is not {self.encoding} text: {error}; try --encoding utf-8") from None
        return text.encode()

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()


def segments(
    path: str, encoding: str, skip_lines: int, quote: bytes = b"", size: int = 0, stretch: Stretch | None = None
) -> Iterator[Segment]:  # fmt: skip
    """Segments of about `size` bytes of whole lines; between two `quote` bytes no line ends."""
    stream, size = open_text(path, encoding), size or SIZE
    block, line, number, rest = 0, 1, 0, b""
    stretch = stretch or Stretch()
    try:
        if stretch.first:
            with reading(path):
                rest = _line_before(path, stream, stretch.first * size, quote, stretch.odd)
                line = _count_lines(stream, stretch.first * size - len(rest)) if stretch.exact else 0
                stream.seek(stretch.first * size)
            block, skip_lines = stretch.first, 0
        while stretch.last is None or block < stretch.last:
            with reading(path):
                data = stream.read(size)
            if not block:
                data = data.removeprefix(codecs.BOM_UTF8)
            block += 1
            stretch.quotes += data.count(quote) if quote else 0
            quoted = bool(quote) and (quote in data or quote in rest)
            cut = _last_line_end(data, quote if quoted else b"", rest.count(quote) if quoted else 0)
            if data and not cut:
                rest += data
                _check_length(path, rest, line)
                continue
            whole, rest = b"".join((rest, memoryview(data)[:cut])), data[cut:]
            while skip_lines and (end := whole.find(b"\n") + 1 or (0 if data else len(whole))):
                whole, line, skip_lines = whole[end:], line + 1, skip_lines - 1
            if whole:
                yield Segment(number, Lines(whole, line), len(whole))
                number, line = number + 1, line + whole.count(b"\n")
            if not data:
                return
    finally:
        stream.close()


def _check_length(path: str, rest: bytes, line: int) -> None:
    if len(rest) > LONGEST_LINE:
        raise SourceError(f"{path!r} has no line end in {len(rest):,} bytes after line {line}; check that it is text")


def text_stretches(path: str, encoding: str) -> list[Stretch]:
    """Stretches of blocks of bytes; one of text that is compressed or in another encoding."""
    stream = open_text(path, encoding)
    plain = not isinstance(stream, (_Recoded, io.BufferedReader))
    stream.close()
    return stretches(-(-stored_size(path) // SIZE)) if plain else [Stretch()]


def count_quotes(path: str, encoding: str, quote: bytes, stretch: Stretch) -> int:
    """Quotes in the blocks of a stretch."""
    stream, block, found = open_text(path, encoding), stretch.first, 0
    try:
        with reading(path):
            stream.seek(block * SIZE)
            while (stretch.last is None or block < stretch.last) and (data := stream.read(SIZE)):
                found, block = found + data.count(quote), block + 1
    finally:
        stream.close()
    return found


def _line_before(path: str, stream: Any, place: int, quote: bytes, odd: bool) -> bytes:
    """The bytes before a place after the last line end outside quotes; `odd` quotes precede the place."""
    back = 2**16
    while True:
        start = max(0, place - back)
        stream.seek(start)
        data = stream.read(place - start)
        end, inside = len(data), odd
        while cut := data.rfind(b"\n", 0, end) + 1:
            inside ^= bool(quote) and data.count(quote, cut, end) % 2 == 1
            if not inside:
                return data[cut:]
            end = cut - 1
        if not start:
            return data.removeprefix(codecs.BOM_UTF8)
        _check_length(path, data, 0)
        back *= 4


def _count_lines(stream: Any, stop: int) -> int:
    """The number of the line that begins at a place."""
    stream.seek(0)
    line, left = 1, stop
    while left and (data := stream.read(min(left, SIZE))):
        line, left = line + data.count(b"\n"), left - len(data)
    return line


def _last_line_end(data: bytes, quote: bytes, before: int) -> int:
    """The end of the last line that does not end inside quotes: an even number of quotes precedes it."""
    end = data.rfind(b"\n") + 1
    if not quote:
        return end
    odd = (before + data.count(quote, 0, end)) % 2
    while end and odd:
        previous = data.rfind(b"\n", 0, end - 1) + 1
        odd, end = (odd + data.count(quote, previous, end)) % 2, previous
    return end


def check_text(path: str, head: bytes) -> None:
    """Refuse what is not UTF-8 text, by its first bytes."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{path!r} is UTF-16 text; use --encoding utf-16")
    if b"\x00" in head:
        raise SourceError(f"{path!r} has NUL bytes, so it is not text; use --format if it is one of the binary formats")
    if not head.strip():
        raise SourceError(f"{path!r} is empty; give a file with rows")
    if b"\r" in head and b"\n" not in head:
        raise SourceError(f"{path!r} ends its lines with CR alone; convert them with tr '\\r' '\\n'")
    with reading(path):
        codecs.getincrementaldecoder("utf-8")().decode(head)
