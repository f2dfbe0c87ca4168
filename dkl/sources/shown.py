"""What may be said of a place: scheme, host and path of a URL, without passwords, signatures and tokens.

Names and passwords before the host, the query and the fragment may all be secrets, so none of them is shown, logged
or kept. Local paths and patterns are shown as they are.
"""

from __future__ import annotations

import os
import re
from typing import Any

PATTERNS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "oss", "oci", "memory", "file", "local")
"""Schemes in whose paths a ? stands for any character."""
CHAIN = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*(?:://|::))")
LINK = r"[A-Za-z][A-Za-z0-9+.:-]*://"
LINKS = re.compile(rf"(?P<quote>['\"])(?P<inside>{LINK}.*?)(?P=quote)|(?P<bare>{LINK}\S*)")
HELD = "give it in the environment or in fsspec's configuration instead"


def shown(path: Any) -> str:
    """A path or URL that may be shown and kept; the parts of a chained URL (zip://a::https://...) one by one."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
    return "::".join(map(_without_secrets, CHAIN.split(text))) if "://" in text else text


def has_secret(path: Any) -> bool:
    """Whether a URL carries more than may be kept."""
    return shown(path) != (os.fspath(path) if isinstance(path, os.PathLike) else str(path))


def clean(text: str) -> str:
    """A sentence in which every URL is one that may be shown."""
    return LINKS.sub(_clean_link, text) if "://" in text else text


def _clean_link(found: re.Match) -> str:
    """One URL of a sentence, in quotes up to the same quote, else up to a space."""
    if found["inside"] is not None:
        return found["quote"] + shown(found["inside"]) + found["quote"]
    bare = found["bare"].rstrip(".,;:)>]}")
    return shown(bare) + found["bare"][len(bare) :]


def refuse_secret(what: str, path: Any) -> None:
    """Refuse a URL that has to be written down and carries what may not be."""
    if has_secret(path):
        raise ValueError(
            f"{what} {shown(path)!r} was given with a password or a token in its URL, which would be kept; {HELD}"
        )


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
    if scheme.lower() not in PATTERNS or "=" in rest[cut:]:
        rest = rest[:cut]
    host, slash, inside = rest.partition("/")
    host = host.rpartition("@")[2]
    port = host.rpartition("]")[2].partition(":")[2]
    if port and not port.isdigit() and port != "*":  # the beginning of a password that holds a / or a ?
        host, inside = "...", inside.rpartition("@")[2]
    return f"{scheme}://{host}{slash}{inside}"
