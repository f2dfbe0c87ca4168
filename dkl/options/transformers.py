"""Parameters that only transformers have: additive maps and principal axes."""

from __future__ import annotations

from dkl.options import rules
from dkl.options.option import Option
from dkl.prepare.additive import METHODS, WINDOWS

TRANSFORMER = (
    Option(
        "method", "direct", "Series or sampling of the additive kernel.", choices=METHODS,
        doc='"direct": a series whose nodes are fitted to a histogram of the entries, from one pass over X; its error '
        'falls geometrically with n_terms. "greedy": the same series, with nodes chosen one after the other. '
        '"zolotarev": the same series for any entries between 1e-5 and 1, without a pass. "chebyshev": a series around '
        'the mean entry. "homogeneous": samples of the spectrum, as in AdditiveChi2Sampler.',
    ),
    Option(
        "window", "fitted", "Sampling period of the homogeneous method.", choices=WINDOWS,
        doc='"fitted": the period is fitted to the histogram. "rectangular", "uniform": by formula for chi2, fitted '
        "for the other kernels.",
    ),
    Option(
        "image_shape", None, "Height and width of the patches in X.", takes="(height, width)", optional=True,
        rule=rules.image_shape, doc="None: they are square.",
    ),
    Option(
        "stride", 3, "Pixels between two positions of a filter.", takes="int", parse=int, rule=rules.count,
        doc="A filter stands at height // stride times width // stride positions around the middle of the patch; its "
        "feature is the sum of its absolute responses. The cost is proportional to the number of positions.",
    ),
    Option(
        "features", None, "Transformer whose principal axes are found.", takes="transformer", optional=True,
        doc="FourierFeatures, NystroemFeatures, GaborFeatures or Chi2Features; a clone is fitted to X first. None: "
        "FourierFeatures().",
    ),
    Option(
        "channels", None, "Inputs that belong together.", takes="str, list of labels or of slices", optional=True,
        doc='A label per input, slices, "each", or the name of an xarray coordinate. Every channel gets its own clone '
        "of `features`, fitted to its inputs, and the kernel is the sum over channels. This takes two passes: the axes "
        "of each channel, then the axes of all channels along those; the gram matrix of all features is never formed.",
    ),
    Option(
        "per_channel", None, "Principal axes kept per channel.", takes='int, float or "mle"', optional=True,
        rule=rules.axes,
        doc="They are kept by the first pass; a channel that has fewer keeps all. None: n_components. If all are kept, "
        "the result equals that of one pass over all features.",
    ),
)  # fmt: skip
