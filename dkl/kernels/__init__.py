"""What is approximated: the table of kernels by name."""

from __future__ import annotations

from dkl.checks import check_choice
from dkl.kernels.exact import exact_kernel
from dkl.kernels.record import Kernel
from dkl.kernels.shift_invariant import SHIFT_INVARIANT
from dkl.kernels.skewed import SKEWED, skew

KERNELS = {kernel.name: kernel for kernel in (*SHIFT_INVARIANT, *SKEWED)}


def find_kernel(name: str) -> Kernel:
    """The kernel of that name."""
    return KERNELS[check_choice("kernel", name, KERNELS)]


__all__ = ["KERNELS", "Kernel", "exact_kernel", "find_kernel", "skew"]
