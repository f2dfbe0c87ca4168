"""Options of a fit from a file and from flags: the same values, flags first."""

from __future__ import annotations

import json
import tomllib

import pytest

import dkl
from dkl.cli.config import merge, read_config
from dkl.cli.fit import build
from dkl.cli.options import MODEL, NOT_FLAGS
from dkl.options.fields import options_of
from tests.cli.case import TABLE, put
from tests.cli.in_process import dkl_in, done

FLAGS = {
    "kernel": ("laplacian", '"laplacian"', "laplacian"),
    "n_components": ("12", "12", 12),
    "sigma": ("0.5,2", "[0.5, 2.0]", [0.5, 2.0]),
    "groups": ("0,1", "[0, 1]", [0, 1]),
    "frequencies": ("iid", '"iid"', "iid"),
    "form": ("phase", '"phase"', "phase"),
    "skew": ("0.25", "0.25", 0.25),
    "n_terms": ("7", "7", 7),
    "landmarks": ("leverage", '"leverage"', "leverage"),
    "alpha": ("0.125", "0.125", 0.125),
    "cv": ("3", "3", 3),
    "learn": ("joint", '"joint"', "joint"),
    "validation": ("0.25", "0.25", 0.25),
    "sigma_l1": ("0.5", "0.5", 0.5),
    "sigma_l2": ("0.25", "0.25", 0.25),
    "starts": ("1", "1", 1),
    "subsample": ("0.5", "0.5", 0.5),
    "max_iter": ("4", "4", 4),
    "tol": ("0.5", "0.5", 0.5),
    "max_time": ("60", "60.0", 60.0),
    "early_stopping": ("none", "0.0", 0.0),
    "reduce": ("mle", '"mle"', "mle"),
    "loss": ("log_loss", '"log_loss"', "log_loss"),
    "penalty": ("l1", '"l1"', "l1"),
    "solver": ("cholesky", '"cholesky"', "cholesky"),
    "solver_tol": ("0.5", "0.5", 0.5),
    "learn_components": ("6", "6", 6),
    "fit_intercept": ("no", "false", False),
    "class_weight": ("balanced", '"balanced"', "balanced"),
    "calibrate": ("7", "7", 7),
    "random_state": ("9", "9", 9),
    "dtype": ("float64", '"float64"', "float64"),
    "place": ("client", '"client"', "client"),
}
"""Name to the flag's text, the file's, and the parameter of the model."""
OF_SEVERAL = {
    "kernels": ("gaussian:0.5,laplacian", '["gaussian:0.5", "laplacian"]', ["gaussian:0.5", "laplacian"]),
    "channels": ("0:1,1:2", '["0:1", "1:2"]', ["0:1", "1:2"]),
    "per_channel": ("3", "3", 3),
    "rule": ("last", '"last"', "last"),
    "n_alphas": ("3", "3", 3),
    "eps": ("0.25", "0.25", 0.25),
    "by_output": ("yes", "true", True),
    "debias": ("0.5", "0.5", 0.5),
}
"""The same of `--model multiple`."""
ELSEWHERE = {
    "groups": ("each", '"each"', "each"),
    "learn": ("cv", '"cv"', "cv"),
    "loss": ("logistic", '"logistic"', "logistic"),
    "penalty": ("l21:ridge=0.5", '"l21:ridge=0.5"', "l21:ridge=0.5"),
    "starts": ("2", "2", 2),
}
"""Options of both, with a value that several kernels take, and is not their default."""
NAMED = {
    "kernels": ("fine=gaussian:2,wide=laplacian", '{ fine = "gaussian:2", wide = "laplacian" }',
                {"fine": "gaussian:2", "wide": "laplacian"}),
    "channels": ("a=0:1,b=1:2", '{ a = "0:1", b = "1:2" }', {"a": "0:1", "b": "1:2"}),
    "debias": ("yes", "true", True),
    "per_channel": ("0.9", "0.9", 0.9),
}  # fmt: skip
"""Further kinds of values."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set."""
    folder = tmp_path_factory.mktemp("config")
    put(folder, {"t.csv": TABLE})
    done(folder, "ingest", "t.csv", "d.zarr", "--scale", "minmax")
    return folder


def fit(folder, model, *words):
    """The parameters of a model fitted with some words."""
    done(folder, "fit", "d.zarr", model, *words)
    return dkl.load(folder / model).get_params()


