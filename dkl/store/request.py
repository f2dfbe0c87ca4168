"""The request of an ingest: checked before anything is read, and stored in the staging folder."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from dkl.checks import check_choice, check_count
from dkl.sources.batch import Patches, Reading
from dkl.sources.patches import OPPOSITE, WHOLE
from dkl.sources.recipe_matrices import Matrices
from dkl.sources.shown import has_secret, refuse_secret, shown
from dkl.store.recipe import Recipe
from dkl.store.scale_steps import parse_steps, written

MISSING = ("refuse", "drop", "mean", "zero")
TASKS = ("auto", "classification", "regression")
LAYOUTS = ("auto", "dense", "sparse")
STEPS_OF_ONE = ("gcn", "zca")
"""What is always meant as two steps of a channel."""
REMEMBERED = ("na", "drop", "delimiter", "header", "encoding", "descriptor", "resize", "rows")
"""Options of reading that a recipe stores."""
OF_PATCHES = ("patches", "per_image", "seed")
"""Further ones, if the rows are patches."""
PER_IMAGE = 1000
"""Patches of an image, of each region."""
DTYPES = ("auto", "float32", "float64")


@dataclass(frozen=True)
class Request:
    """Sources, destination and options of one ingest."""

    sources: tuple[str, ...]
    dest: str
    target: str | None = None
    task: str = "auto"
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    scale: tuple[str, ...] = ("none",)
    missing: str = "refuse"
    na: tuple[str, ...] = ()
    split: tuple[tuple[str, float | str], ...] = ()  # a share of the rows, or the half of the images for one split
    seed: int = 0
    dtype: str = "auto"
    layout: str = "auto"
    rows: bool = False
    recipe: dict | None = None
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8"
    descriptor: tuple[str, ...] = ("pixels",)
    resize: tuple[int, int] | None = None
    patches: tuple[int, int] | None = None
    per_image: int | None = None
    overwrite: bool = False
    matrices: Matrices = field(default_factory=dict, compare=False, repr=False)  # of the recipe

    def check(self) -> None:
        """Refuse a request that is wrong for any source."""
        if not self.sources:
            raise ValueError(f"no source was given for {self.dest!r}; type dkl ingest SOURCE... {self.dest}")
        refuse_secret("the destination", self.dest)
        check_choice("task", self.task, TASKS)
        check_choice("missing", self.missing, MISSING)
        check_choice("layout", self.layout, LAYOUTS)
        check_choice("dtype", self.dtype, DTYPES)
        _ = self.scales
        self._check_patches()
        self._check_splits()

    def _check_patches(self) -> None:
        """Refuse patches without pixels, and counts without patches."""
        if self.patches is None:
            if self.per_image is not None:
                raise ValueError(f"per_image={self.per_image!r} counts patches; say how large they are: --patches 16")
            return
        if len(self.patches) != 2:
            raise ValueError(f"patches={self.patches!r} must be a height and a width, such as --patches 16x16")
        for side in self.patches:
            check_count("patches", side)
        check_count("per_image", self.patch_count)

    def _check_splits(self) -> None:
        """Refuse shares that leave nothing to train with, and regions that are no half or not of patches."""
        for name, share in self.split:
            if not name.isidentifier() or name == "train":
                raise ValueError(f"split {name}={share} is not valid; use for example --split test=0.2")
            if isinstance(share, str):
                check_choice("the half of a split", share, OPPOSITE)
                if self.patches is None:
                    raise ValueError(f"split {name}={share} is a half of images cut into patches; add --patches 16")
                if len(self.split) > 1:
                    raise ValueError(f"split {name}={share} leaves the {OPPOSITE[share]} half to train; give no other")
            elif not 0 < share < 1:
                raise ValueError(f"split {name}={share:g} is not valid; use for example --split test=0.2")
        if len(set(self.split_names)) < len(self.split_names):
            raise ValueError(f"split names {', '.join(self.split_names)} are not unique; give each split its own")
        if self.region is None and sum(float(share) for _, share in self.split) >= 1:
            raise ValueError(f"splits {dict(self.split)} leave no rows to train with; make them sum to less than 1")

    @property
    def region(self) -> str | None:
        """The half of the images from which the patches of the only split beside train come."""
        return next((share for _, share in self.split if isinstance(share, str)), None)

    @property
    def patch_count(self) -> int:
        """Patches of an image, of each region."""
        return PER_IMAGE if self.per_image is None else self.per_image

    @property
    def remembered(self) -> tuple[str, ...]:
        """Options of reading that the recipe stores."""
        return REMEMBERED if self.patches is None else (*REMEMBERED, *OF_PATCHES)

    @property
    def cut(self) -> Patches | None:
        """How images are cut."""
        if self.patches is None:
            return None
        regions = (WHOLE,) if self.region is None else (OPPOSITE[self.region], self.region)
        return Patches(self.patches, self.patch_count, self.seed, regions)

    @property
    def n_channels(self) -> int:
        return (1 if self.rows else len(self.sources)) * len(self.descriptor)

    @property
    def scales(self) -> tuple[str, ...]:
        """The steps of each channel as text; commas part the steps of one channel, or several channels."""
        count, given = self.n_channels, self.scale
        if count == 1:
            given = ("+".join(given),)
        elif len(given) == 1:
            given *= count
        elif len(given) != count:
            raise ValueError(
                f"scale has {len(given)} entries for {count} channels; give one, or one for each (the steps of one "
                "channel joined by +, as gcn+zca)"
            )
        elif given == STEPS_OF_ONE:
            raise ValueError(
                f"scale={','.join(given)!r} for 2 channels may be two steps of both or one of each; type "
                "gcn+zca for both steps in both channels"
            )
        return tuple(written(parse_steps(text)) for text in given)

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits, `train` first; empty if rows are not split."""
        return ("train", *(name for name, _ in self.split)) if self.split else ()

    def reading(self, descriptor: str, known: Any = None) -> Reading:
        """How one source is to be read; `known` is the channel of a recipe that it must match."""
        return Reading(
            format=self.format,
            target=self.target if self.target is not None or known is None else known.target or None,
            categorical=self.categorical,
            drop=self.drop,
            missing=self.missing,
            na=self.na,
            delimiter=self.delimiter,
            header=self.header,
            encoding=self.encoding,
            descriptor=descriptor,
            resize=self.resize,
            patches=self.cut,
            inputs=None if known is None else known.columns,
            left_out="" if known is None else known.target,
        )

    @property
    def has_secret(self) -> bool:
        """Whether the URL of a source or target may hold a secret."""
        return any(map(has_secret, (*self.sources, self.target or "")))

    def to_json(self) -> dict:
        """JSON values, without the secrets of URLs."""
        target = None if self.target is None else shown(self.target)
        plain = dataclasses.replace(self, sources=tuple(map(shown, self.sources)), target=target, matrices={})
        return {name: value for name, value in dataclasses.asdict(plain).items() if name != "matrices"}

    @classmethod
    def from_json(cls, values: dict, matrices: Matrices | None = None) -> Request:
        """The request of these values."""
        return cls(**{name: _tuples(value) for name, value in values.items()}, matrices=matrices or {})


