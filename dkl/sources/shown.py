"""What may be said of a place: scheme, host and path of a URL, without passwords, signatures and tokens.

Names and passwords before the host, the query and the fragment may all be secrets, so none of them is shown, logged
or kept. Local paths and patterns are shown as they are.
"""

from __future__ import annotations

import os
import re
from typing import Any

WEB = ("http", "https")
LINK = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>,;)\]}]*")


def shown(path: Any) -> str:
    """A path or URL that may be shown and kept; the parts of a chained URL (zip://a::https://...) one by one."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
    return "::".join(map(_without_secrets, text.split("::"))) if "://" in text else text


def has_secret(path: Any) -> bool:
    """Whether a URL carries more than may be kept."""
    return shown(path) != (os.fspath(path) if isinstance(path, os.PathLike) else str(path))


def clean(text: str) -> str:
    """A sentence in which every URL is one that may be shown."""
    return LINK.sub(lambda found: shown(found.group()), text) if "://" in text else text


def cleaned(value: Any) -> Any:
    """Plain values whose every text is clean."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, (list, tuple)) else value


def _without_secrets(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    if not mark or "/" in scheme:
        return url
    cut = min((i for i in map(rest.find, "?#") if i >= 0), default=len(rest))
    if scheme.lower() in WEB or "=" in rest[cut:]:  # elsewhere a ? is part of a pattern
        rest = rest[:cut]
    host, slash, inside = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{inside}"
