"""Which engine: the data decide. Rows in memory are added here; lazy rows on the active cluster, if there is one."""

from __future__ import annotations

from dkl.engine.active import active_client
from dkl.engine.embedded import Embedded
from dkl.engine.protocol import Engine


def engine_for(is_lazy: bool, place: str = "scheduler") -> Engine:
    """The engine for rows that are lazy, or in memory."""
    client = active_client() if is_lazy else None
    if client is None:
        return Embedded()
    from dkl.engine.cluster import Cluster

    return Cluster(client, place)
