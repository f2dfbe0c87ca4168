"""Which engine: the data decide. Rows in memory are added here; lazy rows on the active cluster, if there is one."""

from __future__ import annotations

import sys
from typing import Any

from dkl.engine.embedded import Embedded

PLACES = ("scheduler", "client")


def active_client() -> Any:
    """The distributed client that dask would use now, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    import dask

    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def engine_for(is_lazy: bool, place: str = "scheduler") -> Any:
    """The engine for rows that are lazy, or in memory."""
    client = active_client() if is_lazy else None
    if client is None:
        return Embedded()
    from dkl.engine.cluster import Cluster

    return Cluster(client, place)
