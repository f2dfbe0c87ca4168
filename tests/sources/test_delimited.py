"""Tables of text against pandas reading the whole file at once, cut into small segments."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma

import numpy as np
import pandas as pd
import pytest

from dkl.sources import delimited, text
from dkl.sources.batch import Column, Reading, SourceError
from dkl.sources.delimited import Delimited
from tests.sources.whole import read_whole

PLAIN = "a,b,y\n" + "".join(f"{i},{i * 0.37 - 5},{i % 3}\n" for i in range(60))
QUOTED = "n,note,y\n" + "".join(f'{i},"line {i}\nand ""more"", {i}",{"ab"[i % 2]}\n' for i in range(40))


@pytest.fixture
def write(tmp_path):
    """A file of some bytes or text."""

    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


@pytest.fixture(params=[30, 400, 2**23])
def small(request, monkeypatch):
    """Segments of a few bytes."""
    monkeypatch.setattr(delimited, "segments", functools.partial(text.segments, size=request.param))
    return request.param


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_like_pandas_whole(write, small, pack):
    """Numbers in many segments, compressed or not."""
    source = Delimited(write(pack(PLAIN.encode()), "t.csv.gz"), Reading())
    X, y, _, segments = read_whole(source)
    frame = pd.read_csv(io.StringIO(PLAIN))
    np.testing.assert_array_equal(X, frame[["a", "b"]].to_numpy())
    np.testing.assert_array_equal(y, frame["y"])
    assert source.columns == [Column("a"), Column("b")]
    assert source.name == "t"
    assert (segments > 1) == (small < 2**20)


def test_quoted_newlines_at_segment_ends(write, small):
    """A segment never ends inside quotes."""
    source = Delimited(write(QUOTED), Reading(categorical=("note",)))
    X, y, texts, _ = read_whole(source)
    frame = pd.read_csv(io.StringIO(QUOTED))
    np.testing.assert_array_equal(X[:, 0], frame["n"])
    assert texts["note"] == frame["note"].tolist()
    assert y == frame["y"].tolist()


@pytest.mark.parametrize(
    ("content", "how"),
    [
        (PLAIN.replace("\n", "\r\n"), Reading()),
        ("\ufeff" + PLAIN, Reading()),
        (PLAIN.rstrip("\n"), Reading()),
        ("\n\n" + PLAIN.replace("\n5", "\n\n\n5") + "\n\n", Reading()),
        (PLAIN.encode("utf-16"), Reading(encoding="utf-16")),
        (PLAIN.replace(",", ";"), Reading()),
        (PLAIN.replace(",", "\t"), Reading()),
        (PLAIN.replace(",", ", "), Reading()),
        (PLAIN.split("\n", 1)[1], Reading()),
        (PLAIN.replace(",", ":"), Reading(delimiter=":")),
    ],
    ids=["crlf", "bom", "no last newline", "blank lines", "utf-16", "semicolon", "tab", "spaces", "no header", "colon"],
)
def test_dialects(write, small, content, how):
    """The same table however it is written."""
    X, y, _, _ = read_whole(Delimited(write(content), how))
    frame = pd.read_csv(io.StringIO(PLAIN)).to_numpy()
    np.testing.assert_array_equal(X, frame[:, :2])
    np.testing.assert_array_equal(y, frame[:, 2])


def test_latin_1_must_be_said(write, small):
    """Foreign bytes are refused with what to say, and read when it is said."""
    content = ("größe,y\n" + "ä,1\nö,2\n" * 20).encode("latin-1")
    with pytest.raises(SourceError, match=r"is not utf-8 text.*--encoding latin-1"):
        Delimited(write(content), Reading())
    source = Delimited(write(content), Reading(encoding="latin-1", categorical=("auto",)))
    assert read_whole(source)[2] == {"größe": ["ä", "ö"] * 20}


def test_foreign_byte_after_the_sample(write, monkeypatch):
    """Also at the very end of the file, where a character could have gone on."""
    monkeypatch.setattr(delimited, "SAMPLE", 16)
    source = Delimited(write(b"a,y\n" + b"1,x\n" * 20 + b"1,\xe9"), Reading())
    with pytest.raises(SourceError, match="is not utf-8 text"):
        read_whole(source)


def test_target_drop_and_inputs(write):
    """By name, by position, none; a recipe's columns in its order."""
    path = write("a,b,c,y\n1,2,3,4\n5,6,7,8\n")
    X, y, _, _ = read_whole(Delimited(path, Reading(target="b", drop=("0",))))
    assert X.tolist() == [[3, 4], [7, 8]]
    assert y.tolist() == [2, 6]
    assert read_whole(Delimited(path, Reading(target="none")))[0].shape == (2, 4)
    assert read_whole(Delimited(path, Reading(target="0")))[1].tolist() == [1, 5]
    inputs = (Column("c"), Column("a", True))
    X, y, texts, _ = read_whole(Delimited(path, Reading(target="q", inputs=inputs)))
    assert (X.tolist(), y, texts) == ([[3], [7]], None, {"a": ["1", "5"]})
    with pytest.raises(SourceError, match="has no column 'z', which the data set was made from"):
        Delimited(path, Reading(inputs=(Column("z"),)))


