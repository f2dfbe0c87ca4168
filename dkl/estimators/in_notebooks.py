"""What a fitted estimator says of itself: text for a terminal, a table under scikit-learn's diagram for a notebook.

Every name comes from the user's data, so each is escaped before it stands in HTML.
"""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from dkl.estimators.summary import lines, plain, summary, told

MOST_LETTERS = 400
"""Of one line in a notebook."""
STYLE = (
    ".dkl-summary{font:13px/1.45 system-ui,sans-serif;margin:.5em 0;border-collapse:collapse}"
    ".dkl-summary th{text-align:right;vertical-align:top;font-weight:600;opacity:.75;padding:1px .8em 1px 0}"
    ".dkl-summary td{text-align:left;padding:1px 0;max-width:60em;overflow-wrap:anywhere}"
)


class Text(str):
    """A text that a notebook's cell shows as it is, not in quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def rows_of(model: Any) -> list[tuple[str, str]]:
    """Names and values of the lines about a fitted estimator."""
    check_is_fitted(model)
    if hasattr(model, "coef_") and hasattr(model, "features_"):
        return lines(summary(model))
    simple = (str, int, float, bool)
    params = {name: value for name, value in model.get_params(deep=False).items() if isinstance(value, simple)}
    rows = [("estimator", type(model).__name__), ("inputs", f"{model.n_features_in_:,}")]
    rows += [(name.replace("_", " "), plain(value)) for name, value in told(model).items()]
    return [*rows, ("parameters", plain(params))]


def text_of(model: Any) -> str:
    """The lines, one below the other."""
    rows = rows_of(model)
    width = max(len(name) for name, _ in rows)
    return Text("\n".join(f"{name:>{width}}  {value}" for name, value in rows))


def html_of(model: Any) -> str:
    """The lines as a table; nothing of an estimator that is not fitted."""
    try:
        rows = rows_of(model)
    except NotFittedError:
        return ""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(_short(value))}</td></tr>" for name, value in rows)
    return f'<style>{STYLE}</style><table class="dkl-summary">{cells}</table>'


def _short(value: str) -> str:
    return value if len(value) <= MOST_LETTERS else f"{value[:MOST_LETTERS]} ..."
