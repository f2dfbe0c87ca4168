"""Values that stay where the solve runs: a function returns them in a `Reply`, the caller holds a handle.

On a cluster a handle is a `Handle`, the name of a value in the scheduler process, which workers can fetch without the
client; in one process it is the value itself.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Handle(NamedTuple, Generic[T]):
    """The name of a value T on the scheduler: whose it is, of which fit, and which of that fit's values."""

    client: str
    fit: str
    name: str


class Reply(NamedTuple, Generic[T]):
    """What a solve says to the caller, and the values that stay (for the caller: their handles), by name."""

    told: T
    kept: dict[str, Any]
