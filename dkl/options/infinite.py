"""Parameters of the estimators with infinitely many features: how many are kept, and how they are looked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice, check_count
from dkl.learn.sparsity import KINDS, Sparsity
from dkl.options import parse, rules
from dkl.options.option import Option
from dkl.prepare.candidates import read_bandwidths

SOLVERS = ("auto", "newton", "admm")
"""How the weights of a round are found."""


def _bandwidths(name: str, value: Any) -> None:
    """Factors of sigma."""
    read_bandwidths(value)


def _per_round(name: str, value: Any) -> None:
    """A number, or "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ["auto"])
    else:
        check_count(name, value)


def _tasks(name: str, value: Any) -> None:
    """The name of an input, or its number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, np.integer)):
        raise ValueError(f"tasks={value!r} is no name or number of an input; labels of the rows go to fit(tasks=...)")


def _penalty(name: str, value: Any) -> None:
    """A penalty that makes zeros, perhaps with a ridge beside it."""
    sparsity_of(value)


def sparsity_of(text: Any) -> Sparsity:
    """The penalty that a text names; "l21:ridge=0.1" has half the squares beside it, "shared:ratio=1.5" a ratio."""
    kind, colon, rest = str(text).partition(":")
    check_choice("penalty", kind, KINDS)
    known, given = ("ridge", "ratio") if kind == "shared" else ("ridge",), {}
    for word in rest.split(",") if colon else []:
        key, _, value = word.partition("=")
        try:
            if key not in known or key in given or not 0 < float(value) < float("inf"):
                raise ValueError(word)
            given[key] = float(value)
        except ValueError:
            raise ValueError(
                f"penalty={text!r}: behind the colon stands {' or '.join(known)}, a number above 0, e.g. "
                f"{kind}:{known[-1]}=1.5"
            ) from None
    return Sparsity(kind, **given)


def _share(name: str, value: Any) -> None:
    """A share of the rows, a mask, or "auto"."""
    if isinstance(value, str):
        check_choice(name, value, ["auto"])
    else:
        rules.held_share(name, value)


INFINITE = (
    Option(
        "max_features", 100, "Most features kept.", takes="int", parse=int, rule=rules.count,
        doc="A feature is a frequency: a cosine and a sine (form='paired'), or one cosine with a phase.",
    ),
    Option(
        "bandwidths", "0.1:3", "Factors of sigma of the candidates.", takes="float, list or str",
        rule=_bandwidths,
        doc='"0.1:3": each candidate draws its own, log-uniformly: many kernels at once. A list: candidates of each '
        "are drawn. 1: sigma itself, one kernel.",
    ),
    Option(
        "candidates", 59, "Candidates of a round.", takes="int", parse=int, rule=rules.count,
        doc="For each value of a list of bandwidths. The best of 59 is among the best 5 % of all with a probability of "
        "95 %.",
    ),
    Option(
        "per_round", "auto", "Most features that a round adds.", takes='int or "auto"',
        parse=lambda text: text if text == "auto" else int(text), rule=_per_round,
        doc='"auto": a tenth of max_features, from 1 to 10.',
    ),
    Option(
        "improve", 0, "Gradient steps of new features.", takes="int", parse=int, rule=rules.whole,
        doc="The best candidates of a round take so many steps uphill before they are added, one pass each: fewer "
        "features are needed for the same accuracy.",
    ),
    Option(
        "tasks", None, "Input that says the task of a row.", takes="str or int", optional=True, rule=_tasks,
        sample="site",
        doc="Its name or number. Each task has its own weights, of features that all may share; the penalty 'shared' "
        "splits them into a part of all tasks and one of each. None: one task, or labels of rows in fit(tasks=...).",
    ),
)  # fmt: skip
"""Those that have flags."""

SPARSITY = Option(
    "penalty", "l21", "Penalty of the weights, e.g. l21:ridge=0.1.", takes="str", rule=_penalty,
    doc='"l21": the sum of the lengths of the weights of each feature, over its cosine and sine and all outputs. '
    '"l1linf": of their largest weights. "l1": of the sizes of all of them. Behind a colon a share of half the squares '
    'beside it: "l21:ridge=0.1". "shared": outputs are tasks, and a weight is a part that all share and one of each; a '
    'shared part costs as much as `ratio` of those ("shared:ratio=1.5"; by default the fourth root of the number of '
    "outputs). They are shared_coef_ and task_coef_.",
)  # fmt: skip
HELD_OUT = Option(
    "validation", "auto", "Share of rows held out.", takes='float, boolean mask or "auto"',
    parse=parse.number_or("auto"), optional=True, rule=_share,
    doc='These rows choose alpha, and end the rounds once their mean loss falls no more. "auto": 0.2 if alpha is to be '
    "chosen, else none. The last weights are those of all rows.",
)  # fmt: skip
SOLVER = Option(
    "solver", "auto", "How the weights of a round are found.", choices=SOLVERS,
    doc='"auto": squared errors from the gram of one pass, other losses by proximal Newton steps, a pass for each. '
    '"newton": these for every loss. "admm": the alternating direction method of multipliers, whose passes are many, '
    "and make no gram.",
)  # fmt: skip
"""In place of those of the table."""
