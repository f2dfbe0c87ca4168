"""Options of a fit from a file and from flags: the same values, flags first."""

from __future__ import annotations

import tomllib

import pytest

import dkl
from dkl.cli.config import merge, read_config
from dkl.cli.options import MODEL
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
}
"""The same of `--model multiple`."""


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
    assert {option.name for option in MODEL} == {*FLAGS, *OF_SEVERAL, "task"}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_file_and_flag_reach_a_model_of_several_kernels(folder, name, tmp_path):
    """As those of one kernel; a model of one kernel has no such parameter."""
    flag, filed, value = OF_SEVERAL[name]
    (tmp_path / "c.toml").write_text(f"{name} = {filed}\n")
    words = ["--n-components", "8", "--cv", "2", "--solver-tol", "0.01", "--model", "multiple:n_alphas=3,debias=yes"]
    flags = ["--" + name.replace("_", "-"), flag]
    by_file = fit(folder, f"{name}-file.zarr", "--config", tmp_path / "c.toml", *words)
    assert by_file == fit(folder, f"{name}-flag.zarr", *flags, *words)
    assert by_file[name] == value
    assert (by_file["n_alphas"], by_file["debias"], by_file["penalty"]) == (3, True, "l21")
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
    plain = {k: v for k, v in merge({"n_components": 8, "dtype": "float32"}, None).items() if k not in OF_SEVERAL}
    by_file = fit(folder, f"{name}-file.zarr", "--config", config, *small, *with_companion(name))
    by_flag = fit(folder, f"{name}-flag.zarr", "--" + name.replace("_", "-"), flag, *small, *with_companion(name))
    assert by_file == by_flag
    assert by_file[name] == value
    others = {key for key in plain if key != "task" and plain[key] != by_file[key]}
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


def test_uncommented_line_by_line(tmp_path):
    """Every line that shows a default is a good line when its # is removed, alone and with all others."""
    lines = done(tmp_path, "fit", "--write-config", "-").splitlines()
    names = {option.name for option in MODEL}
    shown = [line[2:] for line in lines if line.startswith("# ") and line[2:].split(" = ")[0] in names]
    assert len(shown) == len(names)
    for line in shown:
        (tmp_path / "one.toml").write_text(line + "\n")
        assert len(read_config(str(tmp_path / "one.toml"))) == 1
    (tmp_path / "all.toml").write_text("\n".join(shown))
    found = read_config(str(tmp_path / "all.toml"))
    assert set(found) == names
    for option in MODEL:
        assert option.default is None or found[option.name] == option.default


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
