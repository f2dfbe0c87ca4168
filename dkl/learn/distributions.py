"""What a random search draws candidates from: ranges, lists, and scipy's frozen distributions.

    (low, high)          evenly between them           [a, b, c]   one of them
    (low, high, "log")   evenly in the logarithm       loguniform(1e-4, 1)   whatever it draws

"low:high", "low:high:log" and "a|b|c" are the same as text, for command lines and files.

Each parameter has a random stream of its own, so that another range for one changes no draw of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

PUBLISHED: dict[str, Any] = {
    "n_components": (16, 256, "log"),
    "variance": (2.0**-6, 1.0, "log"),
    "learning_rate": (1e-5, 0.2, "log"),
    "decay": (1e-6, 1e-2, "log"),
}
"""What search=100 draws: variance and learning rate as published; width and decay for small and middling data."""
SEARCHED = (*PUBLISHED, "max_norm")
"""What may be drawn; the stream of each has its place here."""
NUMBER, COUNT = "candidates", 100
"""The key of the number of candidates, and what it is if nothing is said."""
TAIL = 0.999
"""Of a distribution without an upper end: the quantile that a plan takes for the most."""


class Distribution(Protocol):
    """Values of one parameter."""

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """So many values."""

    @property
    def most(self) -> float:
        """The largest value."""

    @property
    def mean(self) -> float:
        """What is to be expected."""


@dataclass(frozen=True)
class Range:
    """Evenly between two ends, or evenly in the logarithm."""

    low: float
    high: float
    log: bool = False

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """So many values."""
        if not self.log:
            return rng.uniform(self.low, self.high, count)
        return np.clip(np.exp(rng.uniform(np.log(self.low), np.log(self.high), count)), self.low, self.high)

    @property
    def most(self) -> float:
        """The upper end."""
        return self.high

    @property
    def mean(self) -> float:
        """(high - low) / log(high / low) in the logarithm."""
        if not self.log or self.low == self.high:
            return (self.low + self.high) / 2
        return float((self.high - self.low) / np.log(self.high / self.low))


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[float, ...]

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """So many values."""
        return np.asarray(self.values, float)[rng.integers(len(self.values), size=count)]

    @property
    def most(self) -> float:
        """The largest."""
        return max(self.values)

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(np.mean(self.values))


@dataclass(frozen=True)
class Frozen:
    """A frozen distribution of scipy.stats."""

    of: Any

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """So many values."""
        return np.asarray(self.of.rvs(size=count, random_state=rng), float)

    @property
    def most(self) -> float:
        """The upper end of the support, or of nearly all of it."""
        end = float(self.of.support()[1])
        return end if np.isfinite(end) else float(self.of.ppf(TAIL))

    @property
    def mean(self) -> float:
        """Its mean, or the median if it has none."""
        mean = float(self.of.mean())
        return mean if np.isfinite(mean) else float(self.of.median())


def distribution(name: str, given: Any) -> Distribution:
    """What a parameter is drawn from; a ValueError shows what does not suit."""
    if callable(getattr(given, "rvs", None)):
        return Frozen(given)
    how = 'a list, (low, high), (low, high, "log") or a frozen distribution of scipy.stats'
    given = _read(given) if isinstance(given, str) else given
    if isinstance(given, tuple) and len(given) in (2, 3):
        if len(given) == 3 and given[2] != "log":
            raise ValueError(f"search: {name}={given!r} ends with {given[2]!r}; give {how}")
        ends = _numbers(name, given[:2], how)
        if ends[0] > ends[1]:
            raise ValueError(f"search: {name}={given!r} has its ends the wrong way round; give the lower one first")
        _allowed(name, ends[0], given)
        if len(given) == 3 and ends[0] <= 0:
            raise ValueError(f"search: {name}={given!r} begins at {ends[0]:g}, which has no logarithm; begin above 0")
        return Range(ends[0], ends[1], len(given) == 3)
    if isinstance(given, (list, np.ndarray)) and len(given):
        values = _numbers(name, given, how)
        _allowed(name, min(values), given)
        return Choice(tuple(values))
    raise ValueError(f"search: {name}={given!r} is no distribution; give {how}")


def _read(text: str) -> Any:
    """A range or a list from its text; the text itself if it is neither."""
    try:
        if "|" in text:
            return [float(word) for word in text.split("|")]
        low, high, *log = text.split(":")
        return (float(low), float(high), *log)
    except ValueError:
        return text


def as_text(given: Any) -> Any:
    """A range as text, and a distribution by its name; lists and texts stay."""
    if isinstance(given, tuple):
        return ":".join(str(part) for part in given)
    if callable(getattr(given, "rvs", None)):
        said = [*map(repr, given.args), *(f"{name}={value!r}" for name, value in given.kwds.items())]
        return f"{given.dist.name}({', '.join(said)})"
    return given


def _numbers(name: str, given: Any, how: str) -> list[float]:
    values = np.asarray(given)
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError(f"search: {name}={given!r} must be finite numbers; give {how}")
    return [float(value) for value in values]


def _allowed(name: str, least: float, given: Any) -> None:
    """Decay may be zero; all others are above it, and a width is at least one."""
    bound = {"decay": 0.0, "n_components": 1.0}.get(name)
    if least <= 0 if bound is None else least < bound:
        wanted = "above 0" if bound is None else f"at least {bound:g}"
        raise ValueError(f"search: {name}={given!r} has {least:g}; all values must be {wanted}")


def distributions(search: int | Mapping[str, Any] | None) -> tuple[int, dict[str, Distribution]]:
    """The number of candidates, and what is drawn for each (None: one, and nothing); a name unknown is refused."""
    if search is None:
        return 1, {}
    if not isinstance(search, Mapping):
        search = {NUMBER: search, **PUBLISHED}
    for name in search:
        if name not in (*SEARCHED, NUMBER):
            raise ValueError(f"search has {name!r}; it may have {', '.join(SEARCHED)} and {NUMBER}")
    found = {name: distribution(name, search[name]) for name in SEARCHED if name in search}
    if not found:
        raise ValueError(f"search={dict(search)!r} draws nothing; name one of {', '.join(SEARCHED)}")
    return int(search.get(NUMBER, COUNT)), found


def draws(search: int | Mapping[str, Any] | None, seed: int) -> dict[str, np.ndarray]:
    """A column of values for each parameter that is drawn."""
    count, found = distributions(search)
    columns = {
        name: one.draw(count, np.random.default_rng([seed, 3, SEARCHED.index(name)])) for name, one in found.items()
    }
    for name, values in columns.items():
        if name == "n_components":
            columns[name] = values = np.maximum(1, np.rint(values))
        if not np.isfinite(values).all():
            raise ValueError(f"search: {name} drew {values[~np.isfinite(values)][0]!r}; give a distribution of numbers")
        _allowed(name, float(values.min()), search[name] if isinstance(search, Mapping) else PUBLISHED[name])
    return columns
