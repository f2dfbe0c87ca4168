"""The options of the estimators as flags, and their values in a configuration file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from dkl.checks import check_choice
from dkl.options.continuous import CONTINUOUS
from dkl.options.feature_maps import FEATURE_MAP
from dkl.options.infinite import HELD_OUT, INFINITE, SOLVER
from dkl.options.learning import LEARNING
from dkl.options.multiple import MULTIPLE
from dkl.options.option import Option
from dkl.options.parse import label
from dkl.options.running import RUNNING

TASKS = ("classification", "regression")
TASK = Option("task", None, "classification or regression (the data set's).", choices=TASKS, sample="classification")
SINGLE = "single"
"""The family of SingleKernelRegressor and SingleKernelClassifier, whose defaults are those of the table."""
FAMILY = Option("model", SINGLE, "Family; its flags: --model multiple -h.", takes="str")
NOT_FLAGS = ("checkpoint", "verbose", "max_rows", "features", "warm_start")
"""The command line keeps checkpoints by itself, is silent where nobody watches, names kernels, and fits once."""
DEFAULTS = {"random_state": 0}
"""Where the command line differs: a fit can be repeated."""

WIDER = {option.name: option for option in (HELD_OUT, SOLVER)}
"""Options of one family that take more than those of the same name of the others."""


def _flag_of(option: Option) -> Option:
    """With the default of the command line; it takes what any family does, and the estimator refuses the rest."""
    default = DEFAULTS.get(option.name, option.default)
    if option.name not in WIDER:
        return replace(option, default=default)
    wider = WIDER[option.name]
    choices = tuple(dict.fromkeys((*(option.choices or ()), *(wider.choices or ())))) or None
    return replace(option, default=default, parse=wider.parse, choices=choices)


MODEL = (
    FAMILY,
    TASK,
    *(
        _flag_of(option)
        for option in (*FEATURE_MAP, *LEARNING, *MULTIPLE, *INFINITE, *CONTINUOUS, *RUNNING)
        if option.name not in NOT_FLAGS
    ),
)
"""Family, task and the parameters of the families; help and completion need not import the estimators."""
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
            why = str(error)
            known = f": {why}" if why.startswith(self.name) else f"; {self.option.about}"
            self.fail(why if self.option.choices else f"{value!r} is not possible{known}", param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Choices that begin with what has been typed."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(choice) for choice in self.option.choices or () if choice.startswith(incomplete)]


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a flag for each option; those that are not given arrive as None."""
    for option in reversed(MODEL):
        words = {"type": _Value(option), "metavar": "VALUE", "help": about_of(option)}
        function = click.option(option.flag, option.name, is_eager=option is FAMILY, **words)(function)
    return function


def about_of(option: Option) -> str:
    """What a flag does, and its default."""
    return option.about if option.default is None else f"{option.about[:-1]} [{_shown(option.default)}]."


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else f"{value}"


EXACT = {"bool": bool, "int": int, "str": str}
"""Types of a file's values, by what an option takes."""


def check_value(name: str, value: Any) -> Any:
    """A value from a configuration file, or a ValueError."""
    option = BY_NAME[name]
    if name == "class_weight" and isinstance(value, dict):
        return {label(key): weight for key, weight in value.items()}
    if option.choices:
        return check_choice(name, value, option.choices)
    takes = option.takes
    known = isinstance(value, (str, bool, int, float, list)) or (isinstance(value, dict) and "dict" in takes)
    exact = EXACT.get(takes, int if type(option.default) is int else object)
    if not known or not isinstance(value, exact) or (isinstance(value, bool) and "bool" not in takes):
        raise ValueError(f"{name} = {value!r} is not possible; {option.about}")
    return value