def test_inputs_by_position(write):
    """Without a header the count decides whether there is a target; dropped columns stay dropped."""
    path = write("1,2,3\n4,5,6\n")
    assert read_whole(Delimited(path, Reading(inputs=(Column("0"), Column("1")))))[1].tolist() == [3, 6]
    assert not Delimited(path, Reading(inputs=tuple(map(Column, "012")))).has_target
    how = Reading(inputs=(Column("0"),), drop=("1",))
    assert read_whole(Delimited(path, how))[0].tolist() == [[1], [4]]
    with pytest.raises(SourceError, match="has 3 columns; the data set was made from 5"):
        Delimited(path, Reading(inputs=tuple(map(Column, "01234"))))


def test_missing_values(write, small):
    """NaN where they are allowed, in numbers and texts, marked as usual or as said."""
    content = "a,t,y\n1,x,0\nNA,,1\n3,?,0\n,z,1\n" + "5,u,1\n" * 30
    source = Delimited(write(content), Reading(missing="mean", categorical=("t",), na=("?",)))
    X, _, texts, _ = read_whole(source)
    np.testing.assert_array_equal(X[:4, 0], [1, np.nan, 3, np.nan])
    assert texts["t"][:4] == ["x", None, None, "z"]
    with pytest.raises(SourceError, match=r"missing value in line 3, column 'a'; use --missing drop"):
        read_whole(Delimited(write(content), Reading(categorical=("t",), na=("?",))))


@pytest.mark.parametrize("missing", ["refuse", "mean", "zero"])
def test_a_missing_target_can_only_be_dropped(write, missing):
    """A number or a name."""
    for values in ("1\n1,\n", "x\n1,\n"):
        with pytest.raises(SourceError, match="missing value in line 3, column 'y'"):
            read_whole(Delimited(write("a,y\n1," + values), Reading(missing=missing)))
    assert np.isnan(read_whole(Delimited(write("a,y\n1,1\n1,\n"), Reading(missing="drop")))[1][1])


