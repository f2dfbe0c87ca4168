"""Parameters of a random search over networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dkl.checks import check_count, check_positive
from dkl.learn.distributions import NUMBER, distributions
from dkl.options import parse
from dkl.options.option import Option


def _search(name: str, value: Any) -> None:
    """A number of candidates, or distributions by name."""
    if not isinstance(value, Mapping):
        check_count(name, value)
        return
    if NUMBER in value:
        check_count(f"{name}: {NUMBER}", value[NUMBER])
    distributions(value)


def _eta(name: str, value: Any) -> None:
    """A number above 1."""
    if check_positive(name, value) <= 1:
        raise ValueError(f"{name}={value!r} must be above 1: one of so many goes on; None drops none")


def search(text: str) -> int | dict[str, Any]:
    """100, or candidates=50,learning_rate=1e-4:0.1:log,n_components=32|64."""
    if "=" not in text:
        return int(text)
    found: dict[str, Any] = dict(word.split("=") for word in parse.words(text))
    if NUMBER in found:
        found[NUMBER] = int(found[NUMBER])
    _search("search", found)
    return found


SEARCHING = (
    Option(
        "search", None, "Candidates of a random search, e.g. 100.", takes="int or dict", parse=search, optional=True,
        rule=_search, sample=100,
        doc="So many networks are trained side by side in the same passes over the rows. A number draws n_components "
        "(16 to 256), variance (2^-6 to 1), learning_rate (1e-5 to 0.2) and decay (1e-6 to 1e-2), each evenly in the "
        "logarithm. variance is that of the frequencies at the start, over the one that sigma says: with sigma=1 it "
        'is the variance itself. A dict draws what it names, and max_norm: (low, high), (low, high, "log"), a list, or '
        'a frozen distribution of scipy.stats; "candidates" is their number (100). On the command line: '
        "candidates=50,learning_rate=1e-4:0.1:log,n_components=32|64. The best candidate is the one with the least "
        "held-out loss: of the rows of `validation`, and the model is that network at its best epoch; or with cv the "
        "mean over the folds. search_results_ has a row for each candidate.",
    ),
    Option(
        "halving", 3.0, "One of so many candidates goes on at a rung.", takes="float", parse=parse.number,
        optional=True, rule=_eta,
        doc="Successive halving: after about 300 steps (20 epochs at most), and each time after halving times as many "
        "epochs, the best 1 / halving of the candidates go on. None: all are trained until patience ends them.",
    ),
)  # fmt: skip
