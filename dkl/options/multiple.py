"""Parameters of the estimators of several kernels: which, of which inputs, and how few of them."""

from __future__ import annotations

from typing import Any

from dkl.checks import check_choice, check_positive
from dkl.options import parse, rules
from dkl.options.option import Option
from dkl.prepare.kernel_maps import named_kernels
from dkl.solvers.group_norms import GROUP_PENALTIES

RULES = ("best", "one_se", "last")
"""Which alpha of a path the model has."""


def _kernels(name: str, value: Any) -> None:
    """Names with sigma, in a list or a dict."""
    named_kernels(value)


def _penalty(name: str, value: Any) -> None:
    """A penalty of groups, perhaps with a ridge beside it."""
    penalty_of(value)


def penalty_of(text: Any) -> tuple[str, float]:
    """The penalty, and the ridge behind the colon of "l21:ridge=0.5"; 0 if there is none."""
    name, colon, rest = str(text).partition(":")
    check_choice("penalty", name, GROUP_PENALTIES)
    if not colon:
        return name, 0.0
    key, _, value = rest.partition("=")
    try:
        if key == "ridge" and name != "l2":
            return name, check_positive("ridge", float(value))
    except ValueError:
        pass
    raise ValueError(
        f"penalty={text!r}: behind the colon of l21 and l1linf stands ridge, a number above 0, e.g. l21:ridge=0.5"
    )


def _debias(name: str, value: Any) -> None:
    """yes, no, or the alpha of a ridge."""
    if isinstance(value, bool):
        return
    check_positive(name, value)


def _share(name: str, value: Any) -> None:
    """A number between 0 and 1."""
    if check_positive(name, value) >= 1:
        raise ValueError(f"{name}={value!r} must be between 0 and 1: the last alpha over the first, e.g. 0.001")


MULTIPLE = (
    Option(
        "kernels", None, "Kernels: gaussian:0.5,gaussian:scale*2,laplacian.", takes="list or dict", parse=parse.kernels,
        optional=True, rule=_kernels, sample=["gaussian:0.5", "gaussian:2", "laplacian"],
        doc='Names, with sigma behind a colon or in a pair: ["gaussian:0.5", ("gaussian", "scale*2"), "laplacian"]. '
        'sigma is a number, one for each input of a channel, or a multiple of "scale", about one over the spread of '
        "the channel; a name alone has the scale. A dict gives names of its own. Each kernel is taken on each channel. "
        "None: gaussian at 1/4, 1/2, 1, 2 and 4 times the scale.",
    ),
    Option(
        "channels", None, "Inputs that belong together: channel, 0:3,3:6.", takes="str, dict or list",
        parse=parse.channels, optional=True, sample="channel",
        doc='The name of an xarray coordinate of the inputs, a label for each input, slices or lists of columns, a '
        'dict of these with names, or "each". They must not overlap; an input of no channel is not used. X may be a '
        "list of arrays instead, each a channel. None: one channel of all inputs.",
    ),
    Option(
        "per_channel", None, "Principal axes kept of each kernel.", takes='int, float or "mle"', parse=parse.axes,
        optional=True, rule=rules.axes, sample=0.99,
        doc="Of each kernel on each channel, found in a pass of its own before that of the weights, so that the gram "
        "of all features is never formed. A number of axes, or the share of variance they must explain. Every "
        "row counts once, whatever it weighs. If all are kept, the weights are the same.",
    ),
    Option(
        "rule", "best", "Which alpha: best, one_se or last.", choices=RULES,
        doc='"best": of the least mean error over the folds. "one_se": the largest whose error is within a standard '
        'error of that, with fewer kernels. "last": the least alpha, without folds.',
    ),
    Option(
        "n_alphas", 50, "Number of alphas on the path.", takes="int", parse=int, rule=rules.count,
        doc="They fall in equal ratios from the least at which all weights are zero.",
    ),
    Option(
        "eps", 0.001, "Length of the path: last alpha over first.", takes="float", parse=parse.number, rule=_share,
        doc="As in sklearn.linear_model.LassoCV.",
    ),
    Option(
        "by_output", False, "Kernels chosen for each output: yes or no.", takes="bool", parse=parse.yes,
        rule=rules.yes_or_no,
        doc="False: a kernel is used by all outputs (or classes), or by none. True: each has a path of its own.",
    ),
    Option(
        "debias", False, "Ridge anew on the chosen kernels: yes.", takes="bool or float",
        parse=parse.yes_or_number, rule=_debias,
        doc="The weights of the kernels that the path has chosen are computed anew by ridge regression, with that "
        "alpha; True: with the best by the folds (1 without folds). Other losses: by that loss with l2, True is 1. "
        "kernel_weights_ and path_ stay as they are.",
    ),
)  # fmt: skip

GROUP_PENALTY = Option(
    "penalty", "l21", "Penalty of groups, e.g. l21:ridge=0.1.", takes="str", rule=_penalty,
    doc='"l21": the sum of the lengths of the weights of each group, which leaves groups out. "l1linf": of '
    'their largest weights, likewise. "l2": half the sum of squares, which leaves no group out. Behind a colon a share '
    'of half the squares beside the others: "l21:ridge=0.1", which spreads the weights over alike groups.',
)  # fmt: skip
"""In place of the penalty of single features."""

LEARN_SEVERAL = Option(
    "learn", "none", "Objective for sigma, e.g. cv or joint.", choices=("none", "joint", "validation", "cv"),
    optional=True,
    doc='"none" (or None): every sigma is kept. Otherwise the sigma of each kernel on each channel is learned together '
    'with the weights. "joint": the penalised loss itself, at an alpha that is given; any loss. "validation": squared '
    'error on held-out rows. "cv": on each fold in turn. These learn alpha too if it is "auto"; after "cv" the path is '
    "followed anew at the learned sigmas.",
)  # fmt: skip
GROUPS_OF_SEVERAL = Option(
    "groups", None, "Inputs that share a learned sigma: each.", choices=("each",), optional=True,
    sample="each",
    doc='None: all inputs of a kernel. "each": every input of every kernel has its own.',
)  # fmt: skip
"""In place of those of one kernel."""
