"""What staged parts decide together, by hand: rows, names, layout, precision, target."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkl.store.decide import channel_names, check_rows, final_dtype, find_target, is_sparse
from dkl.store.request import Request
from dkl.store.staging import Part
from dkl.store.target import Target


def part(rows=10, **summary):
    """A staged part of which this is known."""
    return Part("p", rows, {"rows": rows, "dtype": "float64", "sparse": False, "text": {}, **summary})


def asked(**how):
    """A request of one source."""
    return Request(("a",), "d", **how)


def named(*names):
    """The first source of each channel."""
    return [SimpleNamespace(source=SimpleNamespace(name=name)) for name in names]


def test_rows_must_agree():
    """In all parts of a channel together; the empty one is named."""
    check_rows([[part(4), part(6)], [part(10)]], ["a", "b"])
    check_rows([[part(1)]], ["a"])
    with pytest.raises(ValueError, match=r"^'b' has no rows; give at least one$"):
        check_rows([[part(4)], []], ["a", "b"])
    with pytest.raises(ValueError, match=r"different numbers of rows \('a' 1,004, 'b' 1,005\)"):
        check_rows([[part(1000), part(4)], [part(1005)]], ["a", "b"])


def test_names_of_channels():
    """As sources are called; those called alike get their number, of one source the descriptors, of several both."""
    assert channel_names(named("x", "y", "x"), asked()) == ["x 0", "y", "x 2"]
    assert channel_names(named("x"), asked()) == ["x"]
    assert channel_names(named("x"), asked(descriptor=("hog",))) == ["x"]
    both = asked(descriptor=("pixels", "hog"))
    assert channel_names(named("x", "x"), both) == ["pixels", "hog"]
    assert channel_names(named("x", "x"), asked(descriptor=("hog", "hog"))) == ["hog 0", "hog 1"]
    assert channel_names(named("x", "x", "y", "y"), both) == ["x pixels", "x hog", "y pixels", "y hog"]


@pytest.mark.parametrize(
    ("layout", "sparse", "entries", "expected"),
    [
        ("auto", True, 50, True),
        ("auto", True, 51, False),
        ("auto", False, 0, False),
        ("dense", True, 1, False),
        ("dense", False, 0, False),
        ("sparse", True, 200, True),
    ],
)
def test_layout(layout, sparse, entries, expected):
    """Sparse up to a quarter of the cells: 20 rows of 10 inputs, in two channels and two parts each."""
    counts = [entries - 3, 1, 1, 1] if entries > 3 else [entries, 0, 0, 0]
    parts = [
        [part(rows, sparse=sparse, **({"entries": count} if sparse else {})) for rows, count in zip(r, c, strict=True)]
        for r, c in (((5, 15), counts[:2]), ((12, 8), counts[2:]))
    ]
    channels = [SimpleNamespace(n_inputs=n) for n in (7, 3)]
    assert is_sparse(asked(layout=layout), parts, channels) is expected


def test_a_dense_source_cannot_be_stored_sparse():
    """If only one of them is dense, too."""
    parts = [[part(sparse=True, entries=1)], [part()]]
    with pytest.raises(ValueError, match="layout='sparse', but 'b' is dense; use --layout dense"):
        is_sparse(asked(layout="sparse"), parts, [SimpleNamespace(n_inputs=1, name=name) for name in "ab"])
    assert is_sparse(asked(), parts, [SimpleNamespace(n_inputs=100)] * 2) is False


@pytest.mark.parametrize(
    ("how", "kinds", "text", "expected"),
    [
        ({}, ["uint8", "uint8"], {}, "uint8"),
        ({}, ["int8"], {}, "int8"),
        ({}, ["uint16"], {}, "uint16"),
        ({}, ["int16"], {}, "int16"),
        ({}, ["uint8", "int8"], {}, "float32"),
        ({}, ["int32"], {}, "float32"),
        ({}, ["float64"], {}, "float32"),
        ({}, ["uint8"], {"t": ["a"]}, "float32"),
        ({"scale": ("minmax",)}, ["uint8"], {}, "float32"),
        ({"scale": ("none", "l1")}, ["uint8"], {}, "float32"),
        ({"dtype": "float64"}, ["uint8"], {}, "float64"),
        ({"dtype": "float32"}, ["uint8"], {}, "float32"),
    ],
)
def test_precision(how, kinds, text, expected):
    """Small whole numbers stay, if all are of one kind and nothing is done to them."""
    assert final_dtype(asked(**how), [[part(dtype=kind, text=text)] for kind in kinds]) == expected


def target(parts, has=(True,), **how):
    """The target of channels of such parts."""
    firsts = [(i, f"file{i}", SimpleNamespace(has_target=h, target_name="t")) for i, h in enumerate(has)]
    return find_target(asked(**how), parts, firsts)


def numbers(values, rows=10, largest=None):
    """A part with targets that are numbers."""
    whole = None if values is None else max(map(abs, values), default=0.0)
    return part(rows, values=values, largest=whole if largest is None else largest)


def test_text_is_a_class():
    """The names of all parts, sorted; numbers in another part, and regression, are refused."""
    parts = [[part(labels=["b", "a"]), part(labels=["c", "a"])]]
    assert target(parts) == Target("text", "t", ["a", "b", "c"])
    assert target(parts, task="classification") == Target("text", "t", ["a", "b", "c"])
    with pytest.raises(ValueError, match="is text, which --task regression cannot use"):
        target(parts, task="regression")
    for mixed in ([part(labels=["a"]), numbers([1.0])], [numbers([1.0]), part(labels=["a"])]):
        with pytest.raises(ValueError, match="text in some rows and numbers in others"):
            target([mixed])


def test_the_first_channel_that_has_a_target_tells():
    """Those before it are passed over; with none there is no target, and no task."""
    parts = [[part()], [numbers([1.0, 2.0])], [part(labels=["a"])]]
    assert target(parts, (False, True, True)) == Target("classification", "t")
    assert target(parts, (False, False, False)) == Target("none")
    for task in ("classification", "regression"):
        with pytest.raises(ValueError, match=f"task '{task}' needs a target"):
            target(parts, (False, False, False), task=task)


@pytest.mark.parametrize(
    ("rows", "count", "kind"),
    [(10, 20, "classification"), (10, 21, "regression"), (440, 21, "regression"), (441, 21, "classification")],
)
def test_few_whole_numbers(rows, count, kind):
    """Up to 20, or the root of the rows of all parts; what is said comes first."""
    values = [float(v) for v in range(count)]
    parts = [[numbers(values[:-1], rows - 1), numbers(values[-1:], 1)]]
    assert target(parts).kind == kind
    assert target(parts, task="regression").kind == "regression"
    assert target(parts, task="classification").kind == "classification"


def test_broken_numbers_are_measures():
    """In one part only, too; they cannot be classes."""
    parts = [[numbers([1.0]), numbers(None)]]
    assert target(parts) == Target("regression", "t")
    assert target(parts, task="regression") == Target("regression", "t")
    with pytest.raises(ValueError, match="too many values, or fractions, to be classes"):
        target(parts, task="classification")


def test_whole_numbers_that_float64_cannot_tell_apart():
    """2^53 - 1 is the last that has its own number; measures may be larger, and so may broken numbers be."""
    assert target([[numbers([2.0**53 - 1])]]).kind == "classification"
    for how in ({}, {"task": "classification"}):
        with pytest.raises(ValueError, match="holds 9007199254740992, an integer that"):
            target([[numbers([1.0]), numbers([-(2.0**53)])]], **how)
        with pytest.raises(ValueError, match="holds 18014398509481984, an integer that"):
            target([[numbers([2.0**54])]], **how)
    assert target([[numbers([2.0**53])]], task="regression").kind == "regression"
    assert target([[numbers([2.0**53]), numbers(None)]]).kind == "regression"
