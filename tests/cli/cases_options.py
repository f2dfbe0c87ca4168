"""Options that cannot be, places that cannot be written, channels that do not belong together."""

from __future__ import annotations

from tests.cli.case import TABLE, Case, case, copy_of, folder

GOOD = {"t.csv": TABLE}
OTHER = {"u.csv": TABLE.replace("a,b", "c,d")}
INGEST = "ingest t.csv d.zarr"


def option(words: str, code: int, *said: str) -> Case:
    """Good rows with options that cannot be."""
    return case(f"ingest {words}", GOOD, f"{INGEST} {words}", code, *said)


OPTIONS = [
    option("--split test", 2, "--split", "'test'", "test=0.2"),
    option("--split test=", 2, "--split", "'test='"),
    option("--split test=half", 2, "--split", "'test=half'"),
    option("--split test=0", 1, "test=0"),
    option("--split test=1", 1, "test=1"),
    option("--split test=1.5", 1, "test=1.5"),
    option("--split test=-0.2", 1, "test=-0.2"),
    option("--split test=nan", 1, "test=nan"),
    option("--split train=0.5", 1, "train=0.5"),
    option("--split =0.5", 1, "=0.5"),
    option("--split ../x=0.5", 1, "../x=0.5"),
    option("--split a=0.5 --split b=0.5", 1, "'a'", "less than 1"),
    option("--split test=0.2,test=0.2", 1, "test"),
    option("--split test=0.000001", 1, "test", "30 rows"),
    option("--split test=0.999999", 1, "train", "30 rows"),
    option("--scale minmaxx", 1, "did you mean 'minmax'"),
    option("--scale standard,minmax", 1, "minmax undoes standard", "leave one of them out"),
    option("--missing ignore", 1, "'ignore'", "'drop'"),
    option("--missing men", 1, "did you mean 'mean'"),
    option("--task clasification", 1, "did you mean 'classification'"),
    option("--task clustering", 1, "'clustering'"),
    option("--task regression --target none", 1, "target"),
    option("--resize 32", 2, "'32'", "32x32"),
    option("--resize 0x4", 2, "'0x4'"),
    option("--resize -3x4", 2, "'-3x4'"),
    option("--resize axb", 2, "'axb'"),
    option("--resize 1x2x3", 2, "'1x2x3'"),
    option("--patches big", 2, "'big'", "--patches 32x32"),
    option("--patches 0", 2, "'0x0'"),
    option("--patches 16", 1, "t.csv", "a folder of images"),
    option("--per-image 0", 2, "--per-image", "0"),
    option("--per-image 5", 1, "per_image=5", "--patches 16"),
    option("--split test=right", 1, "test=right", "--patches 16"),
    option("--format cvs", 2, "cvs", "csv"),
    option("--format hdf5", 2, "hdf5"),
    option("--dtype float16", 1, "'float16'", "'float32'"),
    option("--dtype int8", 1, "'int8'"),
    option("--layout sparse", 1, "sparse"),
    option("--layout wide", 1, "'wide'"),
    option("--threads 0", 2, "--threads", "0"),
    option("--threads many", 2, "--threads", "many"),
    option("--seed one", 2, "--seed", "one"),
    option("--no-such-option", 2, "--no-such-option", "dkl ingest --help"),
    option("--like nothing.zarr", 1, "nothing.zarr"),
    option("--like t.csv", 1, "t.csv"),
    option("--like {shared}/pm.zarr", 1, "pm.zarr", "recipe"),
    option("--like {shared}/p.zarr", 1, "p.zarr"),
    option("--like {shared}/c.zarr", 1, "t.csv", "'c'"),
    option("--format sklearn", 1, "t.csv"),
    case("ingest no words", {}, "ingest", 2, "DEST"),
    case("ingest one word", GOOD, "ingest t.csv", 1, "source"),
]
PLACES = [
    case("destination exists", {**GOOD, "d.zarr": folder}, INGEST, 1, "'d.zarr' exists", "--overwrite"),
    case("destination is a file", {**GOOD, "d.zarr": b"precious"}, INGEST, 1, "'d.zarr' exists"),
    case("destination is a file, --overwrite", {**GOOD, "d.zarr": b"precious"}, f"{INGEST} --overwrite", 1, "d.zarr"),
    case("destination is somebody's folder, --overwrite", {**GOOD, "d.zarr/thesis.tex": b"precious"},
         f"{INGEST} --overwrite", 1, "d.zarr"),
    case("destination is a model, --overwrite", {**GOOD, "m.zarr": copy_of("cm.zarr")},
         "ingest t.csv m.zarr --overwrite", 1, "m.zarr"),
    case("destination is a link to nowhere", {**GOOD, "d.zarr": lambda path: path.symlink_to("gone/d")}, INGEST, 1,
         "d.zarr"),
    case("destination in no folder", GOOD, "ingest t.csv no/such/d.zarr", 1, "no/such", "does not exist"),
    case("destination under a file", GOOD, "ingest t.csv t.csv/d.zarr", 1, "t.csv"),
    case("destination is the source", GOOD, "ingest t.csv t.csv", 1, "t.csv"),
    case("destination is the source, --overwrite", GOOD, "ingest t.csv t.csv --overwrite", 1, "t.csv"),
    case("destination has an unknown protocol", GOOD, "ingest t.csv gopher://h/d.zarr", 1, "gopher"),
    case("destination's name is too long", GOOD, f"ingest t.csv {'d' * 300}.zarr", 1, "ddd"),
    case("an ingest is under way", {**GOOD, "d.zarr.ingest/ingest.json": "{}"}, INGEST, 1, "d.zarr.ingest", "resume"),
    case("log in no folder", GOOD, f"{INGEST} --log no/log.jsonl", 2, "--log", "no/log.jsonl"),
    case("log is a folder", {**GOOD, "log": folder}, f"{INGEST} --log log", 2, "--log", "log"),
    case("log on a full disk", GOOD, f"{INGEST} --log /dev/full", 3, "no room"),
]  # fmt: skip
CHANNELS = [
    case("channels of other lengths", {**GOOD, "u.csv": TABLE + "9,9,1\n"}, "ingest t.csv u.csv d.zarr", 1,
         "'t' 30", "'u' 31", "--rows"),
    case("channels of other targets", {**GOOD, "u.csv": TABLE.replace("3,-1.5,1", "3,-1.5,0")},
         "ingest t.csv u.csv d.zarr", 1, "row 3", "'t'", "'u'"),
    case("channels of numbers and names", {**GOOD, "u.csv": TABLE.replace(",1\n", ",b\n").replace(",0\n", ",a\n")},
         "ingest t.csv u.csv d.zarr", 1, "row 0", "'t'", "'u'"),
    case("a second channel that is not there", GOOD, "ingest t.csv u.csv d.zarr", 1, "u.csv", "not exist"),
    case("a second channel that is ragged", {**GOOD, "u.csv": TABLE + "1\n"}, "ingest t.csv u.csv d.zarr", 1,
         "u.csv", "line 32"),
    case("scales for other channels", {**GOOD, **OTHER}, "ingest t.csv u.csv d.zarr --scale l1,l1,l1", 1, "3 entries"),
    case("further rows of other columns", {**GOOD, **OTHER}, "ingest t.csv u.csv d.zarr --rows", 1, "different"),
    case("further rows of other widths", {"t.svm": "1 1:2\n", "u.npy": b"\x93NUMPY"},
         "ingest t.svm u.npy d.zarr --rows", 1, "u.npy"),
    case("like a data set of one channel", {**GOOD, **OTHER}, "ingest t.csv u.csv d.zarr --like {shared}/whole.zarr",
         1, "2 sources", "1 channels"),
    case("like rows with another header", OTHER, "ingest u.csv d.zarr --like {shared}/whole.zarr", 1, "u.csv", "'a'"),
    case("like rows with an unseen category", {"u.csv": "a,b,c,y\n1,2,pink,k0\n"},
         "ingest u.csv d.zarr --like {shared}/c.zarr", 1, "'c'", "'pink'"),
    case("like rows with text for a number", {"u.csv": "a,b,c,y\nx,2,red,k0\n"},
         "ingest u.csv d.zarr --like {shared}/c.zarr", 1, "u.csv", "line 2", "'a'", "'x'"),
    case("like svmlight with a greater index", {"u.svm": "1 2:1 50:3\n"},
         "ingest u.svm d.zarr --like {shared}/sparse.zarr", 1, "50"),
    case("like rows of a wider array", {"u.npy": TABLE}, "ingest u.npy d.zarr --like {shared}/sparse.zarr", 1, "u"),
]  # fmt: skip
CASES = [*OPTIONS, *PLACES, *CHANNELS]
