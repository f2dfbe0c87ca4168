"""Labels of a list of channels: the names of the channels and of their inputs, and whether their rows are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def input_names(X: Sequence[Any]) -> list[list[Any]] | None:
    """The labels of the inputs of each channel; None if any has none."""
    found = []
    for one in X:
        if hasattr(one, "dims"):
            index = one.indexes.get(one.dims[1])
            if index is None:
                return None
            found.append(index.tolist())
        elif hasattr(one, "columns"):
            found.append(list(one.columns))
        else:
            return None
    return found


def unique_names(names: list[list[Any]], channels: Sequence[str]) -> list[Any]:
    """One label for each input, all different: if two are the same, the channel stands before each."""
    flat = [name for own in names for name in own]
    if len(set(flat)) == len(flat):
        return flat
    return [f"{channel} {name}" for channel, own in zip(channels, names, strict=True) for name in own]


def refuse_other_index(mine: Any, theirs: Any, first: int, number: int) -> None:
    """Refuse dataframes whose rows differ: they would be put beside each other by position."""
    if mine.equals(theirs):
        return
    if len(mine) != len(theirs):
        raise ValueError(
            f"X[{first}] has {len(mine)} rows and X[{number}] has {len(theirs)}; all channels need the same rows"
        )
    place = next(i for i, same in enumerate(mine == theirs) if not same)
    raise ValueError(
        f"X[{number}] has other rows than X[{first}] (its index differs, e.g. {mine[place]!r} beside "
        f"{theirs[place]!r}); use X[{number}].loc[X[{first}].index]"
    )


def refuse_other_channels(found: Any, expected: Any) -> None:
    """Refuse a list whose arrays are not those of the fit."""
    if found.widths != expected.widths:
        raise ValueError(
            f"X has {len(found.widths)} arrays of {list(found.widths)} columns; the fit had {len(expected.widths)} "
            f"channels of {list(expected.widths)}"
        )
    numbers = tuple(map(str, range(len(found.names))))
    if found.names != expected.names and numbers not in (found.names, expected.names):
        raise ValueError(
            f"X has arrays called {list(found.names)}, and the channels of the fit were {list(expected.names)}; give "
            "them in that order, under these names"
        )
