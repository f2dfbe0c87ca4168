"""Exit codes that scripts can use, and the two ways in which a verb is stopped from outside."""

from __future__ import annotations

FAILED, USAGE, NO_ROOM, NO_CLUSTER, INTERRUPTED, TERMINATED, BROKEN_PIPE = 1, 2, 3, 4, 130, 143, 141


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence on how to resume."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a preempted job gets it."""
