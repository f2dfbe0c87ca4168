"""dkl.torch: what dkl shares with torch. `pip install 'dkl[torch]'`; `import dkl` alone never loads torch."""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(f"dkl.torch needs torch ({error}); pip install 'dkl[torch]'", name="torch") from None

from dkl.torch.convolutional import ConvolutionalKernelClassifier
from dkl.torch.cosine import CosineLayer

__all__ = ["ConvolutionalKernelClassifier", "CosineLayer"]