def request_like(
    recipe: dict, sources: tuple[str, ...], dest: str, how: dict, matrices: Matrices | None = None
) -> Request:  # fmt: skip
    """The request that prepares new rows by a recipe and its matrices; the user's reading options take precedence."""
    Recipe.from_json(recipe, matrices)
    if not set(recipe["reading"]) <= {*REMEMBERED, *OF_PATCHES}:
        raise ValueError(
            f"the recipe of the data set is damaged: it lists the options {sorted(recipe['reading'])}; ingest it again"
        )
    known = {k: _tuples(v) for k, v in recipe["reading"].items()} | {"missing": recipe["missing"]}
    plain = Request((), "")
    given = {name: value for name, value in how.items() if value != getattr(plain, name)}
    missing = given.get("missing", known["missing"])
    if missing != known["missing"] and missing in ("mean", "zero"):
        recipe = _with_fill(recipe, missing)
    for name in ("scale", "dtype", "categorical"):
        if name in given:
            raise ValueError(f"{name}={given[name]!r}: like has its own {name}; leave one of them out")
    return Request(sources, dest, **{**known, **given}, recipe=recipe, matrices=matrices or {})


def _with_fill(recipe: dict, missing: str) -> dict:
    """The recipe with fill values for missing entries; means are known only if it was made with missing='mean'."""
    if missing == "mean" and any(channel["fill"] is None for channel in recipe["channels"]):
        raise ValueError(f"missing={missing!r}: the recipe was made without means; use zero or drop")
    filled = [c if missing == "mean" else {**c, "fill": [0.0] * c["width"]} for c in recipe["channels"]]
    return {**recipe, "channels": filled}


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