def with_companion(name):
    """What an option needs beside it to be used, and does not change what is compared."""
    learning = ["--learn", "joint", "--tol", "0.01"]
    needs = {"sigma": ["--groups", "each"], "learn_components": ["--learn", "gcv", "--tol", "0.01"]}
    return (needs | dict.fromkeys(("sigma_l1", "sigma_l2"), learning)).get(name, [])


def test_every_option_is_tried():
    """A new option must come with values here."""
    assert {option.name for option in MODEL} == {*FLAGS, *OF_SEVERAL, *OF_NETWORKS, *OF_INFINITE, "task", "model"}


OF_NETWORKS = {
    "learning_rate": ("0.2", "0.2", 0.2),
    "momentum": ("0.9", "0.9", 0.9),
    "momentum_start": ("0.3", "0.3", 0.3),
    "momentum_ramp": ("3", "3", 3),
    "decay": ("0.01", "0.01", 0.01),
    "max_norm": ("2.5", "2.5", 2.5),
    "batch_size": ("64", "64", 64),
    "patience": ("7", "7", 7),
    "search": (
        "candidates=5,decay=0|0.1", '{candidates = 5, decay = "0|0.1"}', {"candidates": 5, "decay": "0|0.1"},
    ),
    "halving": ("2", "2.0", 2.0),
}  # fmt: skip
"""Flag, file and value of the parameters that networks alone have."""


OF_INFINITE = {
    "max_features": ("12", "12", 12),
    "bandwidths": ("0.5,2", '"0.5,2"', "0.5,2"),
    "candidates": ("20", "20", 20),
    "per_round": ("3", "3", 3),
    "improve": ("2", "2", 2),
    "tasks": ("a", '"a"', "a"),
}
"""The same of `--model infinite`."""
WITH_FEW = {
    "penalty": ("shared:ratio=1.5", '"shared:ratio=1.5"', "shared:ratio=1.5"),
    "solver": ("admm", '"admm"', "admm"),
}
"""Options that take more there."""


def flags_of_family(cls):
    """Parameters of a class that have a flag."""
    return [option.name for option in options_of(cls) if option.name not in NOT_FLAGS]


def sweep():
    """Family, parameter, and the flag's text, the file's, and the value; every one of a family, or its own."""
    several, few = FLAGS | OF_SEVERAL | ELSEWHERE, FLAGS | OF_SEVERAL | OF_INFINITE | WITH_FEW
    found = [(dkl.ContinuousKernelClassifier, *one) for one in OF_NETWORKS.items()]
    found += [
        (dkl.MultipleKernelClassifier, name, several[name]) for name in flags_of_family(dkl.MultipleKernelClassifier)
    ]
    found += [(dkl.MultipleKernelClassifier, *one) for one in NAMED.items()]
    found += [
        (dkl.InfiniteFeatureClassifier, name, few[name]) for name in flags_of_family(dkl.InfiniteFeatureClassifier)
    ]
    return found


@pytest.mark.parametrize(
    ("cls", "name", "values"), [pytest.param(*one, id=f"{one[0].family}-{one[1]}") for one in sweep()]
)
def test_every_parameter_of_a_family_has_a_flag_and_a_key(folder, cls, name, values, tmp_path, monkeypatch):
    """The estimator that would be fitted has the value, from either, and the family's defaults of all others."""
    asked = []
    monkeypatch.setattr("dkl.cli.fit.begin", lambda run, *_: asked.append(run))
    monkeypatch.setattr("dkl.cli.fit.finish", lambda *_, **__: None)
    flag, filed, value = values
    (tmp_path / "c.toml").write_text(f'model = "{cls.family}"\n{name} = {filed}\n')
    done(folder, "fit", "d.zarr", "m.zarr", "--config", tmp_path / "c.toml")
    done(folder, "fit", "d.zarr", "m.zarr", "--model", cls.family, "--" + name.replace("_", "-"), flag)
    by_file, by_flag = (build(json.loads(json.dumps(run))).get_params(deep=False) for run in asked)
    plain = cls(random_state=0, dtype="float32").get_params(deep=False)
    assert plain[name] != value
    assert by_file == by_flag == plain | {name: value}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_file_and_flag_reach_a_model_of_several_kernels(folder, name, tmp_path):
    """As those of one kernel; a model of one kernel has no such parameter."""
    flag, filed, value = OF_SEVERAL[name]
    (tmp_path / "c.toml").write_text(f"{name} = {filed}\n")
    words = ["--n-components", "8", "--cv", "2", "--solver-tol", "0.01", "--model", "multiple"]
    words += [] if name == "n_alphas" else ["--n-alphas", "3"]
    flags = ["--" + name.replace("_", "-"), flag]
    by_file = fit(folder, f"{name}-file.zarr", "--config", tmp_path / "c.toml", *words)
    assert by_file == fit(folder, f"{name}-flag.zarr", *flags, *words)
    assert by_file[name] == value
    assert (by_file["n_alphas"], by_file["penalty"]) == (3, "l21")
    said = dkl_in(folder, "fit", "d.zarr", "no.zarr", *flags)
    assert said.code == 1
    assert f"{name}={value!r} is no parameter of SingleKernelClassifier" in said.err


