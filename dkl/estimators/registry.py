"""Estimators by name: those of the library, and those that an installed package brings.

@register                                   save, load, inspect and the command line know the class
[project.entry-points."dkl.families"]       toy = "package.module"        imported when a name is looked up
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, TypeVar

from sklearn.base import is_classifier

from dkl.checks import check_choice

GROUP = "dkl.families"
"""Entry points of packages that register estimators."""
REGISTERED: dict[str, type] = {}
C = TypeVar("C", bound=type)


def register(cls: C) -> C:
    """A class decorator: models of this class can be saved, loaded, inspected and fitted from the command line."""
    REGISTERED[cls.__name__] = cls
    return cls


def estimators() -> dict[str, type]:
    """Every estimator by the name of its class; packages that bring some are imported now."""
    for point in entry_points(group=GROUP):
        point.load()
    return dict(REGISTERED)


def family_of(name: str) -> dict[str, type]:
    """The classes of a family by their tasks, classification and regression."""
    known: dict[str, dict[str, type]] = {}
    for cls in estimators().values():
        if hasattr(cls, "family"):
            known.setdefault(cls.family, {})["classification" if is_classifier(cls()) else "regression"] = cls
    return known[check_choice("model", name, sorted(known))]


def estimator_of(family: str, task: str) -> Any:
    """The class of a family for classification or regression."""
    found = family_of(family)
    if task not in found:
        raise ValueError(f"model={family!r} has no estimator for {task}; it has one for {', '.join(found)}")
    return found[task]