ROWS = "1,2,0\n" * 50
REFUSED = {
    "long line": ("a,b,y\n" + ROWS + "1,2,3,4\n", {}, "line 52 has 4 fields, the first line has 3"),
    "long and short": ("a,b,y\n" + ROWS + "1,2,3,4\n1,2\n", {}, "line 52 has 4 fields, the first line has 3"),
    "short line": ("a,b,y\n" + ROWS + "1,2\n" + ROWS, {"missing": "mean"}, "line 52 has 2 fields"),
    "after quotes": ('a,b,y\n"\n1",2,0\n1,2\n', {}, "line 4 has 2 fields"),
    "infinity": (
        "a,b,y\n" + ROWS + "1,inf,0\n1,-inf,0\n",
        {},
        "line 52, column 'b' holds 'inf', which is not a finite",
    ),
    "infinite target": ("a,b,y\n" + ROWS + "1,1,-inf\n", {}, "line 52, column 'y' holds '-inf'"),
    "huge number": ("a,b,y\n" + ROWS + "1,1e999,0\n", {}, "line 52, column 'b' holds '1e999'"),
    "word": (
        "a,b,y\n" + ROWS + "\n1,two,0\n",
        {},
        "line 53, column 'b' holds 'two', not a number; correct it, or use --na",
    ),
    "text": ("a,b,y\nx,1,0\nz,2,0\n", {}, "column 'a' of .* holds text; use --categorical 'a' .*or --drop 'a'"),
    "twins": ("a,a,y\n1,2,3\n", {}, "two columns named 'a'"),
    "header only": ("a,b,y\n", {}, "has a header and no rows"),
    "empty": ("", {}, "is empty"),
    "blank": ("\n \n", {}, "is empty"),
    "binary": ("a\0b,1\n", {}, "has NUL bytes"),
    "utf-16 unsaid": (PLAIN.encode("utf-16"), {}, "is UTF-16 text; use --encoding utf-16"),
    "no such target": (PLAIN, {"target": "yy"}, "has no column 'yy' .the target.; did you mean 'y'?"),
    "target too far": (PLAIN, {"target": "7"}, "has 3 columns; the target 7 is out of range"),
    "no such drop": (PLAIN, {"drop": ("foo",)}, "has no column 'foo' .--drop.; there are 'a', 'b', 'y'"),
    "nothing left": (PLAIN, {"drop": ("a", "b")}, "has no column left for the inputs; is ',' its delimiter"),
    "delimiter": (PLAIN, {"delimiter": "::"}, "delimiter='::' must be one ASCII character"),
    "foreign delimiter": (PLAIN, {"delimiter": "§"}, "delimiter='§' must be one ASCII character"),
    "codec": (PLAIN, {"encoding": "rot13"}, "encoding='rot13' is not known"),
    "old line ends": (PLAIN.replace("\n", "\r"), {}, "ends its lines with CR alone"),
    "padded mark": (
        "a,b,y\n" + ROWS + "1,NA ,0\n",
        {"missing": "mean"},
        "line 52, column 'b' holds 'NA ', not a number",
    ),
    "wide digit": ("a,b,y\n" + ROWS + "1,１,0\n", {}, "line 52, column 'b' holds '１', not a number"),
    "open quote": ("a,b,y\n" + ROWS + '1,"2,0\n', {}, "cannot be parsed after line|has . fields"),
    "encoding": (PLAIN, {"encoding": "utf-88"}, "encoding='utf-88' is not known"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(write, small, case):
    """One sentence, with the line."""
    content, how, sentence = REFUSED[case]
    with pytest.raises(SourceError, match=sentence) as caught:
        read_whole(Delimited(write(content), Reading(**how)))
    assert "\n" not in str(caught.value)


def test_truncated_and_damaged(write):
    """A gzip that ends in the middle, and one with a wrong byte."""
    packed = gzip.compress(np.random.default_rng(0).integers(0, 9, (9999, 3)).astype(str).tobytes())
    with pytest.raises(SourceError, match="is truncated"):
        Delimited(write(packed[:-500]), Reading())
    with pytest.raises(SourceError, match=r"is damaged|is truncated"):
        Delimited(write(packed[:200] + b"\xff" * 50 + packed[250:]), Reading())
    with pytest.raises(SourceError, match=r"'nowhere.csv' does not exist"):
        Delimited("nowhere.csv", Reading())


def test_a_stray_quote_is_found_soon(write):
    """A quote that never closes costs one look at each line, and is one sentence."""
    content = b"a,b\n" + b'1,"2\n' + b"1,2\n" * 400_000
    with pytest.raises(SourceError):
        read_whole(Delimited(write(content), Reading()))
