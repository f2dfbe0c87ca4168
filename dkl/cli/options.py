"""Every option of the estimators, once: as a flag, as a key of the configuration, and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from dkl.checks import check_choice
from dkl.features.landmark_weights import LANDMARKS
from dkl.kernels import KERNELS

TASKS = ("classification", "regression")
LEARN = ("none", "validation", "cv", "gcv", "joint", "log_loss", "frequencies")


class Option(NamedTuple):
    """One option: its default here, what it takes, and how a flag's text becomes its value."""

    name: str
    default: Any
    about: str
    parse: Callable[[str], Any]
    choices: tuple[str, ...] | None = None


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _numbers(text: str) -> Any:
    values = [_number(word) for word in text.split(",")]
    return values if len(values) > 1 or text.endswith(",") else values[0]


def _sigma(text: str) -> Any:
    return text if text == "scale" else _numbers(text)


def _alpha(text: str) -> Any:
    return text if text == "auto" else _numbers(text)


def _groups(text: str) -> Any:
    words = text.split(",")
    return [int(word) for word in words] if all(word.strip().isdigit() for word in words) else text


def _class_weight(text: str) -> Any:
    if "=" not in text:
        return text
    return {_label(name): float(value) for name, _, value in (word.partition("=") for word in text.split(","))}


def _label(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text


def _axes(text: str) -> float | str:
    if text == "mle":
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def _share(text: str) -> Any:
    return {"auto": "auto", "none": 0.0}.get(text) if text in ("auto", "none") else _number(text)


def _yes(text: str) -> bool:
    return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]


MODEL = (
    Option("task", None, "classification or regression (the data set's).", str, TASKS),
    Option("kernel", "gaussian", f"{', '.join(list(KERNELS)[:2])} ... ({len(KERNELS)}).", str, tuple(KERNELS)),
    Option("n_components", 1000, "Number of random features.", int),
    Option("sigma", "scale", "Frequency scale: scale, or numbers: 0.5,2.", _sigma),
    Option("groups", None, "What shares a sigma: each, channel, or 0,0,1.", _groups),
    Option("frequencies", "orthogonal", "orthogonal, iid or quasi.", str, ("orthogonal", "iid", "quasi")),
    Option("form", "paired", "paired (cosine and sine) or phase.", str, ("paired", "phase")),
    Option("skew", 1.0, "Constant of the skewed kernels.", _number),
    Option("n_terms", 5, "Terms for each input of the exp_ kernels.", int),
    Option("landmarks", None, "Nystroem instead: uniform, kmeans++, leverage.", str, LANDMARKS),
    Option("alpha", "auto", "Ridge penalty, or the list of --cv: 0.1,1.", _alpha),
    Option("cv", None, "Choose alpha, or --learn cv, by so many folds.", int),
    Option("learn", "none", f"Learn sigma: {', '.join(LEARN[1:3])} ... ({len(LEARN)}).", str, LEARN),
    Option("validation", 0.2, "Share of rows that validation holds out.", _number),
    Option("sigma_l1", 0.0, "Penalty that switches inputs off.", _number),
    Option("sigma_l2", 0.0, "Penalty on squares of sigma.", _number),
    Option("starts", 3, "Learn from so many starts, on few rows.", int),
    Option("subsample", None, "Share of the blocks to learn on (all).", _number),
    Option("max_iter", 50, "Iterations of each start and stage.", int),
    Option("tol", 0.001, "Relative decrease that ends learning.", _number),
    Option("max_time", None, "Seconds of learning (no limit).", _number),
    Option("early_stopping", "auto", "Share of unseen rows to stop on, or none.", _share),
    Option("reduce", None, "Principal axes to keep: 500, 0.9 (a share), mle.", _axes),
    Option("fit_intercept", True, "yes or no.", _yes),
    Option("class_weight", None, "balanced, or a weight per class: a=1,b=5.", _class_weight),
    Option("calibrate", None, "Level classes by their k-th highest score: 500.", int),
    Option("random_state", 0, "Seed of frequencies and folds.", int),
    Option("dtype", None, "float32 (unless the data are float64) or float64.", str, ("float32", "float64")),
    Option("place", "scheduler", "Who solves: scheduler or client.", str, ("scheduler", "client")),
)
BY_NAME = {option.name: option for option in MODEL}


class _Value(click.ParamType):
    """A flag's text, parsed by its option."""

    def __init__(self, option: Option) -> None:
        self.option, self.name = option, option.name

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value, or a refusal that says what to type."""
        if not isinstance(value, str):
            return value
        try:
            if self.option.choices:
                return check_choice(self.name, value, self.option.choices)
            return self.option.parse(value)
        except (ValueError, KeyError) as error:
            said = str(error) if self.option.choices else f"{value!r} is not possible; {self.option.about}"
            self.fail(said, param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Choices that begin with what has been typed."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(choice) for choice in self.option.choices or () if choice.startswith(incomplete)]


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a flag for each option; those that are not given arrive as None."""
    for option in reversed(MODEL):
        flag = "--" + option.name.replace("_", "-")
        shown = option.about if option.default is None else f"{option.about[:-1]} [{_shown(option.default)}]."
        function = click.option(flag, option.name, type=_Value(option), metavar="VALUE", help=shown)(function)
    return function


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else f"{value}"


def check_value(name: str, value: Any) -> Any:
    """A value from a configuration file, or a ValueError."""
    option = BY_NAME[name]
    if name == "class_weight" and isinstance(value, dict):
        return {_label(label): weight for label, weight in value.items()}
    if not isinstance(value, (str, bool, int, float, list)):
        raise ValueError(f"{name} = {value} is not possible; {option.about}")
    if option.choices:
        return check_choice(name, value, option.choices)
    wanted = type(option.default)
    if isinstance(value, bool) != (wanted is bool) or (wanted is int and not isinstance(value, int)):
        raise ValueError(f"{name} = {value!r} is not possible; {option.about}")
    return value
