"""X, y and sample_weight of any kind become tables; arrays in memory pass scikit-learn's own checks."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, validate_data

from dkl.checks import check_width
from dkl.engine.labels import pandas_rows, refuse_other_rows
from dkl.engine.tables import Table, checked_csr, in_memory, is_labelled, is_lazy, open_table, with_known_rows
from dkl.estimators.names import keep_or_check
from dkl.features.rows import Refusal, refuse_not_finite
from dkl.options.rules import precision
from dkl.sources.intact import is_older, warn_of_older
from dkl.sources.recipe_matrices import read_matrices
from dkl.store.recipe import Recipe
from dkl.sums.targets import refuse_mixed_labels


def read_inputs(estimator: Any, X: Any, reset: bool, name: str = "X") -> Table:
    """X as a table of the estimator's width; sets n_features_in_ if reset. Refusals of its entries say `name`."""
    _refuse_columns(X, name)
    if not is_lazy(X):
        return _read_memory(estimator, X, reset, name)
    table = open_table(X)
    if is_older(dict(table.about)):
        warn_of_older(os.fspath(X))
    if table.array.ndim != 2:
        raise ValueError(f"{name} has {table.array.ndim} dimensions; give a two-dimensional array (rows, inputs)")
    if table.n_columns < 1:
        raise ValueError(f"{name} has 0 feature(s); a minimum of 1 is required")
    if np.dtype(table.array.dtype).kind not in "fiub":
        raise ValueError(f"{name} has dtype {table.array.dtype}; make its columns numbers first")
    if hasattr(X, "columns"):
        _check_names(estimator, list(X.columns), reset)
        return _with_columns(table, X)
    keep_or_check(estimator, table, reset, name)
    return table


def _check_names(estimator: Any, names: list, reset: bool) -> None:
    """Column names of a lazy dataframe, kept at fit and compared at predict as scikit-learn does for pandas."""
    import pandas as pd

    if reset and hasattr(estimator, "input_labels_"):
        del estimator.input_labels_
    validate_data(estimator, pd.DataFrame(columns=names), reset=reset, skip_check_array=True)


def _with_columns(table: Table, X: Any) -> Table:
    """The table of a dataframe, which knows the names of its inputs if they are strings."""
    names = list(X.columns)
    if not all(isinstance(n, str) for n in names):
        return table
    return replace(table, input_coords={"input": np.array(names, np.str_)}, input_dim="input")


def _read_memory(estimator: Any, X: Any, reset: bool, name: str) -> Table:
    table = open_table(X) if is_labelled(X) else None
    if isinstance(X, np.ma.MaskedArray):
        X = in_memory(X, name)
    if isinstance(X, (list, tuple)):
        X = _from_lists(X, name)
    _refuse_shape(X if table is None else table.array)
    if table is None and hasattr(X, "tocsr"):
        X = checked_csr(X, name)  # scikit-learn's own conversion would follow indices that lead nowhere
    how: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    if table is not None:
        keep_or_check(estimator, table, reset, name)
        array = check_array(table.array, estimator=estimator, input_name=name, **how)
    else:
        if name != "X" and np.ndim(X) == 2:  # scikit-learn would call it X
            check_width(np.shape(X)[1], estimator.n_features_in_, type(estimator).__name__, name)
        if reset and hasattr(estimator, "input_labels_"):
            del estimator.input_labels_
        if not reset and hasattr(estimator, "recipe_") and not hasattr(X, "columns"):  # rows of a data set, as numbers
            array = check_array(X, estimator=estimator, input_name=name, **how)
            check_width(array.shape[1], estimator.n_features_in_, type(estimator).__name__, name)
        else:
            array = validate_data(estimator, X, reset=reset, **how)
    try:
        refuse_not_finite(array, name)
    except Refusal as refusal:
        raise ValueError(str(refusal)) from None
    if table is not None:
        return replace(table, array=array)
    table = Table("memory", array, rows=pandas_rows(X))
    return _with_columns(table, X) if hasattr(X, "columns") else table


def _from_lists(X: Any, name: str) -> Any:
    """Rows of lists as one array; numbers written as texts are refused with it."""
    try:
        return np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; give a 2D array (Expected 2D array)") from None


