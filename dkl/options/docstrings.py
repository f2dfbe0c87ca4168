"""The numpydoc sections of an estimator's docstring, made from its parameters."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from dkl.options.fields import options_of
from dkl.options.option import Option

WIDTH, INDENT = 116, " " * 4
EXAMPLES = f"\n{INDENT}Examples\n{INDENT}--------"
C = TypeVar("C", bound=type)


def documented(cls: C) -> C:
    """Add the section `Parameters` to the docstring of a class, before its examples."""
    text, mark, examples = (cls.__doc__ or "").rstrip().partition(EXAMPLES)
    parts = [text.rstrip(), _section("Parameters", [_entry(option) for option in options_of(cls)])]
    cls.__doc__ = "\n\n".join(parts) + "\n" + (f"{mark}{examples}\n" if mark else INDENT)
    return cls


def _section(title: str, entries: list[str]) -> str:
    return textwrap.indent("\n".join([title, "-" * len(title), *entries]), INDENT)


def _entry(option: Option) -> str:
    """name : type, default=... and the sentences below it."""
    kinds = option.takes or "{" + ", ".join(f'"{choice}"' for choice in option.choices or ()) + "}"
    shown = f'"{option.default}"' if isinstance(option.default, str) else repr(option.default)
    said = textwrap.wrap(f"{option.about} {option.doc}".strip(), WIDTH - 8)
    return "\n".join([f"{option.name} : {kinds}, default={shown}", *(INDENT + line for line in said)])
