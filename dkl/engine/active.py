"""Whom dask would ask now."""

from __future__ import annotations

import sys
from typing import Any


def active_client() -> Any:
    """The distributed client that dask would use now, or None; one that answers only to `await` is refused."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    import dask

    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise RuntimeError(
            f"the active {client} is asynchronous, and dkl waits for answers; call it in another thread (await "
            "asyncio.to_thread(model.fit, X, y)), or use a Client without asynchronous=True"
        )
    return client
