"""The kernels to approximate, by name."""

from __future__ import annotations

from dkl.checks import check_choice
from dkl.kernels.exact import exact_kernel
from dkl.kernels.exponentiated import EXPONENTIATED
from dkl.kernels.kernel import Kernel
from dkl.kernels.shift_invariant import SHIFT_INVARIANT
from dkl.kernels.skewed import SKEWED, skew

KERNELS = {kernel.name: kernel for kernel in (*SHIFT_INVARIANT, *SKEWED, *EXPONENTIATED)}


def find_kernel(name: str) -> Kernel:
    """The kernel of that name."""
    return KERNELS[check_choice("kernel", name, KERNELS)]


def is_for_histograms(name: str) -> bool:
    """Whether the kernel of that name is defined on non-negative inputs only."""
    kernel = KERNELS.get(str(name))
    return kernel is not None and (kernel.skewed or kernel.additive is not None)


__all__ = ["KERNELS", "Kernel", "exact_kernel", "find_kernel", "is_for_histograms", "skew"]
