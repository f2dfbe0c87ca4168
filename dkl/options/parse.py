"""The text of a flag as a value; what cannot be read raises ValueError or KeyError."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def number(text: str) -> float:
    """A finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def numbers(text: str) -> float | list[float]:
    """One number, or several with commas between them."""
    values = [number(word) for word in text.split(",")]
    return values if len(values) > 1 or text.endswith(",") else values[0]


def numbers_or(word: str) -> Callable[[str], Any]:
    """Numbers, or one word."""
    return lambda text: text if text == word else numbers(text)


def number_or(word: str) -> Callable[[str], Any]:
    """A finite number, or one word."""
    return lambda text: text if text == word else number(text)


def groups(text: str) -> str | list[int]:
    """Labels 0,0,1 or a name."""
    words = text.split(",")
    return [int(word) for word in words] if all(word.strip().isdigit() for word in words) else text


def class_weight(text: str) -> str | dict[Any, float]:
    """a=1,b=5 or a name."""
    if "=" not in text:
        return text
    return {label(name): float(value) for name, _, value in (word.partition("=") for word in text.split(","))}


def label(text: str) -> int | str:
    """A class: a number if it reads as one."""
    try:
        return int(text)
    except ValueError:
        return text


def axes(text: str) -> float | str:
    """A whole number, a share or mle."""
    if text == "mle":
        return text
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def share(text: str) -> float | str:
    """A share, auto or none."""
    return 0.0 if text == "none" else text if text == "auto" else number(text)


def yes(text: str) -> bool:
    """yes or no."""
    return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]


def words(text: str) -> list[str]:
    """Words with commas between them; none is empty."""
    found = [word.strip() for word in text.split(",")]
    if not all(found):
        raise ValueError(text)
    return found


def named(text: str) -> dict[str, str]:
    """Words with names: a=1,b=2; one without a name is its own. None is empty, and no name stands twice."""
    pairs = [word.partition("=") for word in words(text)]
    found = {name.strip(): value.strip() if equals else name for name, equals, value in pairs}
    if len(found) < len(pairs) or not all((*found, *found.values())):
        raise ValueError(text)
    return found


def kernels(text: str) -> list[str] | dict[str, str]:
    """Kernels, or kernels with names: fine=gaussian:2,coarse=gaussian:0.5."""
    return named(text) if "=" in text else words(text)


def channels(text: str) -> str | list[int] | list[str] | dict[str, str]:
    """Slices 0:3,3:6, also with names (wind=0:3), labels 0,0,1 or a,a,b, or a name."""
    if "=" in text:
        return named(text)
    found = words(text)
    if all(word.isdigit() for word in found):
        return [int(word) for word in found]
    return found if len(found) > 1 or ":" in text else text


def yes_or_number(text: str) -> bool | float:
    """yes, no or a number."""
    return yes(text) if text.lower() in ("true", "yes", "false", "no") else number(text)
