"""Where an additive map is exact, chosen from a histogram x_a, p_a of the entries; no row is looked at again.

    f = m (E e^2 - (E e)^2) + m^2 (E e)^2,   x, y ~ histogram,   e = k0_hat(x, y) - k0(x, y)

f is the expected squared error of the kernel summed over m inputs. For the direct series e = -r(x) r(y) k0(x, y), so
E e = (p r)'M(p r) and E e^2 = (p r^2)'(M * M)(p r^2) with M_ab = k0(x_a, x_b), and df/dlog k_q is at hand.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from dkl.kernels.additive import ADDITIVE, Additive

QUADRATURE = np.polynomial.legendre.leggauss(200)
PERIODS = np.geomspace(2.0, 60.0, 171)
"""Periods of the homogeneous map that are tried."""
SPAN = 1e-5
"""Least entry over the largest that data-free nodes serve, if nothing else is known."""


def greedy_nodes(x: np.ndarray, p: np.ndarray, largest: float, count: int) -> np.ndarray:
    """One node after the other, where the weighted remainder |p r(x) x / (x + largest)| is largest."""
    left, nodes = p * x / (x + largest), []
    for _ in range(count):
        nodes.append(x[np.argmax(np.abs(left))])
        left = left * (x - nodes[-1]) / (x + nodes[-1])
    return np.array(nodes)


def refined_nodes(x: np.ndarray, p: np.ndarray, largest: float, count: int, inputs: int) -> np.ndarray:
    """The nodes that make f least, by L-BFGS on their logarithms, from the greedy and from the data-free ones."""
    M = ADDITIVE["chi2"].pairs(x[:, None], x)
    squares = M * M

    def value(logs: np.ndarray, unit: float) -> tuple[float, np.ndarray]:
        nodes = np.exp(logs)
        factors = (x[:, None] - nodes) / (x[:, None] + nodes)
        r = factors.prod(axis=1)
        first, second = M @ (p * r), squares @ (p * r * r)
        mean, square = (p * r) @ first, (p * r * r) @ second
        slope = 4 * inputs * p * r * second + 4 * inputs * (inputs - 1) * mean * p * first
        others = np.stack([np.delete(factors, q, axis=1).prod(axis=1) for q in range(count)], axis=1)
        gradient = slope @ (others * (-2 * x[:, None] * nodes / (x[:, None] + nodes) ** 2))
        return (inputs * (square - mean * mean) + (inputs * mean) ** 2) / unit, gradient / unit

    starts = greedy_nodes(x, p, largest, count), zolotarev_nodes(x.min(), max(x.max(), 2 * x.min()), count)
    box = (np.log(x.min()) - 3, np.log(x.max()) + 3)
    found = []
    for start in starts:
        logs = np.clip(np.log(start), *box)
        unit = value(logs, 1.0)[0] or 1.0
        end = optimize.minimize(
            value, logs, args=(unit,), jac=True, method="L-BFGS-B", bounds=[box] * count,
            options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-9},
        )  # fmt: skip
        found.append((float(end.fun) * unit, np.exp(end.x)))
    return np.asarray(min(found, key=lambda pair: pair[0])[1])


def zolotarev_nodes(low: float, high: float, count: int) -> np.ndarray:
    """k_j = high dn((2j - 1) K / 2N | 1 - (low/high)^2): the least maximum of |r| on [low, high]."""
    ratio = low / high
    quarter = special.ellipkm1(ratio * ratio)
    dn = special.ellipj((2 * np.arange(count) + 1) / (2 * count) * quarter, 1 - ratio * ratio)[2]
    half = count // 2
    dn[count - half :] = (ratio / dn[:half])[::-1]
    return np.asarray(high * dn)


def central_scale(x: np.ndarray, p: np.ndarray) -> float:
    """exp(sum p x log x / sum p x): where the mass lies, for the Chebyshev series."""
    mass = p * x
    return float(np.exp(mass @ np.log(x) / mass.sum()))


def sampled_weights(kernel: Additive, count: int, period: float, smooth: bool) -> np.ndarray:
    """kap_j at j L, L = 2 pi / period: of the spectrum itself, or (smooth) of K cut off at half a period."""
    step = 2 * np.pi / period
    places = step * np.arange(count + 1)
    if not smooth:
        return step * kernel.spectrum(places)
    at, weight = QUADRATURE
    D = 0.25 * period * (at + 1)  # K is even: half a period is enough, and the kink of |D| stays at its edge
    return np.asarray(np.maximum(weight @ (np.cos(np.outer(D, places)) * kernel.signature(D)[:, None]) / 2, 0.0))


def standard_period(count: int, smooth: bool) -> float:
    """The period of chi2 by the formulas in use since Vedaldi and Zisserman."""
    return float(8.80 * np.sqrt(count + 4.44) - 12.6 if smooth else 5.86 * np.sqrt(count) + 3.65)


def fitted_period(kernel: Additive, x: np.ndarray, p: np.ndarray, count: int, inputs: int, smooth: bool) -> float:
    """The period that makes f least. Pairs at the same distance have the same error, so they are put together first."""
    apart = np.abs(np.log(x)[:, None] - np.log(x)).round(9)
    mass = p * np.sqrt(x)
    D, place = np.unique(apart, return_inverse=True)
    first, second = (np.bincount(place.ravel(), np.outer(v, v).ravel()) for v in (mass, mass * np.sqrt(x)))
    exact = kernel.signature(D)

    def value(period: float) -> float:
        weights = sampled_weights(kernel, count, period, smooth)
        weights[1:] *= 2
        e = np.cos(np.outer(D, 2 * np.pi / period * np.arange(count + 1))) @ weights - exact
        mean, square = first @ e, second @ (e * e)
        return float(inputs * (square - mean * mean) + (inputs * mean) ** 2)

    return float(min(PERIODS, key=value))
