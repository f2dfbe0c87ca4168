"""What a process remembers of the rows of each block, from one pass to the next.

A memory spares work and never changes a result: whoever finds nothing in it computes the same values from the steps so
far. So it does not travel, and may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Values = Sequence[np.ndarray | None]
"""Values of the rows of one block, fold by fold."""


class RowMemory:
    """Values of rows after so many steps, by block."""

    def __init__(self) -> None:
        self.blocks: dict[int, tuple[int, Values]] = {}

    def __reduce__(self) -> tuple[type[RowMemory], tuple[()]]:
        return RowMemory, ()

    def get(self, block: int, steps: int) -> tuple[int, Values]:
        """(steps that its values have seen, values); (0, nothing) if they are not known, or too new."""
        known, values = self.blocks.get(block, (0, ()))
        return (known, values) if 0 < known <= steps else (0, ())

    def put(self, block: int, steps: int, values: Values) -> None:
        """Values after so many steps, in place of older ones."""
        self.blocks[block] = steps, values
