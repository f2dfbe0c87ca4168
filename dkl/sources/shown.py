"""URLs without their secrets: scheme, host and path are shown, never passwords, signatures or tokens.

User info, query and fragment may hold secrets, so they are never shown, logged or stored. Local paths and glob patterns
are shown unchanged.
"""

from __future__ import annotations

import os
import re
from typing import Any

GLOB_SCHEMES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "hdfs", "oss", "oci", "memory", "file", "local")
"""Schemes in whose paths ? is a wildcard."""
CHAIN = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*(?:://|::))")
URL = r"[A-Za-z][A-Za-z0-9+.:-]*://"
URLS = re.compile(rf"(?P<quote>['\"])(?P<inside>{URL}.*?)(?P=quote)|(?P<bare>{URL}\S*)")
REMEDY = "give it in the environment or in fsspec's configuration instead"


def shown(path: Any) -> str:
    """A path or URL without secrets; each part of a chained URL (zip://a::https://...) is cleaned."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
    return "::".join(map(_without_secrets, CHAIN.split(text))) if "://" in text else text


def has_secret(path: Any) -> bool:
    """Whether a URL may hold a secret."""
    return shown(path) != (os.fspath(path) if isinstance(path, os.PathLike) else str(path))


def clean(text: str) -> str:
    """A text with the secrets of its URLs removed."""
    return URLS.sub(_clean_url, text) if "://" in text else text


def _clean_url(found: re.Match) -> str:
    """One URL of a text: up to the closing quote if it is quoted, else up to a space."""
    if found["inside"] is not None:
        return found["quote"] + shown(found["inside"]) + found["quote"]
    bare = found["bare"].rstrip(".,;:)>]}")
    return shown(bare) + found["bare"][len(bare) :]


def refuse_secret(what: str, path: Any) -> None:
    """Refuse a URL that would be stored and may hold a secret."""
    if has_secret(path):
        raise ValueError(
            f"{what} {shown(path)!r} has a password or a token in its URL, which would be stored; {REMEDY}"
        )


def cleaned(value: Any) -> Any:
    """JSON values with every text cleaned."""
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
    if scheme.lower() not in GLOB_SCHEMES or "=" in rest[cut:]:
        rest = rest[:cut]
    host, slash, inside = rest.partition("/")
    host = host.rpartition("@")[2]
    port = host.rpartition("]")[2].partition(":")[2]
    if port and not port.isdigit() and port != "*":  # part of a password that contains / or ?
        host, inside = "...", inside.rpartition("@")[2]
    return f"{scheme}://{host}{slash}{inside}"
