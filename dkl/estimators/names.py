"""Names and labels of the inputs, of any kind of rows: stored by fit, compared by predict.

String labels are feature_names_in_, as scikit-learn defines it: the coordinate of an xarray array along its inputs,
that of a Zarr group, or the names of a data set's columns. Other labels (wavelengths) are kept as input_labels_.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_width, warn_user
from dkl.engine.tables import Table
from dkl.store.recipe import Recipe

SHOWN = 5
"""Names that a sentence lists."""
EPS = float(np.finfo(np.float32).eps)


def labels_of(table: Table) -> np.ndarray | None:
    """One label for each input, if they are known; column positions of a data set are not labels."""
    labels = table.input_labels
    if labels is not None or not isinstance(table.about.get("recipe"), dict):
        return labels
    names = Recipe.from_json(table.about["recipe"]).input_names
    return None if names is None or len(names) != table.n_columns else np.array(names, object)


def keep_or_check(estimator: Any, table: Table, reset: bool, name: str = "X") -> None:
    """n_features_in_ and the labels of the inputs: set at fit, compared afterwards."""
    labels = labels_of(table)
    named = labels is not None and all(isinstance(label, str) for label in labels.tolist())
    if reset:
        estimator.n_features_in_ = int(table.n_columns)
        kept = {"feature_names_in_": named, "input_labels_": labels is not None and not named}
        for attribute, wanted in kept.items():
            if wanted:
                setattr(estimator, attribute, _plain(labels, named))
            elif hasattr(estimator, attribute):
                delattr(estimator, attribute)
        return
    _refuse_transposed(estimator, table, name)
    ours = getattr(estimator, "feature_names_in_", None)
    if ours is not None and labels is not None and named:
        refuse_other_names(list(map(str, ours)), list(map(str, labels)), name, table.input_dim)
    check_width(table.n_columns, estimator.n_features_in_, type(estimator).__name__, name)
    if ours is not None and labels is None and table.labels is not None:
        warn_user(
            f"{name} does not have valid feature names, but {type(estimator).__name__} was fitted with feature names"
        )
    other = getattr(estimator, "input_labels_", None)
    if other is not None and labels is not None and not named:
        _refuse_other_labels(other, _plain(labels, False), name, table.input_dim)


def _plain(labels: Any, named: bool) -> np.ndarray:
    """Names as objects, numbers as they are, dates and tuples as text."""
    if named:
        return np.array([str(label) for label in labels], object)
    return labels if labels.dtype.kind in "fiub" else np.array([str(label) for label in labels.tolist()])


def _refuse_transposed(estimator: Any, table: Table, name: str) -> None:
    dims, m = () if table.rows is None else table.rows.dims, estimator.n_features_in_
    if len(dims) == 2 and table.array.shape[0] == m != table.n_columns:
        raise ValueError(
            f"{name} has {table.n_columns} features, but {type(estimator).__name__} is expecting {m} features as "
            f"input; {name} has dims ({', '.join(dims)}), and rows come first: use "
            f"{name}.transpose({dims[1]!r}, {dims[0]!r})"
        )


def refuse_other_names(ours: list[str], theirs: list[str], name: str, dim: str | None) -> None:
    """The names at fit and now, which must be the same in the same order."""
    if ours == theirs:
        return
    told = "The feature names should match those that were passed during fit"
    lacking, unseen = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    select = f"; use {name}.sel({dim}=model.feature_names_in_)" if dim is not None and not lacking else ""
    if lacking or unseen:
        parts = [
            f"{name} {verb} {_listed(names)}"
            for verb, names in (("lacks", lacking), ("has, unseen at fit,", unseen))
            if names
        ]
        raise ValueError(f"{told}: {' and '.join(parts)}{select}")
    place = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    now = theirs[place] if place < len(theirs) else "nothing"
    raise ValueError(
        f"{told}: feature names must be in the same order as they were in fit (input {place} was "
        f"{ours[min(place, len(ours) - 1)]!r}, now it is {now!r}){select}"
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:SHOWN]))
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _refuse_other_labels(ours: np.ndarray, theirs: np.ndarray, name: str, dim: str | None) -> None:
    """Refuse other labels than at fit: numbers must agree to float32 precision, texts exactly."""
    numbers = ours.dtype.kind in "fiub" and theirs.dtype.kind in "fiub"
    if numbers:
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        with np.errstate(invalid="ignore"):
            differ = ~((np.abs(a - b) <= EPS * np.abs(a)) | (a == b) | (np.isnan(a) & np.isnan(b)))
    else:
        differ = ours.astype(str) != theirs.astype(str)
    if np.any(differ):
        place = int(np.argmax(differ))
        where = f"{dim}={theirs[place]}" if dim is not None else str(theirs[place])
        raise ValueError(
            f"the inputs of {name} are not those of the fit: input {place} is {where}, at fit it was {ours[place]}; "
            f"select and order them as in model.input_labels_, or drop the coordinate if they are the same inputs"
        )
