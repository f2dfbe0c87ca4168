"""Tables of text and svmlight lines that cannot be read, plain and compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma

from tests.cli.case import TABLE, Case, case, folder, spoilt

INGEST = "ingest t.csv d.zarr"
LONG = "a,b,y\n" + "".join(f"{i},{(i * 7919) % 1000 / 7},{i % 2}\n" for i in range(4000))
"""Long enough that a break in the middle of the compressed bytes is seen after the first block."""
SVM = "".join(f"{i % 2} 1:{i} 3:0.5\n" for i in range(1, 21))


def csv(name: str, content: str | bytes, *said: str, words: str = INGEST, code: int = 1) -> Case:
    """A spoilt CSV file t.csv."""
    return case(f"csv {name}", {"t.csv": content}, words, code, "t.csv", *said)


def channel(name: str, content: str, *said: str, words: str = INGEST) -> Case:
    """A file t.csv that is refused as a whole, by the name of its channel."""
    return case(f"csv {name}", {"t.csv": content}, words, 1, "'t'", *said)


def svm_line(name: str, text: str, *said: str, words: str = "ingest t.svm d.zarr") -> Case:
    """A spoilt line 7 of an svmlight file."""
    lines = SVM.splitlines()
    lines[6] = text
    return case(f"svmlight {name}", {"t.svm": "\n".join(lines) + "\n"}, words, 1, *said)


FIELDS = [
    csv("one field less in the first row", spoilt(2, "1,2"), "line 2", "2 fields"),
    csv("one field less in the middle", spoilt(15, "1,2"), "line 15", "2 fields", "3"),
    csv("one field less in the last row", spoilt(31, "1,2"), "line 31", "2 fields"),
    csv("one field more in the first row", spoilt(2, "1,2,0,9"), "line 2", "4 fields"),
    csv("one field more in the middle", spoilt(15, "1,2,0,9"), "line 15", "4 fields"),
    csv("one field more in the last row", spoilt(31, "1,2,0,9"), "line 31", "4 fields"),
    csv("more and less make up for each other", spoilt(9, "1,2,0,9\n1,2"), "line 9", "4 fields"),
    csv("less then more", spoilt(9, "1,2\n1,2,0,9"), "line 9", "2 fields"),
    csv("last line cut off", TABLE[:-2], "line 31"),
    csv("last line without its fields", TABLE + "3", "line 32", "1 fields"),
    csv("ragged in a column that is dropped", spoilt(15, "1,2,0,9"), "line 15", words=f"{INGEST} --drop b"),
    csv("ragged without a header", "1,2,0\n3,4,1\n5,6\n", "line 3", "2 fields"),
    csv("ragged with CRLF", spoilt(15, "1,2").replace("\n", "\r\n"), "line 15", "2 fields"),
    csv("ragged after a quoted line end", 'a,b,y\n"1\n",2,0\n1,2\n', "line 4"),
    csv("ragged rows given --no-header", "a,b,y\n1,2,0\n1,2,0,0\n", "line 3", words=f"{INGEST} --no-header"),
    csv("an index column without a name", "a,b\n1,2,0\n3,4,1\n", "line 2", "3 fields", "2"),
    csv("another delimiter later", spoilt(20, "1;2;0"), "line 20", "1 fields"),
    csv("wrong delimiter said", TABLE, "';'", words=f"{INGEST} --delimiter ;"),
]
QUOTES = [
    csv("quote never closed in the last row", spoilt(31, '1,"2,0'), "line"),
    csv("quote never closed in the middle", spoilt(15, '1,"2,0'), "line"),
    csv("quote never closed in the header", TABLE.replace("b", '"b', 1), "t.csv"),
    csv("quoted text where a number is", spoilt(15, '1,"x",0'), "line 15", "'b'", "'x'"),
]
HEADERS = [
    csv("duplicate header", TABLE.replace("b", "a", 1), "two columns named 'a'", "0 and 1"),
    csv("duplicate header but for spaces", TABLE.replace("b", " a ", 1), "two columns named 'a'"),
    csv("duplicate empty names", "a,,\n1,2,0\n3,4,1\n", "two columns named ''"),
    csv("three times the same name", "y,y,y\n1,2,0\n3,4,1\n", "two columns named 'y'"),
    csv("header only", "a,b,y\n", "header and no rows"),
    csv("header only, no line end", "a,b,y", "header and no rows"),
    csv("header and blank lines", "a,b,y\n\n\n", "header and no rows"),
    csv("one column only", "y\n1\n0\n", "no column left"),
    csv("target that is not there", TABLE, "'z'", "no column", words=f"{INGEST} --target z"),
    csv("target misspelt", "age,income,label\n1,2,0\n3,4,1\n", "'lable'", "did you mean 'label'",
        words=f"{INGEST} --target lable"),
    csv("target position too large", TABLE, "3 columns", "7", words=f"{INGEST} --target 7"),
    csv("target position too small", TABLE, "3 columns", "-4", words=f"{INGEST} --target -4"),
    csv("dropped column that is not there", TABLE, "'c'", "--drop", words=f"{INGEST} --drop c"),
    csv("categorical column that is not there", TABLE, "'c'", "--categorical", words=f"{INGEST} --categorical c"),
    csv("all columns dropped", TABLE, "no column left", words=f"{INGEST} --drop a,b"),
]  # fmt: skip
VALUES = [
    csv("empty field", spoilt(15, "1,,0"), "line 15", "'b'", "--missing"),
    csv("NaN", spoilt(15, "1,NaN,0"), "line 15", "'b'", "missing"),
    csv("NA in the first row", spoilt(2, "NA,1,0"), "line 2", "'a'", "missing"),
    csv("null in the last row", spoilt(31, "1,null,0"), "line 31", "'b'", "missing"),
    csv("missing target", spoilt(15, "1,2,"), "line 15", "'y'", "missing"),
    csv("missing target given --missing mean", spoilt(15, "1,2,"), "line 15", "'y'", words=f"{INGEST} --missing mean"),
    csv("missing target given --missing zero", spoilt(15, "1,2,"), "line 15", "'y'", words=f"{INGEST} --missing zero"),
    csv("a question mark", spoilt(15, "1,?,0"), "line 15", "'b'", "'?'", "--na"),
    csv("a question mark that --na allows", spoilt(15, "1,?,0"), "line 15", "missing", words=f"{INGEST} --na ?"),
    csv("inf", spoilt(15, "1,inf,0"), "line 15", "'b'", "inf", "finite"),
    csv("-Infinity", spoilt(15, "-Infinity,2,0"), "line 15", "'a'", "-Infinity"),
    csv("inf given --missing drop", spoilt(15, "1,inf,0"), "line 15", "inf", words=f"{INGEST} --missing drop"),
    csv("infinite target", spoilt(15, "1,2,inf"), "line 15", "'y'", "inf"),
    csv("1e400", spoilt(15, "1,1e400,0"), "line 15", "'b'", "1e400"),
    csv("-1e999 as target", spoilt(15, "1,2,-1e999"), "line 15", "'y'", "-1e999"),
    channel("1e39 is beyond float32", spoilt(15, "1,1e39,0"), "1e+39", "float32"),
    channel("-1e300 is beyond float32", spoilt(15, "1,-1e300,0"), "1e+300", "float32"),
    channel("whole number of 60 digits", spoilt(15, f"1,{'9' * 60},0"), "1e+60", "float32"),
    csv("whole number of 400 digits", spoilt(15, f"1,{'9' * 400},0"), "line 15", "'b'", "999"),
    csv("text in a column of numbers", spoilt(15, "1,two,0"), "line 15", "'b'", "'two'"),
    csv("text in the last row", spoilt(31, "1,oops,0"), "line 31", "'oops'"),
    csv("decimal comma", spoilt(15, '1,"2,5",0'), "line 15", "'2,5'"),
    csv("underscores in a number", spoilt(15, "1,1_000,0"), "line 15", "1_000"),
    csv("hexadecimal", spoilt(15, "1,0xff,0"), "line 15", "0xff"),
    csv("a date", spoilt(15, "1,2024-01-01,0"), "line 15", "2024-01-01"),
    csv("a unit after a number", spoilt(15, "1,5 kg,0"), "line 15", "5 kg"),
    csv("a number of another script", spoilt(15, "1,٣,0"), "line 15", "'b'"),
    csv("text that is not asked for", "a,s,y\n1,u,0\n2,v,1\n", "'s'", "--categorical"),
    csv("missing text", "a,s,y\n1,u,0\n2,,1\n3,v,0\n", "line 3", "'s'", words=f"{INGEST} --categorical s"),
    csv("text as a target of regression", "a,y\n1,u\n2,v\n", "text", "regression",
        words=f"{INGEST} --task regression"),
    case("csv every row has a gap", {"t.csv": "a,b,y\n1,,0\n,2,1\n"}, f"{INGEST} --missing drop", 1, "of the 2 rows"),
    csv("classes that are fractions", "a,y\n1,0.5\n2,1.5\n", "classes", words=f"{INGEST} --task classification"),
]  # fmt: skip
BYTES = [
    csv("empty file", b"", "empty"),
    csv("only line ends", b"\n\n\n", "empty"),
    csv("only blanks", b"   \t  ", "empty"),
    csv("only a byte order mark", b"\xef\xbb\xbf", "empty"),
    csv("latin-1", "a,b,y\nü,2,0\nü,3,1\n".encode("latin-1"), "utf-8", r"\xfc", "--encoding"),
    csv("latin-1 in the header", "a,größe,y\n1,2,0\n3,4,1\n".encode("latin-1"), "utf-8", "--encoding"),
    csv("windows-1252 in a later row", spoilt(30, "1,€2,0").encode("cp1252"), "utf-8", r"\x80"),
    csv("UTF-16 with its mark", TABLE.encode("utf-16"), "UTF-16", "--encoding utf-16"),
    csv("UTF-16 without its mark", TABLE.encode("utf-16-le"), "NUL"),
    csv("UTF-32", TABLE.encode("utf-32-le"), "NUL"),
    csv("NUL in the middle", TABLE.replace("5", "\0", 1), "NUL"),
    csv("UTF-8 cut in the middle of a letter", "a,y\n1,0\n2,é".encode()[:-1], "utf-8"),
    csv("text said to be UTF-16", TABLE, "utf-16", words=f"{INGEST} --encoding utf-16"),
    csv("CR alone", TABLE.replace("\n", "\r"), "CR"),
    case("csv an encoding that is not known", {"t.csv": TABLE}, f"{INGEST} --encoding utf-9", 1, "utf-9"),
    case("csv an encoding that is not of text", {"t.csv": TABLE}, f"{INGEST} --encoding rot13", 1, "rot13"),
    csv("a picture", b"\x89PNG\r\n\x1a\n" + bytes(100), "NUL"),
    csv("a PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" * 20, "utf-8"),
    case("csv a delimiter of two characters", {"t.csv": TABLE}, f"{INGEST} --delimiter ::", 1, "'::'", "one"),
    case("csv a delimiter that is a quote", {"t.csv": TABLE}, f'{INGEST} --delimiter "', 1, "delimiter"),
    case("csv a delimiter that is not ASCII", {"t.csv": TABLE}, f"{INGEST} --delimiter §", 1, "§", "ASCII"),
]


def _packed() -> list[Case]:
    found = []
    for suffix, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        data = pack(LONG.encode())
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 0xFF
        middle = bytearray(data)
        middle[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
        spoils = {
            "cut after 12 bytes": data[:12],
            "cut in the middle": data[: len(data) // 2],
            "without its last byte": data[:-1],
            "one byte turned over": bytes(flipped),
            "zeros in the middle": bytes(middle),
            "nothing but its magic": data[:6],
            "of nothing": pack(b""),
            "of a ragged table": pack(spoilt(15, "1,2").encode()),
            "of latin-1": pack("a,s,y\n1,ü,0\n2,b,1\n".encode("latin-1")),
        }
        for name, content in spoils.items():
            file = f"t.csv.{suffix}"
            found.append(case(f"{suffix} {name}", {file: content}, f"ingest {file} d.zarr", 1, file))
    flawed = bytearray(gzip.compress(LONG.encode()))
    flawed[-8] ^= 1
    found.append(case("gz wrong sum", {"t.csv.gz": bytes(flawed)}, "ingest t.csv.gz d.zarr", 1, "t.csv.gz", "CRC"))
    after = gzip.compress(TABLE.encode()) + b"and what follows"
    found.append(case("gz rubbish after", {"t.csv.gz": after}, "ingest t.csv.gz d.zarr", 1, "t.csv.gz", "damaged"))
    for magic, kind in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"7z\xbc\xaf", "7z"), (b"\x04\x22\x4d\x18", "lz4")):
        found.append(case(f"{kind} is not unpacked", {"t.csv.x": magic + bytes(50)}, "ingest t.csv.x d.zarr", 1, kind))
    twice = gzip.compress(gzip.compress(TABLE.encode()))
    found.append(case("gz in gz", {"t.csv.gz": twice}, "ingest t.csv.gz d.zarr", 1, "t.csv.gz"))
    return found


HUGE = [
    csv("classes that float64 cannot tell apart", "a,y\n1,9007199254740993\n2,9007199254740992\n", "90071992547409"),
    csv("a class of 20 digits", "a,y\n1,99999999999999999999\n2,0\n", "t"),
    csv("1e30 as a class", "a,y\n1,1e30\n2,0\n", "t"),
    case("svmlight huge target", {"t.svm": "9007199254740993 1:1\n9007199254740992 1:2\n"}, "ingest t.svm d.zarr", 1,
         "90071992547409"),
]  # fmt: skip
"""Targets that float64 would change without a word."""
SVMLIGHT = [
    svm_line("no colon", "1 1:2 nonsense", "t.svm", "line 7", "nonsense"),
    svm_line("no value", "1 1: 3:4", "t.svm", "line 7", "1:"),
    svm_line("no index", "1 :2 3:4", "t.svm", "line 7", ":2"),
    svm_line("text as value", "1 1:two", "t.svm", "line 7", "1:two"),
    svm_line("text as target", "cat 1:2", "t.svm", "line 7", "cat"),
    svm_line("several targets", "1,2 1:2", "t.svm", "line 7", "1,2"),
    svm_line("indices that fall", "1 3:2 1:4", "t.svm", "line 7", "1:4", "increasing"),
    svm_line("the same index twice", "1 3:2 3:4", "t.svm", "line 7", "3:4"),
    svm_line("negative index", "1 -3:2 4:4", "t.svm", "line 7", "-3:2"),
    svm_line("huge index", "1 1:2 99999999999999999999:4", "t.svm", "line 7", "99999999999999999999"),
    svm_line("index beyond 31 bits", "1 1:2 3000000000:4", "t.svm", "line 7", "3000000000"),
    svm_line("fraction as index", "1 1.5:2", "t.svm", "line 7", "1.5:2"),
    svm_line("nan", "1 1:nan 3:4", "t.svm", "line 7", "'1'", "missing"),
    svm_line("inf", "1 1:2 3:inf", "t.svm", "line 7", "index 3", "inf"),
    svm_line("1e400", "1 1:2 3:1e400", "t.svm", "line 7", "index 3"),
    svm_line("inf given --missing mean", "1 1:inf", "line 7", "inf", words="ingest t.svm d.zarr --missing mean"),
    svm_line("target nan", "nan 1:2", "t.svm", "line 7", "nan"),
    svm_line("target inf", "-inf 1:2", "t.svm", "line 7", "inf"),
    svm_line("beyond float32", "1 1:1e39", "1e+39", "float32"),
    svm_line("foreign byte", "1 1:2\xff", "t.svm"),
    case("svmlight empty", {"t.svm": b""}, "ingest t.svm d.zarr --format svmlight", 1, "t.svm", "empty"),
    case("svmlight only comments", {"t.svm": "# a\n# b\n"}, "ingest t.svm d.zarr --format svmlight", 1, "t"),
    case("svmlight said of a CSV", {"t.csv": TABLE}, "ingest t.csv d.zarr --format svmlight", 1, "line 1"),
    case("svmlight without rows for the test", {"t.svm": "1 1:2\n0 2:2\n"}, "ingest t.svm d.zarr --split test=0.01",
         1, "rows is left for test"),
    case("svmlight categorical", {"t.svm": SVM}, "ingest t.svm d.zarr --categorical 1", 1, "--categorical"),
    case("svmlight drop", {"t.svm": SVM}, "ingest t.svm d.zarr --drop 1", 1, "--drop"),
]  # fmt: skip
PLACES = [
    case("a file that is not there", {}, "ingest nowhere.csv d.zarr", 1, "nowhere.csv", "not exist"),
    case("a pattern that matches nothing", {}, "ingest no*.csv d.zarr", 1, "no*.csv", "no file"),
    case("an empty folder", {"t.csv": folder}, INGEST, 1, "t.csv", "no images"),
    case("a folder said to be CSV", {"t.csv": folder}, f"{INGEST} --format csv", 1, "t.csv", "folder"),
    case("a folder said to be svmlight", {"t.svm": folder}, "ingest t.svm d.zarr --format svmlight", 1, "folder"),
    case("a folder of other files", {"f/a.doc": "x", "f/b.txt": "1,2"}, "ingest f d.zarr", 1, "f", "no images"),
    case("files of a folder differ", {"f/a.csv": "a,y\n1,0\n", "f/b.csv": "b,y\n1,0\n"}, "ingest f d.zarr", 1,
         "b.csv", "different columns"),
    case("a later file of a folder is ragged", {"f/a.csv": TABLE, "f/b.csv": spoilt(15, "1,2")}, "ingest f d.zarr", 1,
         "b.csv", "line 15"),
    case("a link to nowhere", {"t.csv": lambda path: path.symlink_to("gone.csv")}, INGEST, 1, "t.csv", "not exist"),
    case("an unknown protocol", {}, "ingest gopher://host/t.csv d.zarr", 1, "gopher"),
    case("the null device", {}, "ingest /dev/null d.zarr", 1, "/dev/null", "empty"),
]  # fmt: skip
CASES = [*FIELDS, *QUOTES, *HEADERS, *VALUES, *BYTES, *_packed(), *HUGE, *SVMLIGHT, *PLACES]
