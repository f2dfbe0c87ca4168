"""A source read to its end and put together again, also out of order in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dkl.sources.batch import Coded


def names_of(column):
    """A coded column as texts, None where it is missing."""
    return [column.names[code] if code >= 0 else None for code in column.codes]


def read_whole(source):
    """(X, y, texts, number of segments); every segment is parsed twice, and must give the same."""
    pieces = list(source.segments())
    assert [piece.number for piece in pieces] == list(range(len(pieces)))
    batches = [source.parse(piece) for piece in source.segments()]
    with ThreadPoolExecutor(4) as pool:
        backwards = list(pool.map(source.parse, reversed(pieces)))[::-1]
    for one, other in zip(batches, backwards, strict=True):
        assert dense(one.X).tobytes() == dense(other.X).tobytes()
    X = np.concatenate([dense(batch.X) for batch in batches])
    text = {}
    for name in batches[0].text:
        text[name] = [value for batch in batches for value in names_of(batch.text[name])]
    if batches[0].y is None:
        assert not source.has_target
        return X, None, text, len(pieces)
    assert source.has_target
    if isinstance(batches[0].y, Coded):
        return X, [name for batch in batches for name in names_of(batch.y)], text, len(pieces)
    y = np.concatenate([batch.y for batch in batches])
    assert y.dtype == np.float64
    return X, y, text, len(pieces)


def dense(X):
    """X as an array, dense already or csr."""
    return X.toarray() if hasattr(X, "tocsr") else X
