"""svmlight against scikit-learn reading the whole file at once."""

from __future__ import annotations

import functools
import gzip
import io

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dkl.sources import svmlight, text
from dkl.sources.batch import Reading, SourceError
from dkl.sources.svmlight import Svmlight, looks_like_svmlight


@pytest.fixture
def written(tmp_path):
    """Sparse rows in a file."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12)) * (rng.random((150, 12)) < 0.3)
    out = io.BytesIO()
    dump_svmlight_file(X, rng.integers(0, 3, 150), out, zero_based=True, comment="made up")
    (tmp_path / "t.svm").write_bytes(out.getvalue())
    return tmp_path / "t.svm"


@pytest.fixture(params=[16, 300, 2**23])
def small(request, monkeypatch):
    """Segments of a few bytes."""
    monkeypatch.setattr(svmlight, "segments", functools.partial(text.segments, size=request.param))


def read(path, how=Reading()):  # noqa: B008
    """Rows (as wide as the widest batch) and targets of all segments."""
    source = Svmlight(str(path), how)
    batches = [source.parse(segment) for segment in source.segments()]
    width = max(batch.X.shape[1] for batch in batches)
    for batch in batches:
        batch.X.resize(batch.X.shape[0], width)
    y = None if batches[0].y is None else np.concatenate([batch.y for batch in batches])
    return np.concatenate([batch.X.toarray() for batch in batches]), y


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_like_sklearn_whole(written, small, packed, ending):
    """Many segments, comments, both line ends, compressed or not."""
    expected, target = load_svmlight_file(str(written), zero_based=True)
    data = written.read_bytes().replace(b"\n", ending)
    written.write_bytes(gzip.compress(data) if packed else data)
    X, y = read(written)
    np.testing.assert_array_equal(X, expected.toarray())
    np.testing.assert_array_equal(y, target)


def test_without_targets(written):
    """has_target says what parse gives."""
    assert read(written, Reading(target="none"))[1] is None
    assert not Svmlight(str(written), Reading(target="none")).has_target


def test_empty_rows_and_other_encodings(tmp_path, small):
    """A row may hold nothing; a comment may be in any encoding that is said."""
    path = tmp_path / "t.svm"
    path.write_bytes("# größe\n1\n-1 3:2.5 # wörter\n\n+1 qid:4 1:7\n".encode("utf-16"))
    X, y = read(path, Reading(encoding="utf-16"))
    assert X.tolist() == [[0, 0, 0, 0], [0, 0, 0, 2.5], [0, 7, 0, 0]]
    assert y.tolist() == [1, -1, 1]


REFUSED = {
    "1 2:1 1:2": "line 4 has '1:2'; svmlight lines have index:value pairs with increasing",
    "1 2:x": "line 4 has '2:x'",
    "1 2": "line 4 has '2'",
    "one 2:1": "line 4 has 'one'; svmlight lines have a number, the target, first",
    "1,2 2:1": "line 4 has '1,2'",
    "1 -1:1": "line 4 has '-1:1'",
    "1 2147483647:1": "line 4 has '2147483647:1'",
    "1 99999999999999999999:1": "line 4 has '99999999999999999999:1'",
    "1 2:inf": "line 4, index 2 is inf, which is not a finite number",
    "1 3:nan": "missing value in line 4, column '3'; use --missing",
    "nan 3:1": "line 4 has the target nan",
}


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(tmp_path, line):
    """One sentence, with the line."""
    path = tmp_path / "t.svm"
    path.write_text(f"# comment\n1 1:1\n\n{line}\n1 1:1\n")
    with pytest.raises(SourceError, match=REFUSED[line]):
        read(path)


def test_missing_may_be_allowed(tmp_path):
    """NaN stays where it is."""
    path = tmp_path / "t.svm"
    path.write_text("1 1:1 3:nan\n")
    np.testing.assert_array_equal(read(path, Reading(missing="zero"))[0], [[0, 1, 0, np.nan]])


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (b"1 1:2\n", True),
        (b"# c\n\n-1.5 7:1 9:2 # c\n", True),
        (b"a,b\n1,2\n", False),
        (b"1 2 3\n", False),
        (b"", False),
    ],
)
def test_looks(head, is_one):
    """By the first line that says something."""
    assert looks_like_svmlight(head) is is_one
