"""The numpydoc sections of an estimator's docstring, made from its parameters and its fitted attributes."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from dkl.options.fields import attributes_of, options_of
from dkl.options.option import Option

WIDTH, INDENT = 116, " " * 4
EXAMPLES = f"\n{INDENT}Examples\n{INDENT}--------"
C = TypeVar("C", bound=type)


def documented(cls: C) -> C:
    """Add the sections `Parameters` and `Attributes` to the docstring of a class, before its examples."""
    text, mark, examples = (cls.__doc__ or "").rstrip().partition(EXAMPLES)
    attributes = [_lines(name, one.about) for name, one in attributes_of(cls).items()]
    parts = [
        text.rstrip(),
        _section("Parameters", [_entry(option) for option in options_of(cls)]),
        *([_section("Attributes", attributes)] if attributes else []),
    ]
    cls.__doc__ = "\n\n".join(parts) + "\n" + (f"{mark}{examples}\n" if mark else INDENT)
    return cls


def _section(title: str, entries: list[str]) -> str:
    return textwrap.indent("\n".join([title, "-" * len(title), *entries]), INDENT)


def _entry(option: Option) -> str:
    """name : type, default=... and the sentences below it."""
    kinds = option.takes or "{" + ", ".join(f'"{choice}"' for choice in option.choices or ()) + "}"
    shown = f'"{option.default}"' if isinstance(option.default, str) else repr(option.default)
    return _lines(f"{option.name} : {kinds}, default={shown}", f"{option.about} {option.doc}".strip())


def _lines(head: str, text: str) -> str:
    return "\n".join([head, *(INDENT + line for line in textwrap.wrap(text, WIDTH - 8))])
