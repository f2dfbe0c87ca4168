"""Arrays of which no chunk may be absent: they are read through a store that refuses what is not there."""

from __future__ import annotations

from typing import Any

from dkl.sources.damage import EVERY, Damaged, cut_of, place_of


def whole(node: Any) -> Any:
    """The same array, of which no chunk may be absent if it says so; anything else as it is."""
    if not hasattr(node, "shape") or node.attrs.get(EVERY) is not True or hasattr(node.store, "plain"):
        return node
    cut = cut_of(node)
    if cut is None:
        raise Damaged(f"{place_of(node)} is damaged: it is not cut as ingest cuts; ingest the source again")
    import zarr

    from dkl.sources.whole_store import WholeStore

    return zarr.open_array(store=WholeStore(node.store, node.path, cut, place_of(node)), path=node.path, mode="r")


def plain_store(array: Any) -> Any:
    """The store of an array as it can travel."""
    return getattr(array.store, "plain", array.store)
