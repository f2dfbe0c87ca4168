"""Parameters as the fields of a dataclass: `sigma: Any = parameter("sigma")` is all that a constructor needs.

A parameter that only one family has is no row of the table: `delta: float = parameter(Option("delta", 1.0, ...))`.
"""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import Any

from dkl.options.option import Option
from dkl.options.table import OPTIONS

ORDER = list(OPTIONS)
SAME: Any = object()
"""The default of the table."""


def parameter(given: str | Option, default: Any = SAME, **changes: Any) -> Any:
    """The field of a parameter, by its name or as a record; changes are what differs from it for this estimator."""
    option = replace(OPTIONS[given] if isinstance(given, str) else given, **changes)
    if default is not SAME:
        option = replace(option, default=default)
    return field(default=option.default, metadata={"option": option})


def options_of(estimator: Any) -> tuple[Option, ...]:
    """The parameters of an estimator (or its class): positional ones, those of the table, then those of its own."""
    found = [f for f in fields(estimator) if "option" in f.metadata]
    own = [f for f in found if f.kw_only and f.name not in OPTIONS]
    last = sorted((f for f in found if f.kw_only and f.name in OPTIONS), key=lambda f: ORDER.index(f.name)) + own
    return tuple(f.metadata["option"] for f in (*(f for f in found if not f.kw_only), *last))


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter that no data could make right."""
    for option in options_of(estimator):
        option.check(getattr(estimator, option.name))
