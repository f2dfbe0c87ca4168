"""Which fit and which pass is running: eight hexadecimal digits each, in the keys of their tasks and in every log line.

    dkl-gram-<fit><pass><16 random digits>

So a worker and the scheduler know both from the key alone, and nothing else has to travel. Zeros are no fit, no pass.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

NONE = "0" * 8
KEY = re.compile(r"dkl-([a-z_]+)-([0-9a-f]{8})([0-9a-f]{8})[0-9a-f]{16}")

_fit: ContextVar[str] = ContextVar("dkl_fit", default=NONE)
_pass: ContextVar[str] = ContextVar("dkl_pass", default=NONE)


class Ids(NamedTuple):
    """The task of a key, its fit and its pass; empty if there is none."""

    task: str
    fit: str
    run: str


def one_fit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Everything inside the call is one fit; a fit inside a fit belongs to the outer one."""

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        if _fit.get() != NONE:
            return function(*args, **kwargs)
        token = _fit.set(_new())
        try:
            return function(*args, **kwargs)
        finally:
            _fit.reset(token)

    return named


def new_pass() -> None:
    """A pass begins."""
    _pass.set(_new())


def end_pass() -> None:
    """The pass has ended."""
    _pass.set(NONE)


def fit_here() -> str:
    """The fit that this thread is in; empty outside."""
    return _known(_fit.get())


def random_part() -> str:
    """The last word of a key: fit, pass, and digits that nobody else has."""
    return f"{_fit.get()}{_pass.get()}{uuid.uuid4().hex[:16]}"


def ids_of(key: Any) -> Ids | None:
    """What the key of a task says; None if it is not one of dkl's."""
    found = KEY.fullmatch(key) if isinstance(key, str) else None
    return None if found is None else Ids(found[1], _known(found[2]), _known(found[3]))


def _new() -> str:
    return uuid.uuid4().hex[:8]


def _known(digits: str) -> str:
    return "" if digits == NONE else digits
