"""Two sets of named arrays: which differ in any bit, and by how much."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

LONG = 320
"""Bytes of two texts that are too long to be shown."""


def differences(old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray]) -> list[str]:
    """A phrase for each array that is not the same, type, shape and bits; none if all are. No arrays are a fault."""
    if not old or "error" in old:
        return [f"OLD failed: {old.get('error', 'it has no arrays of this configuration')}"]
    if "error" in new:
        return [f"NEW failed: {new['error']}"]
    found = [f"{name} only in NEW" for name in new if name not in old]
    for name, a in old.items():
        if name not in new:
            found.append(f"{name} only in OLD")
        elif said := difference(a, new[name]):
            found.append(f"{name} {said}")
    return found


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """What differs, or nothing."""
    if a.dtype.kind == b.dtype.kind == "U" and a.ndim == b.ndim == 0 and a != b:
        return f"{a} became {b}" if a.dtype.itemsize + b.dtype.itemsize < LONG else "differs"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}"
    if a.tobytes() == b.tobytes():
        return ""
    if a.dtype.kind not in "fiub":
        return f"differs in {int((a != b).sum())} of {a.size}"
    return f"{largest(a.astype(np.float64), b.astype(np.float64)):.1e}"


def largest(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference relative to the largest number; infinite if one is NaN where the other is not."""
    if (np.isnan(a) != np.isnan(b)).any():
        return float("inf")
    gap = np.nan_to_num(np.abs(a - b)).max()
    size = np.nan_to_num(np.abs(a)).max()
    return float(gap / size) if size > 0 else float(gap)
