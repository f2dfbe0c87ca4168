"""Maps of additive kernels: N numbers for each input, Phi(x)'Phi(y) ~ sum_j k0(x_j, y_j).

    Direct        c_q(x) = prod_{p<q} (x - k_p) / (x + k_p)  2 sqrt(k_q) x / (x + k_q)
    Chebyshev     d_0 = 2 x / (1 + x),  d_1 = -t d_0 / sqrt2,  q d_q = (-1)^q t d_{q-1} + (q - 2) d_{q-2},
                  t = 2/pi log x
    Homogeneous   sqrt(kap_0 x),  sqrt(2 kap_j x) cos(j L log x),  sqrt(2 kap_j x) sin(j L log x)

x = 0 gives zeros, so sparse rows stay sparse. Columns stand term by term: the first term of all inputs, the second ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.checks import check_choice, check_count, check_nonnegative, check_positive, first_where
from dkl.features.rows import Refusal, entry_ends, finite_inputs

TILE = 2**15
"""Numbers that are mapped at once: few enough for the cache."""


@dataclass(frozen=True)
class Direct:
    """Nodes k_q > 0, in units of x; what is left over is r(x) r(y) k0(x, y) with r = prod (x - k) / (x + k)."""

    nodes: np.ndarray

    @property
    def n_terms(self) -> int:
        return len(self.nodes)

    def write(self, x: np.ndarray, out: list[np.ndarray]) -> None:
        """Terms of x into the arrays of out."""
        left, share, rest = x.copy(), np.empty_like(x), np.empty_like(x)
        for node, term in zip(self.nodes.astype(x.dtype), out, strict=True):
            np.add(x, node, out=share)
            np.divide(left, share, out=left)
            np.multiply(left, 2 * np.sqrt(node), out=term)
            np.subtract(x, node, out=rest)
            left *= rest


@dataclass(frozen=True)
class Chebyshev:
    """The series around x = scale."""

    scale: float
    n_terms: int

    def write(self, x: np.ndarray, out: list[np.ndarray]) -> None:
        """Terms of x into the arrays of out."""
        x = x / x.dtype.type(self.scale)
        t = _log(x)
        t *= x.dtype.type(2 / np.pi)
        np.multiply(x, x.dtype.type(2 * np.sqrt(self.scale)), out=out[0])
        out[0] /= 1 + x
        if self.n_terms > 1:
            np.multiply(t, x.dtype.type(-np.sqrt(0.5)), out=out[1])
            out[1] *= out[0]
        for q in range(2, self.n_terms):
            np.multiply(t, out[q - 1], out=out[q])
            out[q] *= x.dtype.type((-1) ** q / q)
            out[q] += x.dtype.type((q - 2) / q) * out[q - 2]


@dataclass(frozen=True)
class Homogeneous:
    """Samples of the spectrum of K: kap_j at frequency j L, for 2 n + 1 terms."""

    weights: np.ndarray  # (n + 1,)
    step: float

    @property
    def n_terms(self) -> int:
        return 2 * len(self.weights) - 1

    def write(self, x: np.ndarray, out: list[np.ndarray]) -> None:
        """Terms of x into the arrays of out."""
        root, log = np.sqrt(x), _log(x)
        np.multiply(root, x.dtype.type(np.sqrt(self.weights[0])), out=out[0])
        for j, weight in enumerate(self.weights[1:], start=1):
            cos, sin = out[2 * j - 1], out[2 * j]
            phase = log * x.dtype.type(j * self.step)
            size = root * x.dtype.type(np.sqrt(2 * weight))
            np.multiply(np.cos(phase), size, out=cos)
            np.multiply(np.sin(phase), size, out=sin)


AdditiveMap = Direct | Chebyshev | Homogeneous


def as_plain(to: AdditiveMap | None) -> dict[str, Any] | None:
    """The map as numbers, strings and lists; None is None."""
    if to is None:
        return None
    if isinstance(to, Direct):
        return {"series": "direct", "nodes": to.nodes.tolist()}
    if isinstance(to, Chebyshev):
        return {"series": "chebyshev", "scale": to.scale, "n_terms": to.n_terms}
    return {"series": "homogeneous", "weights": to.weights.tolist(), "step": to.step}


def from_plain(record: dict[str, Any] | None) -> AdditiveMap | None:
    """The map that `as_plain` wrote down; anything else is refused."""
    if record is None:
        return None
    series = check_choice("series", record["series"], ("direct", "chebyshev", "homogeneous"))
    if series == "chebyshev":
        return Chebyshev(check_positive("scale", record["scale"]), check_count("n_terms", record["n_terms"]))
    if series == "direct":
        return Direct(np.array([check_positive("nodes", node) for node in record["nodes"]]))
    weights = check_nonnegative("weights", record["weights"])
    if weights.ndim != 1:
        raise ValueError(f"weights has {weights.ndim} dimensions")
    return Homogeneous(weights, check_positive("step", record["step"]))


def _log(x: np.ndarray) -> np.ndarray:
    """log x, and 0 where x is 0."""
    return np.asarray(np.log(x, out=np.zeros_like(x), where=x > 0))


def check_histograms(X: Any, who: str, dtype: np.dtype) -> Any:
    """X in the compute dtype; a negative entry is refused."""
    X = finite_inputs(X, dtype)
    low = first_where(X, lambda values: values < 0) if entry_ends(X)[0] < 0 else None
    if low is not None:
        row, column, value = low
        raise Refusal(
            row,
            f"Negative values in data: {{name}} contains {value:g} at row {{row}}, column {{column}}; {who} is for "
            "histograms, with entries of at least 0",
            column,
        )
    return X


def lift(X: Any, to: AdditiveMap) -> Any:
    """Phi of checked rows: (rows, N m), dense or csr as they are."""
    if hasattr(X, "tocoo"):
        return _lift_sparse(X, to)
    out = np.empty((X.shape[0], to.n_terms * X.shape[1]), X.dtype)
    write_terms(X, to, out)
    return out


def write_terms(X: np.ndarray, to: AdditiveMap, out: np.ndarray) -> None:
    """Phi of checked dense rows into out (rows, N m)."""
    n, m = X.shape
    step = max(1, TILE // max(1, m))
    for i in range(0, n, step):
        tile = out[i : i + step]
        to.write(X[i : i + step], [tile[:, q * m : (q + 1) * m] for q in range(to.n_terms)])


def _lift_sparse(X: Any, to: AdditiveMap) -> Any:
    """Every term has the places of X; they are set side by side row by row."""
    N, m = to.n_terms, X.shape[1]
    terms = np.empty((N, len(X.data)), X.dtype)
    for i in range(0, len(X.data), TILE):
        to.write(X.data[i : i + TILE], [term[i : i + TILE] for term in terms])
    wide = np.int64 if max(N * m, N * len(X.data)) > np.iinfo(np.int32).max else X.indices.dtype
    indptr = N * X.indptr.astype(wide)
    counts = np.diff(X.indptr)
    first = np.repeat(indptr[:-1] - X.indptr[:-1], counts) + np.arange(len(X.data))
    later = np.repeat(counts, counts)
    data, indices = np.empty(terms.size, X.dtype), np.empty(terms.size, wide)
    for q in range(N):
        at = first + q * later
        data[at], indices[at] = terms[q], X.indices.astype(wide) + q * m
    return type(X)((data, indices, indptr), shape=(X.shape[0], N * m))
