"""A layer of cosines, the Fourier features of a kernel as a torch module whose frequencies can be trained.

    phase    a(x) = sqrt(2/D) cos(x Gam + b)                              one phase b for each frequency
    paired   a(x) = sqrt(1/D) [cos(x Gam), sin(x Gam)]                    two outputs for each frequency

At the start the columns of Gam are drawn from the spectrum of a kernel, so that a(x)'a(y) ~ k(x, y). The numbers are
those of features/fourier.py, which has phases in turns; here they are in radians.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from dkl.checks import check_choice, check_count, check_nonnegative, check_positive
from dkl.estimators.learned_features import LearnedFeatures
from dkl.features.fourier import FORMS, FourierMap
from dkl.features.frequencies import SCHEMES, draw_unit
from dkl.kernels import Kernel, find_kernel

ROUNDING = 1e-6
"""A norm may be so much above its cap: what rounding leaves of a column that was cut to it."""


def draw_map(
    inputs: int, outputs: int, kernel: str, sigma: Any, frequencies: str, form: str, rng: np.random.Generator
) -> FourierMap:  # fmt: skip
    """A map of random frequencies of a shift-invariant kernel, at one sigma or one for each input."""
    check_count("in_features", inputs)
    check_count("out_features", outputs)
    check_choice("frequencies", frequencies, SCHEMES)
    check_choice("form", form, FORMS)
    of = find_kernel(kernel)
    check_kernel(of)
    given = check_nonnegative("sigma", sigma)
    if given.shape not in ((), (inputs,)):
        raise ValueError(f"sigma has shape {given.shape}; give one number, or one for each of {inputs} inputs")
    count = outputs if form == "phase" else (outputs + 1) // 2
    unit = draw_unit(of, inputs, count, frequencies, rng)
    phase = rng.random(outputs if form == "phase" else outputs % 2)
    return FourierMap(of, unit, np.array(np.broadcast_to(given, (inputs,))), phase, 1.0, form)


def check_kernel(kernel: Kernel) -> None:
    """Refuse kernels of histograms: they transform their inputs."""
    if kernel.skewed or kernel.additive is not None:
        raise ValueError(
            f"kernel={kernel.name!r} transforms its inputs, which a layer cannot; use a shift-invariant kernel, "
            "such as 'gaussian' or 'laplacian'"
        )


def _generator(seed: Any) -> np.random.Generator:
    """numpy's generator of a seed; None draws one from torch's own, so that torch.manual_seed holds here too."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None or isinstance(seed, torch.Generator):
        seed = int(torch.randint(2**62, (), generator=seed))
    return np.random.default_rng(check_count("seed", seed, least=0))


class CosineLayer(nn.Module):
    """Random Fourier features (..., in_features) -> (..., out_features), with trainable frequencies `omega`.

    sigma multiplies the frequencies; it is one number or one for each input. learn=False keeps frequencies and phases
    as buffers. max_norm caps the norm of each frequency, in radians, whenever the layer is applied, as the max_norm of
    torch.nn.Embedding does; it bounds how fast the outputs can change with the inputs. seed is a number, a
    torch.Generator or a numpy Generator; None follows torch.manual_seed.
    """

    omega: torch.Tensor
    phase: torch.Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel: str = "gaussian",
        *,
        sigma: Any = 1.0,
        frequencies: str = "orthogonal",
        form: str = "phase",
        learn: bool = True,
        max_norm: float | None = None,
        seed: Any = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        drawn = draw_map(in_features, out_features, kernel, sigma, frequencies, form, _generator(seed))
        self._take(drawn, learn, max_norm, device, dtype)

    @classmethod
    def from_features(
        cls,
        features: Any,
        *,
        learn: bool = True,
        max_norm: float | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> CosineLayer:
        """The layer of a fitted FourierFeatures, of another model with a Fourier map, or of the map itself."""
        of = getattr(features, "features_", features)
        if not isinstance(of, FourierMap):
            raise ValueError(
                f"{type(features).__name__} has no Fourier map; give a fitted dkl.FourierFeatures, or a fitted model "
                "of Fourier features"
            )
        check_kernel(of.kernel)
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer._take(of, learn, max_norm, device, dtype)
        return layer

    def _take(
        self, of: FourierMap, learn: bool, max_norm: float | None, device: Any, dtype: torch.dtype | None
    ) -> None:  # fmt: skip
        """The numbers of a map."""
        self.in_features, self.out_features = of.n_inputs, of.n_features
        self.kernel, self.form, self.sigma = of.kernel.name, of.form, of.sigma
        self.max_norm = None if max_norm is None else check_positive("max_norm", max_norm)
        self.learn = bool(learn)
        how = {"device": device, "dtype": torch.get_default_dtype() if dtype is None else dtype}
        for name, values in (("omega", of.sigma[:, None] * of.unit), ("phase", 2 * np.pi * of.phase)):
            tensor = torch.tensor(values, **how)
            if self.learn:
                self.register_parameter(name, nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)
        self.cap_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """a(x)."""
        self.cap_()
        theta = x @ self.omega
        count = theta.shape[-1]
        if self.form == "phase":
            return (2.0 / count) ** 0.5 * torch.cos(theta + self.phase)
        pairs = count - len(self.phase)
        own, shifted = theta[..., :pairs], theta[..., pairs:] + self.phase
        parts = [torch.cos(own), 2.0**0.5 * torch.cos(shifted), torch.sin(own)]
        return (1.0 / count) ** 0.5 * torch.cat(parts, dim=-1)

    @torch.no_grad()
    def cap_(self) -> CosineLayer:
        """Cut every frequency that is longer than max_norm down to it, in place."""
        if self.max_norm is not None:
            norm = self.omega.norm(dim=0)
            if bool((norm > self.max_norm * (1 + ROUNDING)).any()):
                self.omega.mul_(self.max_norm / norm.clamp_min(self.max_norm))
        return self

    def to_features(self) -> LearnedFeatures:
        """Fitted Fourier features with the frequencies and phases of now: for ridge, PCA or several kernels.

        Fitting them again keeps the frequencies.
        """
        self.cap_()
        omega = self.omega.detach().cpu().double().numpy()
        phase = np.remainder(self.phase.detach().cpu().double().numpy() / (2 * np.pi), 1.0)
        whole = (self.sigma > 0) | ~omega.any(axis=1)  # an input of sigma 0 that training has switched on
        sigma = np.where(whole, self.sigma, 1.0)
        unit = omega / np.where(sigma > 0, sigma, 1.0)[:, None]
        of = FourierMap(find_kernel(self.kernel), unit, sigma, phase, 1.0, self.form)
        found = LearnedFeatures(self.kernel, self.out_features, sigma=sigma.copy(), form=self.form)
        found.features_, found.sigma_, found.groups_ = of, sigma, np.zeros(self.in_features, int)
        found.n_features_in_, found._n_features_out = self.in_features, of.n_features
        return found

    def extra_repr(self) -> str:
        """What repr says."""
        cap = "" if self.max_norm is None else f", max_norm={self.max_norm:g}"
        kept = "" if self.learn else ", learn=False"
        return f"{self.in_features}, {self.out_features}, kernel={self.kernel!r}, form={self.form!r}{kept}{cap}"
