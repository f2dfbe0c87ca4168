"""Estimators by name: those of the library, and those that an installed package brings.

@register                                   save, load, inspect and the command line know the class
[project.entry-points."dkl.families"]       toy = "package.module"        imported when a name is looked up

An entry point has the name of its family. dkl brings one itself, whose package needs an extra (dkl/torch/).
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, TypeVar

from sklearn.base import is_classifier

from dkl.checks import check_choice

GROUP = "dkl.families"
"""Entry points of packages that register estimators."""
REGISTERED: dict[str, type] = {}
MISSING: dict[str, str] = {}
"""Families whose packages cannot be imported, and what they say."""
C = TypeVar("C", bound=type)


def register(cls: C) -> C:
    """A class decorator: models of this class can be saved, loaded, inspected and fitted from the command line."""
    REGISTERED[cls.__name__] = cls
    return cls


def estimators() -> dict[str, type]:
    """Every estimator by the name of its class; packages that bring some are imported now."""
    MISSING.clear()
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except ModuleNotFoundError as error:
            MISSING[point.name] = str(error)
    return dict(REGISTERED)


def class_of(name: str) -> type:
    """The estimator of that name; packages are imported only if the library has none."""
    known = REGISTERED if str(name) in REGISTERED else estimators()
    if str(name) not in known and MISSING:
        raise ValueError(f"estimator={name!r} is not known here; {'; '.join(MISSING.values())}")
    return known[check_choice("estimator", name, known)]


def family_of(name: str) -> dict[str, type]:
    """The classes of a family by their tasks, classification and regression; packages are imported only if needed."""
    known = _families(REGISTERED)
    if name not in known:
        known = _families(estimators())
    if name in MISSING and name not in known:
        raise ValueError(f"model={name!r} is not possible here: {MISSING[name]}")
    return known[check_choice("model", name, sorted({*known, *MISSING}))]


def _families(classes: dict[str, type]) -> dict[str, dict[str, type]]:
    found: dict[str, dict[str, type]] = {}
    for cls in classes.values():
        if hasattr(cls, "family"):
            found.setdefault(cls.family, {})["classification" if is_classifier(cls()) else "regression"] = cls
    return found


def estimator_of(family: str, task: str) -> Any:
    """The class of a family for classification or regression."""
    found = family_of(family)
    if task not in found:
        raise ValueError(f"model={family!r} has no estimator for {task}; it has one for {', '.join(found)}")
    return found[task]