def _refuse_columns(X: Any, name: str) -> None:
    """Refuse columns of a dataframe that are not numbers, and say what to do."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    for column, dtype in X.dtypes.items():
        kind, where = getattr(dtype, "kind", "?"), f"column {column!r} of {name} has dtype {dtype}"
        if kind == "c":
            raise ValueError(f"Complex data not supported: {where}; use real and imaginary parts")
        if str(dtype) == "category":
            raise ValueError(f"{where}; make it numbers first: pd.get_dummies({name}), or drop it")
        if kind in "OUS" or str(dtype) in ("string", "str", "object"):
            raise ValueError(
                f"{where}; if it holds numbers, pd.to_numeric({name}[{column!r}]); encode strings: "
                f"pd.get_dummies({name})"
            )
        if kind in "Mm":
            raise ValueError(f"{where}; make its columns numbers first (encode strings, dates)")


def _refuse_shape(X: Any) -> None:
    """Refuse in one line what scikit-learn would convert, or refuse with a print of the whole array."""
    if X is None or (isinstance(X, (dict, set)) and not hasattr(X, "tocsr")) or hasattr(X, "readline"):
        raise ValueError(
            f"X is a {type(X).__name__}; give a 2D array, a dataframe or the path of a Zarr array (Expected 2D array)"
        )
    dtype = getattr(X, "dtype", None)
    kind = getattr(dtype, "kind", "?")
    if kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {dtype}; use real and imaginary parts")
    if kind in "MmUS":
        raise ValueError(f"X has dtype {dtype}; make its columns numbers first (encode strings, dates)")
    if kind == "O" and isinstance(X, np.ndarray):
        text = next((value for value in X.flat if isinstance(value, (str, bytes))), None)
        if text is not None:
            raise ValueError(f"X contains the text {text!r}; make its entries numbers first: X.astype(float)")
    if getattr(X, "ndim", None) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array with {len(X)} values. Reshape your data: X.reshape(-1, 1) if it is one "
            "input, X.reshape(1, -1) if it is one row"
        )


def read_targets(X: Any, y: Any, who: str, rows: Table | None = None) -> Table:
    """y as a table of the rows of X; a Dataset or a Zarr group brings its own."""
    table = _open_targets(X, y, who)
    if rows is not None:
        refuse_other_rows(rows, table, "y")
    if table.array.ndim not in (1, 2) or hasattr(table.array, "tocsr"):
        raise ValueError(f"y has {table.array.ndim} dimensions; give one column, or (rows, outputs)")
    if np.dtype(table.array.dtype).kind == "c":
        raise ValueError(f"Complex data not supported: y has dtype {table.array.dtype}; use real and imaginary parts")
    return table


def _open_targets(X: Any, y: Any, who: str) -> Table:
    if y is None:
        if hasattr(X, "data_vars") and "y" in X:
            y = X["y"]
        elif isinstance(X, (str, os.PathLike)):
            table = open_table(X, "y")
            if table.array.path == open_table(X, "X").array.path:
                raise ValueError(f"{who} requires y to be passed; {os.fspath(X)!r} is one array, with no y beside it")
            return table
        else:
            raise ValueError(f"{who} requires y to be passed, but the target y is None")
    return open_table(y, "y")


def targets_beside(X: Any) -> Table | None:
    """The y that a Dataset or a Zarr group brings with it; None of rows alone."""
    if hasattr(X, "data_vars"):
        return open_table(X["y"], "y") if "y" in X else None
    if not isinstance(X, (str, os.PathLike)):
        return None
    try:
        table = open_table(X, "y")
    except ValueError:  # a group without y
        return None
    return None if table.array.path == open_table(X, "X").array.path else table


def read_weight(weight: Any, rows: Table | None = None) -> Table | None:
    """sample_weight as a table of one column, of the rows of X."""
    if weight is None:
        return None
    if isinstance(weight, str) and weight == "balanced":
        raise ValueError("sample_weight='balanced' is not known; use class_weight='balanced'")
    table = with_known_rows(open_table(weight, "sample_weight"))
    if rows is not None:
        refuse_other_rows(rows, table, "sample_weight")
    if np.dtype(table.array.dtype).kind not in "fiubO":
        raise ValueError(f"sample_weight has dtype {table.array.dtype}; give real numbers >= 0")
    if table.array.ndim != 1:
        raise ValueError(f"sample_weight has {table.array.ndim} dimensions; give one weight for each row (1D array)")
    return table


def flat_labels(y: Table) -> Table:
    """One column of labels; a column vector is flattened with scikit-learn's warning."""
    if y.array.ndim == 1:
        return y
    if y.array.shape[1] != 1:
        raise ValueError(f"y has {y.array.shape[1]} columns of labels; give one column (fit one classifier for each)")
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
        "for example using ravel().",
        DataConversionWarning,
        stacklevel=3,
    )
    return Table(y.kind, y.array.reshape(-1) if y.kind != "zarr" else y.array, y.labels)


def refuse_bad_labels(y: np.ndarray) -> None:
    """Refuse labels that are not finite, missing or of several types, and name the row."""
    try:
        if y.dtype.kind == "f":
            refuse_not_finite(y.reshape(len(y), -1), "y")
        elif y.dtype == object:
            refuse_mixed_labels(y.reshape(-1))
    except Refusal as refusal:
        raise ValueError(str(refusal)) from None


def check_labels(classes: np.ndarray) -> np.ndarray:
    """The classes found in y, if they can be classes."""
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        value = classes[classes != np.floor(classes)][0]
        raise ValueError(
            f"Unknown label type: y contains {value.item()!r}, a continuous target; use SingleKernelRegressor"
        )
    return classes


def compute_dtype(table: Table, dtype: Any) -> np.dtype:
    """float32 stays float32; every other input is computed in float64, unless dtype says otherwise."""
    if dtype is not None:
        precision("dtype", dtype)
        return np.dtype(dtype)
    return np.dtype(np.float32 if np.dtype(table.array.dtype) == np.float32 else np.float64)


def recipe_matrices(table: Table) -> dict[str, np.ndarray] | None:
    """The matrices of the recipe of a data set, read and compared with it; None if it has none."""
    matrices = read_matrices(table.matrices)
    if matrices:
        Recipe.from_json(table.about["recipe"], matrices)
    return matrices or None
