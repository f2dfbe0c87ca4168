"""A report: the parts are gathered, then the template makes one file of them."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.estimators.in_notebooks import rows_of
from dkl.report.checks import LOOK, UNKNOWN, checks_of
from dkl.report.facts import facts_of, recipe_of, script_safe, short, took_of
from dkl.report.figures import figures_of
from dkl.report.splits import Scored, scored, splits_of, worst_classes

SHORT = 6
"""Letters of a label that fits above a column; longer ones have numbers."""
WORST = 12
"""Classes of the tables of classes."""


class Report:
    """One page about a model: `html` is the whole file, `facts` its plain values."""

    def __init__(self, html: str, facts: dict[str, Any]) -> None:
        self.html, self.facts = html, facts

    def save(self, path: Any, overwrite: bool = True) -> str:
        """Write the file; returns its path."""
        place = check_path(path, overwrite)
        place.write_text(self.html, encoding="utf-8")
        return str(place)

    def __repr__(self) -> str:
        return f"Report of {len(self.html) / 1000:,.0f} kB; .save('report.html') writes it"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose scripts are off."""
        return f'<iframe sandbox srcdoc="{escape(self.html)}" style="width:100%;height:640px;border:0"></iframe>'


def make_report(
    model: Any, X: Any = None, y: Any = None, *, train: Any = None, title: str | None = None, command: str | None = None
) -> Report:  # fmt: skip
    """A report about a fitted model that predicts.

    X, y : rows to try it on; a path of a data set brings its own y and its splits, a dictionary gives rows by name.
    train : the rows that the model was fitted to, as (X, y) or a path, to see what is lost on new ones.
    title, command : what stands on top, and what made the model; None takes the name of the class and its parameters.
    """
    check_is_fitted(model)
    if not hasattr(model, "evaluate") or not hasattr(model, "coef_"):
        raise ValueError(f"a report is about a model that predicts, and {type(model).__name__} does not; see dkl.plot")
    given = splits_of(X, y, train)
    splits = [scored(model, name, *rows) for name, rows in given.items()]
    last = splits[-1] if splits else None
    checks, command = checks_of(model, splits), command or f"{_python(model)}.fit(X, y)"
    facts = facts_of(model, splits, checks, command)
    html = _template().render(
        title=title or type(model).__name__, summary=rows_of(model), checks=checks, verdict=_verdict(checks, last),
        splits=splits, names=_figure_names(splits), worst=_worst(last), last=last, matrix=_matrix(last), short=short,
        figures=figures_of(model, None if last is None else last.evaluation), took=took_of(model, _plan(model, given)),
        recipe=recipe_of(model), command=command, version=facts["dkl"], json=script_safe(facts), figure=_figure,
        look=LOOK, unknown=UNKNOWN,
    )  # fmt: skip
    return Report(html, facts)


def _template() -> Any:
    """The template, with every value escaped."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(f"a report is made with jinja2 ({error}); pip install 'dkl[report]'") from None
    loader = PackageLoader("dkl.report", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True).get_template("report.html")  # fmt: skip


def _python(model: Any) -> str:
    """The estimator as one types it, with what differs from its defaults."""
    defaults = type(model)().get_params(deep=False)
    params = model.get_params(deep=False)
    differ = [f"{name}={value!r}" for name, value in params.items() if repr(value) != repr(defaults.get(name))]
    return f"dkl.{type(model).__name__}({', '.join(differ)})"


def _verdict(checks: list[Any], last: Scored | None) -> str:
    """One sentence on top."""
    looks = [number for number, one in enumerate(checks, 1) if one.status == LOOK]
    known = sum(one.status != UNKNOWN for one in checks)
    score = "No rows were given to try the model on."
    if last is not None:
        name, span = ("accuracy", last.score) if last.evaluation else ("R²", last.score)
        score = (
            f"{name[0].upper()}{name[1:]} {span.value:.4f} ({span.low:.4f} to {span.high:.4f}) on {last.rows:,} rows."
        )
    if not looks:
        return f"{score} All {known} checks that apply are fine."
    which = ", ".join(map(str, looks[:-1])) + (" and " if len(looks) > 1 else "") + str(looks[-1])
    return f"{score} Look at check{'s' * (len(looks) > 1)} {which} of {len(checks)}."


def _figure_names(splits: list[Scored]) -> list[str]:
    """Every figure that some split has, in order."""
    return list(dict.fromkeys(name for one in splits for name in one.figures))


def _figure(value: float) -> str:
    """A figure for a person."""
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1000 or value == 0 else f"{value:.4g}"


def _worst(last: Scored | None) -> list[dict[str, Any]]:
    """The classes of the lowest recall."""
    return [] if last is None or last.evaluation is None else worst_classes(last.evaluation, WORST)


def _matrix(last: Scored | None) -> list[tuple[str, str, list[tuple[int, float]]]]:
    """The confusion of the worst classes among themselves: head of the column, label, counts and shares of the row."""
    if last is None or last.evaluation is None:
        return []
    confusion = np.asarray(last.evaluation["confusion"])
    worst = _worst(last)
    chosen = sorted(one["number"] for one in worst)
    short_ones = all(len(str(one["class"])) <= SHORT for one in worst)
    rows = []
    for place, i in enumerate(chosen, 1):
        total = max(1, int(confusion[i].sum()))
        label = str(last.evaluation["classes"][i]["class"])
        head = label if short_ones else f"#{place}"
        rows.append((head, label, [(int(confusion[i, j]), float(confusion[i, j]) / total) for j in chosen]))
    return rows


def _plan(model: Any, given: dict[str, tuple[Any, Any]]) -> Any:
    """What a fit to the first rows would need, without measuring the machine."""
    if not given:
        return None
    X, y = next(iter(given.values()))
    fresh = type(model)(**model.get_params(deep=False))
    try:
        return fresh.plan(X, y, calibrate=False)
    except (ValueError, MemoryError):  # these rows are for predictions alone
        return None


def check_path(path: Any, overwrite: bool = True) -> Path:
    """Where a report may be written; refused before anything is read."""
    place = Path(os.fspath(path))
    if place.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a report is HTML, and {str(place)!r} does not end in .html; use {place.stem}.html")
    if place.exists() and not overwrite:
        raise FileExistsError(f"{str(place)!r} exists; choose another name or use --overwrite")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(place.parent)!r} for the report; make it first")
    return place
