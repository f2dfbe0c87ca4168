"""Data sets, models, configurations and options that fit, plan, predict, evaluate, inspect and resume cannot use."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from dkl.sources.intact import description_digest
from dkl.store.record import digest_of
from tests.cli.case import TABLE, Case, case, copy_of, folder
from tests.cli.cases_binary import group

FIT = "fit {shared}/whole.zarr m.zarr --n-components 10"
X, Y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2


def flag(words: str, code: int, *said: str) -> Case:
    """A good data set fitted with options that cannot be."""
    return case(f"fit {words}", {}, f"{FIT} {words}", code, *said)


def config(name: str, text: str | bytes, *said: str, words: str = "") -> Case:
    """A configuration c.toml that cannot be used."""
    return case(f"config {name}", {"c.toml": text}, f"{FIT} --config c.toml{words}", 1, *said)


def attribute(**changed: Any) -> Any:
    """Change attributes of a Zarr group."""

    def spoil(path: Path) -> None:
        group = zarr.open_group(path, mode="r+")
        group.attrs.update(changed)
        seal(group)

    return spoil


def seal(group: Any) -> None:
    """Give changed attributes the digest they should have, as whoever means harm can."""
    known = dict(group.attrs)
    if "digest" in known:
        is_data = known.get("format") == "dkl-dataset"
        group.attrs["digest"] = description_digest(group, known) if is_data else digest_of(known)


def cut_array(name: str) -> Any:
    """Cut the chunk of an array."""

    def spoil(path: Path) -> None:
        chunk = next(file for file in (path / name).rglob("*") if file.is_file() and file.name != "zarr.json")
        chunk.write_bytes(chunk.read_bytes()[: chunk.stat().st_size // 2])

    return spoil


def without(name: str) -> Any:
    """Remove a part."""
    return lambda path: shutil.rmtree(path / name)


def rubbish(path: Path) -> None:
    """Overwrite the metadata."""
    (path / "zarr.json").write_text("{")


def recipe(**changed: Any) -> Any:
    """Change the recipe that a data set was made by."""

    def spoil(path: Path) -> None:
        root = zarr.open_group(path, mode="r+")
        known = dict(root.attrs)["recipe"]
        known["channels"][0] |= changed
        root.attrs.update({"recipe": known})
        seal(root)

    return spoil


FLAGS = [
    flag("--alpha -1", 1, "alpha", "-1"),
    flag("--alpha nan", 2, "--alpha", "'nan'"),
    flag("--alpha inf", 2, "--alpha", "'inf'"),
    flag("--alpha one", 2, "--alpha", "'one'"),
    flag("--alpha 1,2", 1, "alpha"),
    flag("--alpha 1,,2 --cv 3", 2, "--alpha", "'1,,2'"),
    flag("--alpha -1,1 --cv 3", 1, "alpha", "-1"),
    flag("--cv 1", 1, "cv"),
    flag("--cv 0", 1, "cv"),
    flag("--cv -3", 1, "cv"),
    flag("--cv 31", 1, "cv", "31", "30"),
    flag("--cv five", 2, "--cv", "'five'"),
    flag("--cv 2.5", 2, "--cv", "'2.5'"),
    flag("--n-components 0", 1, "n_components", "0"),
    flag("--n-components -5", 1, "n_components", "-5"),
    flag("--n-components 1e3", 2, "--n-components", "'1e3'"),
    flag("--n-components 9999999", 3, "GiB"),
    flag("--kernel gausian", 2, "did you mean 'gaussian'"),
    flag("--kernel rbf", 2, "'rbf'"),
    flag("--sigma nan", 2, "--sigma", "'nan'"),
    flag("--sigma -1", 1, "sigma", "-1"),
    flag("--sigma sacle", 2, "--sigma", "'sacle'"),
    flag("--sigma 1,2,3,4", 1, "sigma"),
    flag("--groups 0,1,2 --sigma 1,2", 1, "groups"),
    flag("--groups each,other", 1, "groups"),
    flag("--groups eech", 1, "groups", "eech"),
    flag("--frequencies iod", 2, "frequencies", "did you mean 'iid'"),
    flag("--form pared", 2, "did you mean 'paired'"),
    flag("--skew zero", 2, "--skew", "'zero'"),
    flag("--skew -1 --kernel skewed_chi2", 1, "skew", "-1"),
    flag("--learn everything", 2, "'everything'"),
    flag("--learn valid", 2, "'valid'", "'validation'"),
    flag("--learn gcv --cv 3", 1, "cv=3", "learn='gcv'"),
    flag("--learn cv --alpha 1,2", 1, "alpha", "2 values", "'auto'"),
    flag("--learn cv --alpha 0", 1, "alpha=0.0", "'auto'"),
    flag("--learn frequencies --sigma-l1 1", 1, "sigma_l1", "frequencies"),
    flag("--learn log_loss --sigma-l1 1", 1, "sigma_l1=1.0", "learn='cv'"),
    flag("--learn validation --validation 0", 1, "validation=0.0"),
    flag("--learn validation --validation 1", 1, "validation=1.0"),
    flag("--learn validation --validation 0.001", 1, "validation=0.001"),
    flag("--learn validation --validation half", 2, "--validation", "'half'"),
    flag("--starts 0", 1, "starts=0"),
    flag("--starts 1.5", 2, "--starts", "'1.5'"),
    flag("--tol 0", 1, "tol=0"),
    flag("--subsample 2", 1, "subsample=2"),
    flag("--subsample 0", 1, "subsample=0"),
    flag("--max-iter 0", 1, "max_iter=0"),
    flag("--max-time -1", 1, "max_time=-1"),
    flag("--sigma-l1 -1", 1, "sigma_l1", "-1"),
    flag("--sigma-l2 nan", 2, "--sigma-l2", "'nan'"),
    flag("--fit-intercept maybe", 2, "--fit-intercept", "'maybe'"),
    flag("--class-weight balansed", 1, "class_weight", "balansed"),
    flag("--class-weight 0=1,1=much", 2, "--class-weight", "much"),
    flag("--class-weight 0=-1,1=1", 1, "class_weight", "-1"),
    flag("--class-weight 7=2", 1, "class_weight", "7"),
    flag("--class-weight balanced --task regression", 1, "class_weight", "regression"),
    flag("--landmarks kmean", 2, "'kmean'", "kmeans++"),
    flag("--landmarks uniform --learn cv", 1, "learn='cv'", "landmarks='uniform'"),
    flag("--unlabelled nowhere.zarr --reduce 5", 1, "nowhere.zarr"),
    flag("--calibrate 0", 1, "calibrate=0"),
    flag("--calibrate 2.5", 2, "--calibrate", "'2.5'"),
    flag("--calibrate many", 2, "--calibrate", "'many'"),
    flag("--calibrate 5 --task regression", 1, "calibrate=5", "regression"),
    flag("--random-state -1", 1, "random_state", "-1"),
    flag("--random-state abc", 2, "--random-state", "'abc'"),
    flag("--dtype float16", 2, "'float16'"),
    flag("--place worker", 2, "'worker'"),
    flag("--task ranking", 2, "'ranking'"),
    flag("--split nowhere", 1, "split", "nowhere"),
    flag("--no-such-option 1", 2, "--no-such-option", "dkl fit --help"),
    flag("--workers 0", 2, "--workers", "0"),
    flag("--threads -1", 2, "--threads", "-1"),
    flag("--workers 2 --scheduler tcp://127.0.0.1:1", 2, "--workers", "--scheduler"),
    flag("--scheduler gone.json", 4, "gone.json"),
    flag("--tls-ca ca.pem", 2, "--tls-ca", "--scheduler"),
    flag("--scheduler tls://127.0.0.1:1 --tls-ca ca.pem", 2, "ca.pem"),
    flag("--scheduler tls://127.0.0.1:1 --tls-cert /dev/null", 2, "--tls-ca", "missing"),
    flag("--log no/such/log.jsonl", 2, "--log", "no/such/log.jsonl"),
    flag("--log /dev/full", 3, "no room"),
    flag("--config gone.toml", 1, "gone.toml", "--write-config"),
    flag("--write-config no/such/c.toml", 1, "no/such/c.toml"),
]
CONFIGS = [
    config("is not TOML", "alpha 1", "c.toml", "TOML", "line 1"),
    config("has an unclosed text", 'kernel = "gaussian\n', "c.toml", "line 1"),
    config("is not UTF-8", b'kernel = "\xff"', "c.toml"),
    config("has a key twice", "alpha = 1.0\nalpha = 2.0\n", "c.toml"),
    config("has a misspelt key", "n_component = 5\n", "'n_component'", "did you mean 'n_components'"),
    config("has another misspelt key", "kernal = 'gaussian'\n", "'kernal'", "did you mean 'kernel'"),
    config("has an unknown key", "zzz = 5\n", "'zzz'", "known are"),
    config("has a table", "[fit]\nalpha = 1.0\n", "'fit'"),
    config("has a table for model", "[model]\nalpha = 1.0\n", "model = {'alpha': 1.0}"),
    config("has a misspelt kernel", "kernel = 'gausian'\n", "did you mean 'gaussian'"),
    config("has a number for the kernel", "kernel = 3\n", "kernel"),
    config("has text for n_components", "n_components = 'many'\n", "n_components", "many"),
    config("has a fraction for n_components", "n_components = 5.5\n", "n_components", "5.5"),
    config("has yes for cv", "cv = true\n", "cv"),
    config("has a fraction for cv", "cv = 2.5\n", "cv", "2.5"),
    config("has text for cv", "cv = 'five'\n", "cv", "five"),
    config("has text for alpha", "alpha = 'one'\n", "alpha", "one"),
    config("has nan for alpha", "alpha = nan\n", "alpha", "nan"),
    config("has a table for alpha", "alpha = { a = 1 }\n", "alpha"),
    config("has negative sigma", "sigma = -2.0\n", "sigma", "-2"),
    config("has text for skew", "skew = 'very'\nkernel = 'skewed_chi2'\n", "skew", "very"),
    config("has text for fit_intercept", "fit_intercept = 'yes'\n", "fit_intercept"),
    config("has text for random_state", "random_state = 'x'\n", "random_state"),
    config("has a date for sigma", "sigma = 2024-01-01\n", "sigma"),
    config("has a number for class_weight", "class_weight = 3\n", "class_weight", "3"),
    config("has text for calibrate", "calibrate = 'many'\n", "calibrate = 'many'"),
    config("has text in class_weight", "class_weight = { 0 = 'a' }\n", "class_weight"),
    config("has a wrong task", "task = 'ranking'\n", "'ranking'"),
    config("has numbers for groups", "groups = 3\n", "groups"),
    config("is wrong beside good flags", "n_component = 5\n", "'n_component'", words=" --alpha 1"),
    case("config is a folder", {"c.toml": folder}, f"{FIT} --config c.toml", 1, "c.toml"),
    case("write-config to a file that exists", {"c.toml": "x"}, "fit --write-config c.toml", 1, "c.toml", "exists"),
    case("write-config with a wrong flag", {}, "fit --write-config c.toml --kernel gausian", 2, "gaussian"),
    case("write-config of a wrong config", {"o.toml": "zz = 1"}, "fit --config o.toml --write-config c.toml", 1, "zz"),
    case("plan with a wrong config", {"c.toml": "alfa = 1"}, "plan {shared}/whole.zarr --config c.toml", 1, "'alpha'"),
]  # fmt: skip
NAN = group(X=np.where(np.arange(120).reshape(40, 3) == 31, np.nan, X), y=Y)
DATA = [
    case("fit nothing", {}, "fit", 2, "DATA", "MODEL"),
    case("fit without a model", {}, "fit {shared}/whole.zarr", 2, "MODEL"),
    case("fit what is not there", {}, "fit gone.zarr m.zarr", 1, "gone.zarr", "dkl ingest"),
    case("fit a CSV", {"t.csv": TABLE}, "fit t.csv m.zarr", 1, "t.csv", "dkl ingest"),
    case("fit a folder", {"d": folder}, "fit d m.zarr", 1, "'d'"),
    case("fit a model", {}, "fit {shared}/cm.zarr m.zarr", 1, "cm.zarr"),
    case("fit rows without y", {}, "fit {shared}/n.zarr m.zarr", 1, "y"),
    case("fit an array", {"d.zarr": lambda p: zarr.save_array(p, X) and None}, "fit d.zarr m.zarr", 1, "d.zarr"),
    case("fit an empty group", {"d.zarr": group()}, "fit d.zarr m.zarr", 1, "d.zarr"),
    case("fit X without y", {"d.zarr": group(X=X)}, "fit d.zarr m.zarr", 1, "y"),
    case("fit y of another length", {"d.zarr": group(X=X, y=Y[1:])}, "fit d.zarr m.zarr", 1, "40", "39"),
    case("fit NaN in X", {"d.zarr": NAN}, "fit d.zarr m.zarr --n-components 10", 1, "NaN", "row 10"),
    case("fit NaN in y", {"d.zarr": group(X=X, y=np.where(Y, np.nan, 1.0))}, "fit d.zarr m.zarr --n-components 10", 1,
         "y", "NaN"),
    case("fit one class", {"d.zarr": group(X=X, y=Y * 0)}, "fit d.zarr m.zarr --n-components 10", 1, "class"),
    case("fit classes of fractions", {"d.zarr": group(X=X, y=X[:, 0])},
         "fit d.zarr m.zarr --n-components 10 --task classification", 1, "continuous"),
    case("fit complex X", {"d.zarr": group(X=X + 1j, y=Y)}, "fit d.zarr m.zarr", 1, "complex"),
    case("fit X of one axis", {"d.zarr": group(X=Y, y=Y)}, "fit d.zarr m.zarr", 1, "X", "1 dimensions"),
    case("fit no rows", {"d.zarr": group(X=X[:0], y=Y[:0])}, "fit d.zarr m.zarr", 1, "0"),
    case("fit names as numbers", {}, "fit {shared}/c.zarr m.zarr --task regression --n-components 10", 1, "c.zarr"),
    case("fit an incomplete data set", {"d.zarr": copy_of("whole.zarr", attribute(complete=False))},
         "fit d.zarr m.zarr", 1, "d.zarr", "dkl resume"),
    case("fit a data set of the future", {"d.zarr": copy_of("whole.zarr", attribute(version=99))},
         "fit d.zarr m.zarr", 1, "d.zarr", "99", "upgrade"),
    case("fit a data set that lacks X", {"d.zarr": copy_of("whole.zarr", without("X"))}, "fit d.zarr m.zarr", 1,
         "d.zarr"),
    case("fit a data set whose chunk is cut", {"d.zarr": copy_of("whole.zarr", cut_array("X"))},
         "fit d.zarr m.zarr --n-components 10", 1, "d.zarr"),
    case("fit a split that lacks", {"d.zarr": copy_of("c.zarr", without("train"))}, "fit d.zarr m.zarr", 1, "train"),
    case("fit negative inputs with a skewed kernel", {"d.zarr": group(X=X, y=Y)},
         "fit d.zarr m.zarr --kernel skewed_chi2 --n-components 10", 1, "skew"),
    case("fit over a model", {}, "fit {shared}/whole.zarr {shared}/cm.zarr", 1, "cm.zarr", "exists", "--overwrite"),
    case("fit over a data set, --overwrite", {}, "fit {shared}/whole.zarr {shared}/r.zarr --overwrite", 1, "r.zarr"),
    case("fit over a file, --overwrite", {"m.zarr": b"precious"}, "fit {shared}/whole.zarr m.zarr --overwrite", 1,
         "m.zarr"),
    case("fit over its data, --overwrite", {"d.zarr": copy_of("whole.zarr")},
         "fit d.zarr d.zarr --overwrite", 1, "d.zarr"),
    case("fit in no folder", {}, "fit {shared}/whole.zarr no/such/m.zarr --n-components 10", 1, "no/such"),
    case("fit under a file", {"f": b""}, "fit {shared}/whole.zarr f/m.zarr --n-components 10", 1, "f"),
    case("fit is under way", {"m.zarr.fit/run.json": "{}"}, "fit {shared}/whole.zarr m.zarr", 1, "m.zarr.fit"),
    case("plan what is not there", {}, "plan gone.zarr", 1, "gone.zarr"),
    case("plan a CSV", {"t.csv": TABLE}, "plan t.csv", 1, "t.csv"),
    case("plan rows without y", {}, "plan {shared}/n.zarr", 1, "y"),
    case("plan a model", {}, "plan {shared}/cm.zarr", 1, "cm.zarr"),
    case("plan --cv 1", {}, "plan {shared}/whole.zarr --cv 1", 1, "cv"),
    case("plan --n-components 0", {}, "plan {shared}/whole.zarr --n-components 0", 1, "n_components"),
    case("plan --alpha -1", {}, "plan {shared}/whole.zarr --alpha -1", 1, "alpha"),
    case("plan --kernel lapalce", {}, "plan {shared}/whole.zarr --kernel lapalce", 2, "did you mean 'laplac"),
    case("plan a split that is not there", {}, "plan {shared}/c.zarr --split dev", 1, "'dev'", "train, test"),
]  # fmt: skip


def model(name: str, spoil: Any, *said: str) -> Case:
    """A spoilt model m.zarr."""
    words = "predict m.zarr {shared}/c.zarr out.csv"
    return case(f"model {name}", {"m.zarr": copy_of("cm.zarr", spoil)}, words, 1, "m.zarr", *said)


PREDICT = "predict {shared}/cm.zarr"
MODELS = [
    model("with rubbish metadata", rubbish),
    model("that lacks an array", without("coef"), "coef"),
    model("with a cut array", cut_array("sigma"), "sigma"),
    model("of the future", attribute(version=99), "99"),
    model("that is not complete", attribute(format="dkl-mod")),
    model("of an unknown estimator", attribute(estimator="os.system"), "os.system"),
    model("with unknown parameters", attribute(params={"nonsense": 1})),
    model("that does not list its arrays", attribute(arrays=None), "arrays"),
    model("without what was fitted", attribute(fitted={})),
    case("model is text", {"m.zarr": "a model"}, "predict m.zarr {shared}/c.zarr out.csv", 1, "m.zarr"),
    case("model is not there", {}, "predict gone.zarr {shared}/c.zarr out.csv", 1, "gone.zarr", "dkl fit"),
    case("model is an empty folder", {"m.zarr": folder}, "evaluate m.zarr {shared}/c.zarr", 1, "m.zarr"),
    case("model is a data set", {}, "evaluate {shared}/c.zarr {shared}/c.zarr", 1, "c.zarr", "model"),
    case("predict without words", {}, "predict", 2, "MODEL.zarr"),
    case("predict without out", {}, "predict {shared}/cm.zarr {shared}/c.zarr", 2, "DATA"),
    case("predict data that are not there", {}, f"{PREDICT} gone.csv out.csv", 1, "gone.csv"),
    case("predict to an unknown kind", {}, f"{PREDICT} {{shared}}/c.zarr out.txt", 1, "out.txt", ".csv"),
    case("predict to what exists", {"out.csv": b"precious"}, f"{PREDICT} {{shared}}/c.zarr out.csv", 1, "out.csv",
         "--overwrite"),
    case("predict to no folder", {}, f"{PREDICT} {{shared}}/c.zarr no/such/out.csv", 1, "no/such"),
    case("predict to a folder that exists, --overwrite", {"out.csv/thesis.tex": b"precious"},
         f"{PREDICT} {{shared}}/c.zarr out.csv --overwrite", 1, "out.csv"),
    case("predict a split that is not there", {}, f"{PREDICT} {{shared}}/c.zarr out.csv --split dev", 1, "'dev'"),
    case("predict a split of a file", {"t.csv": "a,b,c\n1,2,red\n"}, f"{PREDICT} t.csv out.csv --split test", 1,
         "test", "t.csv"),
    case("predict an unseen category", {"t.csv": "a,b,c\n1,2,red\n1,2,pink\n"}, f"{PREDICT} t.csv out.csv", 1,
         "'c'", "'pink'"),
    case("predict without a column", {"t.csv": "a,b\n1,2\n"}, f"{PREDICT} t.csv out.csv", 1, "t.csv", "'c'"),
    case("predict with a gap", {"t.csv": "a,b,c\n1,,red\n"}, f"{PREDICT} t.csv out.csv", 1, "t.csv", "line 2", "'b'"),
    case("predict with text for a number", {"t.csv": "a,b,c\n1,x,red\n"}, f"{PREDICT} t.csv out.csv", 1, "t.csv",
         "line 2", "'x'"),
    case("predict a ragged file", {"t.csv": "a,b,c\n1,2,red\n1,2\n"}, f"{PREDICT} t.csv out.csv", 1, "line 3"),
    case("predict an empty file", {"t.csv": b""}, f"{PREDICT} t.csv out.parquet", 1, "t.csv", "empty"),
    case("predict a header", {"t.csv": "a,b,c\n"}, f"{PREDICT} t.csv out.zarr", 1, "t.csv", "no rows"),
    case("predict two files for one channel", {"t.csv": "a,b,c\n1,2,red\n", "u.csv": "a,b,c\n1,2,red\n"},
         f"{PREDICT} t.csv u.csv out.csv", 1, "2 sources"),
    case("predict rows prepared in another way", {}, f"{PREDICT} {{shared}}/whole.zarr out.csv", 1, "whole.zarr",
         "another way"),
    case("predict rows scaled in another way", {"d.zarr": copy_of("whole.zarr", recipe(scale="minmax"))},
         "predict {shared}/wholem.zarr d.zarr out.csv", 1, "d.zarr", "scale"),
    case("predict an incomplete data set", {"d.zarr": copy_of("whole.zarr", attribute(complete=False))},
         "predict {shared}/wholem.zarr d.zarr out.csv", 1, "d.zarr", "dkl resume"),
    case("predict rows whose chunk is cut", {"d.zarr": copy_of("whole.zarr", cut_array("X"))},
         "predict {shared}/wholem.zarr d.zarr out.csv", 1, "d.zarr"),
    case("predict rows of another width", {"d.zarr": group(X=X[:, :2])}, "predict {shared}/pm.zarr d.zarr out.csv", 1,
         "2 features", "3 features"),
    case("predict NaN", {"d.zarr": NAN}, "predict {shared}/pm.zarr d.zarr out.csv", 1, "NaN", "row 10"),
    case("predict a file without a recipe", {"t.csv": TABLE}, "predict {shared}/pm.zarr t.csv out.csv", 1, "t.csv",
         "recipe"),
    case("predict scores of a regression", {}, "predict {shared}/rm.zarr {shared}/r.zarr out.csv --scores", 2,
         "--scores"),
    case("predict --log in no folder", {}, f"{PREDICT} {{shared}}/c.zarr out.csv --log no/l.jsonl", 2, "no/l.jsonl"),
    case("predict --log on a full disk", {}, f"{PREDICT} {{shared}}/c.zarr out.csv --log /dev/full", 3, "no room"),
    case("predict --scheduler gone", {}, f"{PREDICT} {{shared}}/c.zarr out.csv --scheduler gone.json", 4, "gone.json"),
    case("evaluate rows without y", {"t.csv": "a,b,c\n1,2,red\n"}, "evaluate {shared}/cm.zarr t.csv", 1, "t.csv", "y"),
    case("evaluate plain rows without y", {"d.zarr": group(X=X)}, "evaluate {shared}/pm.zarr d.zarr", 1, "y"),
    case("evaluate names with a regression", {"t.csv": "a,b,y\n1,2,cat\n2,3,dog\n"}, "evaluate {shared}/rm.zarr t.csv",
         1, "y"),
    case("evaluate --workers 0", {}, "evaluate {shared}/cm.zarr {shared}/c.zarr --workers 0", 2, "--workers"),
    case("evaluate --threads none", {}, "evaluate {shared}/cm.zarr {shared}/c.zarr --threads x", 2, "--threads"),
    case("evaluate what is not there", {}, "evaluate {shared}/cm.zarr gone.zarr", 1, "gone.zarr"),
]  # fmt: skip


OTHERS = [
    case("inspect nothing", {}, "inspect", 2, "PATH"),
    case("inspect what is not there", {}, "inspect gone.zarr", 1, "gone.zarr"),
    case("inspect a CSV", {"t.csv": TABLE}, "inspect t.csv", 1, "t.csv"),
    case("inspect a folder", {"d": folder}, "inspect d", 1, "'d'"),
    case("inspect an incomplete data set", {"d.zarr": copy_of("whole.zarr", attribute(complete=False))},
         "inspect d.zarr", 1, "d.zarr", "dkl resume"),
    case("inspect a data set that lacks X", {"d.zarr": copy_of("whole.zarr", without("X"))}, "inspect d.zarr", 1,
         "d.zarr", "X"),
    case("inspect a data set without recipe", {"d.zarr": copy_of("whole.zarr", attribute(recipe=None))},
         "inspect d.zarr", 1, "d.zarr"),
    case("inspect a data set of the future", {"d.zarr": copy_of("whole.zarr", attribute(version="9"))},
         "inspect d.zarr", 1, "d.zarr", "'9'"),
    case("inspect a spoilt model", {"m.zarr": copy_of("cm.zarr", cut_array("coef"))}, "inspect m.zarr", 1, "coef"),
    case("inspect rubbish metadata", {"m.zarr": copy_of("cm.zarr", rubbish)}, "inspect m.zarr", 1, "m.zarr"),
    case("inspect a damaged ingest", {"d.zarr.ingest/ingest.json": "{"}, "inspect d.zarr", 1, "d.zarr.ingest"),
    case("resume nothing", {}, "resume", 2, "PATH"),
    case("resume what is not there", {}, "resume gone.zarr", 1, "gone.zarr"),
    case("resume a CSV", {"t.csv": TABLE}, "resume t.csv", 1, "t.csv"),
    case("resume a folder", {"d": folder}, "resume d", 1, "'d'"),
    case("resume a damaged fit", {"m.zarr.fit/run.json": "{"}, "resume m.zarr", 1, "run.json", "damaged"),
    case("resume a foreign fit", {"m.zarr.fit/run.json": "{}"}, "resume m.zarr", 1, "m.zarr"),
    case("resume a damaged ingest", {"d.zarr.ingest/ingest.json": "[1,"}, "resume d.zarr", 1, "ingest.json"),
    case("resume a foreign ingest", {"d.zarr.ingest/ingest.json": "{}"}, "resume d.zarr", 1, "d.zarr"),
    case("completion of no shell", {}, "completion tcsh", 2, "tcsh", "bash"),
    case("completion of nothing", {}, "completion", 2, "bash"),
    case("a verb that is not known", {}, "fitt a b", 2, "'fitt'", "did you mean 'fit'"),
    case("a verb that is nothing like one", {}, "xyzzy", 2, "'xyzzy'", "ingest"),
    case("an option that is not known", {}, "--colour", 2, "--colour"),
]  # fmt: skip
CASES = [*FLAGS, *CONFIGS, *DATA, *MODELS, *OTHERS]
