"""dkl.compare: models side by side on the same rows, with intervals of their scores and of the paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice
from dkl.estimators.intervals import Interval, mean_interval, quantile, share_difference
from dkl.estimators.rows_right import RowErrors, row_errors

COLUMNS = ("model", "score", "low", "high", "difference", "difference_low", "difference_high", "verdict")


@dataclass(frozen=True)
class Compared:
    """One model's score, and its difference from the reference; None of the reference itself."""

    name: str
    score: Interval
    difference: Interval | None

    @property
    def verdict(self) -> str:
        """What the difference says."""
        if self.difference is None:
            return "reference"
        return "better" if self.difference.low > 0 else "worse" if self.difference.high < 0 else "not told apart"


@dataclass(frozen=True)
class Comparison:
    """What dkl.compare found; print it, plot it, or take `table`, a pandas DataFrame."""

    metric: str
    rows: int
    confidence: float
    models: tuple[Compared, ...]

    @property
    def table(self) -> Any:
        """A line for each model, the best first."""
        import pandas as pd

        none = (float("nan"),) * 3
        return pd.DataFrame(
            [(one.name, *one.score, *(none if one.difference is None else one.difference), one.verdict)
             for one in self.models], columns=list(COLUMNS),
        )  # fmt: skip

    @property
    def reference(self) -> str:
        """The model that the others are compared with."""
        return next(one.name for one in self.models if one.difference is None)

    def _lines(self) -> list[tuple[str, str, str, str]]:
        """Of every model: name, score, difference, verdict, in words."""
        return [
            (
                one.name,
                in_words(one.score),
                "" if one.difference is None else in_words(one.difference, "+"),
                one.verdict,
            )
            for one in self.models
        ]

    def __str__(self) -> str:
        head = ("model", self.metric, f"less {self.reference}", "")
        lines = [head, *self._lines()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        rows = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*rows, f"{self.rows:,} rows, intervals of {self.confidence:.0%}, differences paired by row"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The lines as a table, for a notebook's cell."""
        head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in
                       ("model", self.metric, f"less {self.reference}", ""))  # fmt: skip
        body = "".join(
            f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in line)}</tr>"
            for line in self._lines()
        )
        foot = f"{self.rows:,} rows, intervals of {self.confidence:.0%}, differences paired by row"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><small>{foot}</small>"

    def plot(self, ax: Any = None) -> Any:
        """dkl.plot.plot_compare of it."""
        import dkl

        return dkl.plot.plot_compare(self, ax=ax)


def in_words(span: Interval, sign: str = "") -> str:
    """A figure with its bounds."""
    return f"{span.value:{sign}.4f} ({span.low:{sign}.4f} to {span.high:{sign}.4f})"


def compare(
    models: Sequence[Any] | Mapping[str, Any], X: Any, y: Any = None, *, reference: str | None = None,
    confidence: float = 0.95,
) -> Comparison:  # fmt: skip
    """Accuracy (of regressors R^2) of fitted models on the same rows, the best first, with intervals.

    The differences are paired: of each row, what one model makes of it less what the reference makes of it, so that
    rows that are hard for both cancel. They can be far surer than the scores themselves. Several models need several
    looks: of twenty alike, one is expected to fall outside its interval of 95%.

    models : fitted estimators, of dkl or of scikit-learn, as a list or by name.
    X, y : rows that no model was fitted to. A data set or a path brings its own y.
    reference : the name of the model that the others are compared with; None takes the best.
    """
    named = _named(models)
    quantile(confidence)
    kinds = {is_classifier(model): name for name, model in named.items()}
    if len(kinds) > 1:
        raise ValueError(f"{kinds[True]} is a classifier, {kinds[False]} a regressor; compare models of the same task")
    errors = {name: row_errors(model, X, y) for name, model in named.items()}
    order = sorted(errors, key=lambda name: -errors[name].score)
    base = order[0] if reference is None else check_choice("reference", reference, errors)
    found = tuple(
        Compared(name, errors[name].interval(confidence),
                 None if name == base else difference(errors[name], errors[base], confidence)) for name in order
    )  # fmt: skip
    first = errors[base]
    return Comparison("accuracy" if first.right is not None else "R^2", first.rows, confidence, found)


def difference(one: RowErrors, other: RowErrors, confidence: float) -> Interval:
    """Score of one less that of the other, paired by row."""
    if one.right is not None and other.right is not None:
        return share_difference(one.right, other.right, confidence)
    return mean_interval(one.score - other.score, one.influence - other.influence, confidence)


def _named(models: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Models by name: that of their class, and the parameters in which they differ."""
    if hasattr(models, "predict"):
        raise ValueError(f"compare takes several models, not one {type(models).__name__}; give a list of them")
    if len(models) < 2:
        raise ValueError(f"compare takes two models or more, not {len(models)}")
    if not isinstance(models, Mapping):
        names = _names(list(models))
        models = dict(zip(names, models, strict=True))
    for name, model in models.items():
        if not hasattr(model, "predict"):
            raise ValueError(f"{name!r} is a {type(model).__name__}, which does not predict; give fitted models")
        check_is_fitted(model)
    return {str(name): model for name, model in models.items()}


def _names(models: list[Any]) -> list[str]:
    """One for each model, all different."""
    params = [model.get_params(deep=False) if hasattr(model, "get_params") else {} for model in models]
    names = []
    for model, own in zip(models, params, strict=True):
        alike = [p for m, p in zip(models, params, strict=True) if type(m) is type(model)]
        differ = [
            f"{key}={value!r}" for key, value in own.items()
            if isinstance(value, (str, int, float, type(None))) and any(repr(p.get(key)) != repr(value) for p in alike)
        ]  # fmt: skip
        what = ", ".join(differ)
        names.append(what if what and len(alike) == len(models) else type(model).__name__ + f"({what})" * bool(what))
    return [name if names.count(name) == 1 else f"{name} {names[: i + 1].count(name)}" for i, name in enumerate(names)]
