"""Parameters as the fields of a dataclass: `sigma: Any = parameter("sigma")` is all that a constructor needs."""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import Any

from dkl.options.option import Option
from dkl.options.table import OPTIONS

ORDER = list(OPTIONS)
SAME: Any = object()
"""The default of the table."""


def parameter(name: str | Option, default: Any = SAME, **changes: Any) -> Any:
    """The field of a parameter of the table, or of one that only this estimator has; changes are what differs here."""
    option = replace(OPTIONS[name] if isinstance(name, str) else name, **changes)
    if default is not SAME:
        option = replace(option, default=default)
    return field(default=option.default, metadata={"option": option})


def options_of(estimator: Any) -> tuple[Option, ...]:
    """The parameters of an estimator (or its class): positional ones as they stand, then the others by the table."""
    found = [f for f in fields(estimator) if "option" in f.metadata]
    last = sorted((f for f in found if f.kw_only), key=lambda f: ORDER.index(f.name) if f.name in ORDER else len(ORDER))
    return tuple(f.metadata["option"] for f in (*(f for f in found if not f.kw_only), *last))


def attributes_of(cls: type) -> dict[str, Any]:
    """The fitted attributes that a class and its bases declare as FITTED, those of the bases first."""
    return {name: one for base in reversed(cls.__mro__) for name, one in vars(base).get("FITTED", {}).items()}


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Every parameter by name, also of a subclass whose constructor names only some."""
    fields_ = {option.name: getattr(estimator, option.name) for option in options_of(estimator)}
    return {**fields_, **estimator.get_params(deep=False)}


def check_parameters(estimator: Any) -> None:
    """Refuse the first parameter that no data could make right."""
    for option in options_of(estimator):
        option.check(getattr(estimator, option.name))