@pytest.mark.parametrize("name", FLAGS)
def test_file_and_flag_reach_the_model(folder, name, tmp_path):
    """The parameter of the fitted model is the value, from either; all others stay as they are."""
    flag, filed, value = FLAGS[name]
    config = tmp_path / "c.toml"
    config.write_text(f"{name} = {filed}\n")
    small = [] if name == "n_components" else ["--n-components", "8"]
    plain = merge({"n_components": 8, "dtype": "float32"}, None)
    by_file = fit(folder, f"{name}-file.zarr", "--config", config, *small, *with_companion(name))
    by_flag = fit(folder, f"{name}-flag.zarr", "--" + name.replace("_", "-"), flag, *small, *with_companion(name))
    assert by_file == by_flag
    assert by_file[name] == value
    others = {key for key in by_file if plain.get(key) != by_file[key]} - {*NOT_FLAGS}
    beside = {word[2:].replace("-", "_") for word in with_companion(name)[::2]}
    assert others <= {name, "n_components", *beside}
    assert plain[name] != value


def test_task_of_the_file(folder, tmp_path):
    """The task decides the estimator."""
    (tmp_path / "c.toml").write_text('task = "regression"\nn_components = 8\n')
    done(folder, "fit", "d.zarr", "task.zarr", "--config", tmp_path / "c.toml")
    assert type(dkl.load(folder / "task.zarr")).__name__ == "SingleKernelRegressor"
    done(folder, "fit", "d.zarr", "task2.zarr", "--config", tmp_path / "c.toml", "--task", "classification")
    assert type(dkl.load(folder / "task2.zarr")).__name__ == "SingleKernelClassifier"


def test_flags_win(folder, tmp_path):
    """Over the file, one by one."""
    (tmp_path / "c.toml").write_text('kernel = "laplacian"\nn-components = 8\nalpha = 3.0\n')
    params = fit(folder, "win.zarr", "--config", tmp_path / "c.toml", "--alpha", "5")
    assert (params["kernel"], params["n_components"], params["alpha"]) == ("laplacian", 8, 5.0)


def test_defaults(tmp_path):
    """Without anything."""
    options = merge({}, None)
    assert options["alpha"] == "auto"
    assert options["random_state"] == 0
    assert merge({"cv": 5, "alpha": 2.0}, None)["alpha"] == 2.0


def flags_of(names):
    """Flags of some options, as typed."""
    return [word for name in names for word in ("--" + name.replace("_", "-"), FLAGS[name][0])]


def test_written_config_round_trip(folder, tmp_path):
    """Flags go into the file; a fit with the file is a fit with the flags."""
    apart = ("cv", "skew", "reduce", "landmarks", "loss", "penalty", "solver", "learn_components")
    names = [name for name in FLAGS if name not in apart]
    done(tmp_path, "fit", "--write-config", "c.toml", *flags_of(names))
    found = read_config(str(tmp_path / "c.toml"))
    assert found == {name: FLAGS[name][2] for name in names}
    by_file = fit(folder, "round-file.zarr", "--config", tmp_path / "c.toml")
    assert by_file == fit(folder, "round-flag.zarr", *flags_of(names))


def test_written_config_of_a_config(tmp_path):
    """A file can be written from another, with more flags; flags win here too."""
    (tmp_path / "a.toml").write_text("alpha = 3.0\ncv = 4\n")
    said = done(
        tmp_path, "fit", "--config", "a.toml", "--write-config", "b.toml", "--alpha", "0.1,1", "--form", "phase"
    )
    assert "b.toml" in said
    assert read_config(str(tmp_path / "b.toml")) == {"alpha": [0.1, 1.0], "cv": 4, "form": "phase"}


def test_class_weights_round_trip(tmp_path):
    """A table of classes, whose names may be anything."""
    done(tmp_path, "fit", "--write-config", "c.toml", "--class-weight", "a b=1.5,ü=2")
    assert read_config(str(tmp_path / "c.toml")) == {"class_weight": {"a b": 1.5, "ü": 2.0}}


