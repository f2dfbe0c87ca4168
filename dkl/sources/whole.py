"""Arrays of which no chunk may be absent: read through a store that refuses missing chunks."""

from __future__ import annotations

from typing import Any

from dkl.sources.damage import ALL_WRITTEN, Damaged, cut_of, place_of


def whole(node: Any) -> Any:
    """The array, refusing absent chunks if all of its chunks were written; anything else unchanged."""
    if not hasattr(node, "shape") or node.attrs.get(ALL_WRITTEN) is not True or hasattr(node.store, "plain"):
        return node
    cut = cut_of(node)
    if cut is None:
        raise Damaged(
            f"{place_of(node)} is damaged: its chunks {node.chunks} are not those of ingest; ingest the source again"
        )
    import zarr

    from dkl.sources.whole_store import WholeStore

    return zarr.open_array(store=WholeStore(node.store, node.path, cut, place_of(node)), path=node.path, mode="r")


def plain_store(array: Any) -> Any:
    """The store of an array that can be pickled to a worker."""
    return getattr(array.store, "plain", array.store)
