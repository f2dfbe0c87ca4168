"""Iterations of each start and stage, counted and said in words."""

from __future__ import annotations

import pytest

from dkl.learn.phases import Phase, phases_in_words, phases_of

COLUMNS = {
    "stage": [0, 0, 0, 0, 0, 1, 1, 1, 1],
    "start": [0, 0, 0, 1, 1, 0, 0, 0, 0],
    "rows": [100, 100, 100, 100, 100, 400, 400, 400, 400],
    "passes": [2, 4, 7, 9, 11, 13, 15, 17, 17],
}


def test_phases():
    """Rows of each start and stage less the first one; a row without a pass is no iteration."""
    assert phases_of(COLUMNS) == [Phase(0, 0, 100, 2), Phase(0, 1, 100, 1), Phase(1, 0, 400, 2)]
    assert [phase.iterations for phase in phases_of(COLUMNS, 0)] == [3, 2, 3]


@pytest.mark.parametrize(
    ("phases", "text"),
    [
        ([Phase(0, 0, 100, 1)], "1 iteration"),
        ([Phase(0, 0, 100, 0)], "0 iterations"),
        ([Phase(0, 0, 100, 1234)], "1,234 iterations"),
        ([Phase(0, 0, 100, 2), Phase(0, 1, 100, 1)], "3 iterations (2 + 1 of 2 starts on 100 rows)"),
        ([Phase(0, 0, 1000, 2), Phase(1, 0, 4000, 5)], "7 iterations (2 on 1,000 rows, then 5 on 4,000 rows)"),
        (
            [Phase(0, 0, 100, 2), Phase(0, 1, 100, 1), Phase(1, 1, 400, 1), Phase(2, 1, 900, 3)],
            "7 iterations (2 + 1 of 2 starts on 100 rows, then 1 on 400 rows, then 3 on 900 rows)",
        ),
    ],
)
def test_words(phases, text):
    """Of one start no more than the number; else the starts, then each later stage."""
    assert phases_in_words(phases) == text