def test_class_weights_of_numbers_from_the_file(folder, tmp_path):
    """Keys of TOML are texts; classes 0 and 1 are numbers. What --write-config writes must be usable."""
    words = ["--class-weight", "0=1,1=3", "--n-components", "8"]
    done(tmp_path, "fit", "--write-config", "c.toml", *words)
    by_flag = fit(folder, "weight-flag.zarr", *words)
    assert by_flag["class_weight"] == {0: 1.0, 1: 3.0}
    assert fit(folder, "weight-file.zarr", "--config", tmp_path / "c.toml") == by_flag


@pytest.mark.parametrize(
    "family", [dkl.SingleKernelClassifier, dkl.MultipleKernelClassifier, dkl.InfiniteFeatureClassifier]
)
def test_uncommented_line_by_line(family, tmp_path):
    """Every option of the family has a line, a good one when its # is removed, alone and with all others."""
    lines = done(tmp_path, "fit", "--model", family.family, "--write-config", "-").splitlines()
    known = {option.name: option for option in options_of(family) if option.name not in NOT_FLAGS}
    shown = [line[2:] for line in lines if line.startswith("# ") and line[2:].split(" = ")[0] in known]
    assert len(shown) == len(known)
    for line in shown:
        (tmp_path / "one.toml").write_text(line + "\n")
        assert len(read_config(str(tmp_path / "one.toml"))) == 1
    (tmp_path / "all.toml").write_text("\n".join(shown))
    found = read_config(str(tmp_path / "all.toml"))
    assert set(found) == set(known)
    for name, option in known.items():
        assert option.default is None or found[name] == {"random_state": 0}.get(name, option.default)


def test_a_file_of_another_family(tmp_path):
    """What a family does not have is not written for it."""
    (tmp_path / "a.toml").write_text('model = "multiple"\neps = 0.1\n')
    done(tmp_path, "fit", "--config", "a.toml", "--write-config", "b.toml", "--rule", "last")
    assert read_config(str(tmp_path / "b.toml")) == {"model": "multiple", "eps": 0.1, "rule": "last"}
    said = dkl_in(tmp_path, "fit", "--config", "a.toml", "--write-config", "c.toml", "--sigma", "2")
    assert "sigma=2.0 is no option of model='multiple'; leave it out" in said.err
    assert not (tmp_path / "c.toml").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("by_output = 2", "by_output = 2 is not possible; Kernels chosen for each output"),
        ("eps = true", "eps = True is not possible"),
        ('n_alphas = "few"', "n_alphas = 'few' is not possible"),
        ("alpha = { a = 1.0 }", "alpha = {'a': 1.0} is not possible"),
        ('debias = "no"', "debias='no' must be"),
        ("model = 3", "model = 3 is not possible"),
        ('model = "several"', "model='several' is not known; use one of"),
        ('channels = { a = "0:2", b = "1:2" }', "channels 'a' and 'b' share 1 input"),
    ],
)
def test_bad_values_in_a_file(folder, line, said, tmp_path):
    """One line, and no model."""
    family = "" if line.startswith("model") else 'model = "multiple"\n'
    (tmp_path / "c.toml").write_text(f"{family}{line}\n")
    answer = dkl_in(tmp_path, "fit", folder / "d.zarr", "m.zarr", "--config", "c.toml")
    assert answer.code == 1
    assert said in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


def test_printed_config_is_the_written_one(tmp_path):
    """- prints it."""
    printed = done(tmp_path, "fit", "--write-config", "-", "--alpha", "2")
    done(tmp_path, "fit", "--write-config", "c.toml", "--alpha", "2")
    assert printed.rstrip() == (tmp_path / "c.toml").read_text().rstrip()
    assert tomllib.loads(printed) == {"alpha": 2.0}


@pytest.mark.parametrize(
    ("key", "near"),
    [("kernl", "kernel"), ("n_componets", "n_components"), ("ncomponents", "n_components"), ("sigmas", "sigma"),
     ("random-stat", "random_state"), ("intercept", "fit_intercept"), ("Alpha", "alpha"), ("weight", "class_weight")],
)  # fmt: skip
def test_unknown_keys(folder, tmp_path, key, near):
    """Refused with the nearest name, and nothing is fitted."""
    (tmp_path / "c.toml").write_text(f'"{key}" = 1\n')
    said = dkl_in(tmp_path, "fit", folder / "d.zarr", "m.zarr", "--config", "c.toml")
    assert said.code == 1
    assert f"did you mean {near!r}" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]
