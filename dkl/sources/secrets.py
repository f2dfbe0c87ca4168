"""A text without secrets: of URLs, of this process's environment, and of words that say `secret=...`.

What is logged may be kept for years, and an exception of a storage library may quote what it was given. So values of
variables whose name says that they are secret are replaced wherever they stand, and so is what follows such a name.
"""

from __future__ import annotations

import os
import re
from typing import Any

from dkl.sources.shown import clean

WORDS = (
    "secret", "token", "password", "passwd", "credential", "access_?key", "account_?key", "api_?key", "private_?key",
    "signature", "connection_?string", "passphrase", "pwd",
)  # fmt: skip
NAMES = "|".join(WORDS)
SECRET_NAME = re.compile(NAMES, re.IGNORECASE)
PLACE = re.compile("_(file|path|dir)$", re.IGNORECASE)
"""Ends of names of variables that say where a secret is."""
AFTER_NAME = re.compile(  # possessive, and from the beginning of a word: linear in the length of any text
    rf"(?<![\w-])(?P<name>(?=[\w-]*?(?:{NAMES}))[\w-]++[\"']?\s*+[:=]\s*+)"
    r"(?:(?P<quote>[\"'])[^\"'\n]++|[^\s\"',;&})]++)",
    re.IGNORECASE,
)
BEARER = re.compile(r"\b(bearer\s+)[\w.+/=~-]{6,}", re.IGNORECASE)
HEADER = re.compile(r"(?P<name>\bauthorization[\"']?\s*[:=]\s*[\"']?)(?P<value>[^\"'\n}]+)", re.IGNORECASE)
LEAST = 6
"""Characters of a secret; shorter values of the environment (`1`, `none`) stand in too many other words."""
HIDDEN = "..."


def without_secrets(text: str) -> str:
    """The text, with dots in the place of every secret."""
    for value in _secret_values():
        text = text.replace(value, HIDDEN)
    text = AFTER_NAME.sub(_hidden, clean(text))
    return BEARER.sub(rf"\g<1>{HIDDEN}", HEADER.sub(rf"\g<name>{HIDDEN}", text))


def _hidden(found: re.Match[str]) -> str:
    return f"{found['name']}{found['quote'] or ''}{HIDDEN}"


def values_without_secrets(value: Any, name: str = "") -> Any:
    """JSON values with every text cleaned; what has a secret name is hidden whole."""
    if isinstance(value, dict):
        return {key: values_without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [values_without_secrets(item, name) for item in value]
    if isinstance(value, str):
        return HIDDEN if value and SECRET_NAME.search(name) else without_secrets(value)
    return value


def _secret_values() -> list[str]:
    """Values of secret variables, and of fsspec's configuration; the longest first, as one may hold another."""
    found = {value for name, value in os.environ.items() if SECRET_NAME.search(name) and not PLACE.search(name)}
    found |= set(_configured())
    return sorted((value for value in found if len(value) >= LEAST), key=len, reverse=True)


def _configured() -> list[str]:
    """Secrets that fsspec was given by its files or variables, if it is loaded."""
    import sys

    config = sys.modules.get("fsspec.config")
    return [] if config is None else list(_texts(config.conf, secret=False))


def _texts(value: Any, secret: bool) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in _texts(item, is_secret(key) or secret)]
    return [value] if secret and isinstance(value, str) else []


def is_secret(name: Any) -> bool:
    """Whether the value of a variable or parameter of that name must not be shown; s3fs calls its own `key`."""
    return str(name) == "key" or bool(SECRET_NAME.search(str(name)))
