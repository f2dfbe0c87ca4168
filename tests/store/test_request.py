"""A request at the door: what it means by default, what is refused, and how one is made like a recipe."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dkl.sources.batch import Column
from dkl.store.recipe import Channel, Recipe
from dkl.store.request import REMEMBERED, Request, request_like

PLAIN = Request((), "")


def asked(sources=("a",), **how):
    """A request."""
    return Request(sources, "d", **how)


def test_defaults():
    """Rows as they are: nothing scaled, split, or replaced."""
    assert PLAIN.seed == 0
    assert PLAIN.rows is False
    assert PLAIN.overwrite is False
    assert PLAIN.split_names == ()
    assert (PLAIN.recipe, PLAIN.target, PLAIN.header, PLAIN.resize) == (None, None, None, None)


def test_channels_and_splits():
    """A channel for each source and descriptor; sources that are further rows are one."""
    two = ("pixels", "hog")
    assert [asked(("a", "b", "c"), rows=rows).n_channels for rows in (False, True)] == [3, 1]
    assert [asked(("a", "b", "c"), rows=rows, descriptor=two).n_channels for rows in (False, True)] == [6, 2]
    assert asked(split=(("test", 0.1), ("val", 0.1))).split_names == ("train", "test", "val")


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"scale": ("l1", "none"), "sources": ("a", "b")},
        {"scale": ("l1",), "sources": ("a", "b")},
        {"split": (("test", 0.001), ("val", 0.998))},
        {"split": (("zoo", 0.5),)},
        {"split": (("apple", 0.5),)},
    ],
)
def test_requests_that_can_be(right):
    """None of them is refused."""
    asked(**right).check()


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"sources": ()}, "no source was given for 'd'; type dkl ingest SOURCE"),
        ({"dest": "s3://key:secret@bucket/d"}, "the destination"),
        ({"scale": ("l1", "none", "none"), "sources": ("a", "b")}, "scale has 3 entries for 2 channels"),
        ({"scale": ("l1", "none"), "sources": ("a", "b", "c")}, "scale has 2 entries for 3 channels"),
        ({"scale": ("none", "l3"), "sources": ("a", "b")}, "scale='l3'"),
        ({"split": (("train", 0.5),)}, "split train=0.5 is not valid"),
        ({"split": (("a/b", 0.5),)}, "split a/b=0.5 is not valid"),
        ({"split": (("t", 1.0),)}, "split t=1 is not valid"),
        ({"split": (("t", 0.0),)}, "split t=0 is not valid"),
        ({"split": (("t", -0.5),)}, "split t=-0.5 is not valid"),
        ({"split": (("t", 1.5),)}, "split t=1.5 is not valid"),
        ({"split": (("t", 0.2), ("t", 0.3))}, "train, t, t are not unique"),
        ({"split": (("t", 0.5), ("u", 0.5))}, "leave no rows to train with"),
        ({"split": (("t", 0.6), ("u", 0.5))}, "leave no rows to train with"),
    ],
)
def test_requests_that_cannot_be(wrong, line):
    """Each for its own reason."""
    with pytest.raises(ValueError, match=line):
        Request(**({"sources": ("a",), "dest": "d"} | wrong)).check()


def test_how_a_source_is_read():
    """The target that is said, else that of the channel it must fit; the columns of that channel."""
    columns = (Column("x"), Column("t", True))
    known = SimpleNamespace(target="y", columns=columns)
    assert (asked().reading("hog").target, asked().reading("hog").inputs, asked().reading("hog").left_out) == (
        None,
        None,
        "",
    )
    assert asked(target="z").reading("hog").target == "z"
    fitting = asked().reading("hog", known)
    assert (fitting.target, fitting.inputs, fitting.left_out, fitting.descriptor) == ("y", columns, "y", "hog")
    assert asked(target="z").reading("hog", known).target == "z"
    assert asked(target="").reading("hog", known).target == ""
    assert asked().reading("hog", SimpleNamespace(target="", columns=None)).target is None


def test_secrets_are_not_kept():
    """A password in a source or in the target is known, and not written down."""
    secret = "https://me:word@host/a.csv"
    assert [asked(**how).has_secret for how in ({}, {"target": "y"}, {"target": secret}, {"sources": (secret,)})] == [
        False,
        False,
        True,
        True,
    ]
    assert asked().to_json()["target"] is None
    assert asked(target="y").to_json()["target"] == "y"
    kept = asked((secret, "b"), target=secret).to_json()
    assert "word" not in str(kept)
    assert Request.from_json(kept).sources[1] == "b"


def recipe(fill=None, **reading):
    """The recipe of two channels."""
    channels = [Channel(name, None, width, fill=fill and (fill,) * width) for name, width in (("p", 2), ("q", 3))]
    remembered = {name: getattr(PLAIN, name) for name in REMEMBERED} | reading
    return Recipe(tuple(channels), "float32", "mean" if fill else "refuse", "y", remembered).to_json()


def test_new_rows_are_read_like_the_old():
    """What the recipe remembers, unless something else is said; lists become tuples."""
    made = request_like(recipe(na=["?", "-"], header=False, delimiter=";"), ("a", "b"), "d", {"header": None})
    assert (made.na, made.header, made.delimiter, made.missing) == (("?", "-"), False, ";", "refuse")
    assert (made.sources, made.dest) == (("a", "b"), "d")
    said = {"header": True, "delimiter": ",", "seed": 0, "scale": ("none",)}
    made = request_like(recipe(header=False, delimiter=";"), ("a",), "d", said)
    assert (made.header, made.delimiter) == (True, ",")
    made = request_like(recipe(delimiter="a"), ("a",), "d", {"delimiter": "A", "encoding": "ascii"})
    assert (made.delimiter, made.encoding) == ("A", "ascii")


def test_missing_values_like_a_recipe():
    """Its own means as they are; zeros if they are said; means that are not known are refused."""
    for how in ({}, {"missing": "mean"}):
        assert [c["fill"] for c in request_like(recipe(0.5), ("a",), "d", how).recipe["channels"]] == [
            [0.5] * 2,
            [0.5] * 3,
        ]
    for fill in (None, 0.5):
        made = request_like(recipe(fill), ("a",), "d", {"missing": "zero"})
        assert [c["fill"] for c in made.recipe["channels"]] == [[0.0] * 2, [0.0] * 3]
        assert [c["name"] for c in made.recipe["channels"]] == ["p", "q"]
        assert (made.missing, made.recipe["dtype"]) == ("zero", "float32")
    assert request_like(recipe(), ("a",), "d", {"missing": "drop"}).recipe == recipe()
    with pytest.raises(ValueError, match="missing='mean': the recipe was made without means"):
        request_like(recipe(), ("a",), "d", {"missing": "mean"})


@pytest.mark.parametrize(("name", "value"), [("scale", ("l1",)), ("dtype", "float64"), ("categorical", ("x",))])
def test_a_recipe_brings_its_own(name, value):
    """Said a second time it is refused."""
    with pytest.raises(ValueError, match=f"like has its own {name}"):
        request_like(recipe(), ("a",), "d", {name: value})


def test_a_recipe_that_remembers_something_else():
    """Nothing that is not an option of reading gets in; a part of them is enough."""
    with pytest.raises(ValueError, match="damaged: it lists the options"):
        request_like(recipe(dest="elsewhere"), ("a",), "d", {})
    for reading in ({}, {"na": ["?"]}):
        assert request_like(recipe() | {"reading": reading}, ("a",), "d", {}).na == tuple(reading.get("na", ()))
