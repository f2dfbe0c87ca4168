"""The numpydoc sections of an estimator's docstring, made from its parameters and its fitted attributes."""

from __future__ import annotations

import inspect
import textwrap
from typing import TypeVar

from dkl.options.fields import attributes_of, options_of
from dkl.options.option import Option

WIDTH, INDENT = 116, " " * 4
EXAMPLES = "\nExamples\n--------"
C = TypeVar("C", bound=type)


def documented(cls: C) -> C:
    """Add the sections `Parameters` and `Attributes` to the docstring of a class, before its examples."""
    text, mark, examples = inspect.cleandoc(cls.__doc__ or "").partition(EXAMPLES)  # Python 3.13 has removed the indent
    attributes = [_lines(name, one.about) for name, one in attributes_of(cls).items()]
    parts = [
        text.rstrip(),
        _section("Parameters", [_entry(option) for option in options_of(cls)]),
        *([_section("Attributes", attributes)] if attributes else []),
    ]
    cls.__doc__ = textwrap.indent("\n\n".join(parts) + f"\n{mark}{examples}", INDENT).strip() + f"\n{INDENT}"
    return cls


def _section(title: str, entries: list[str]) -> str:
    return "\n".join([title, "-" * len(title), *entries])


def _entry(option: Option) -> str:
    """name : type, default=... and the sentences below it."""
    kinds = option.takes or "{" + ", ".join(f'"{choice}"' for choice in option.choices or ()) + "}"
    shown = f'"{option.default}"' if isinstance(option.default, str) else repr(option.default)
    return _lines(f"{option.name} : {kinds}, default={shown}", f"{option.about} {option.doc}".strip())


def _lines(head: str, text: str) -> str:
    return "\n".join([head, *(INDENT + line for line in textwrap.wrap(text, WIDTH - 8))])
