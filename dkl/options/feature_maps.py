"""Parameters of a feature map: the kernel, its sigma, and how features are drawn."""

from __future__ import annotations

from dkl.features.fourier import FORMS
from dkl.features.frequencies import SCHEMES
from dkl.features.landmark_weights import LANDMARKS
from dkl.kernels import KERNELS
from dkl.options import parse, rules
from dkl.options.option import Option

FEATURE_MAP = (
    Option(
        "kernel", "gaussian", "Name of the kernel, e.g. laplacian.", choices=tuple(KERNELS), takes="str",
        doc="Shift-invariant kernels: gaussian, laplacian, matern12, matern32, matern52, isotropic_matern12 (32, 52). "
        "Kernels of histograms: exp_chi2, exp_intersection, exp_jensen_shannon, skewed_chi2, skewed_intersection.",
    ),
    Option("n_components", 1000, "Number of features.", takes="int", parse=int, rule=rules.count),
    Option(
        "sigma", "scale", "Frequency scale, e.g. 0.5 or 0.5,2.", takes='float, array or "scale"',
        parse=parse.numbers_or("scale"), rule=rules.numbers_or("scale"),
        doc="sigma multiplies the frequencies, so a larger sigma gives a narrower kernel; RBFSampler(gamma) "
        "corresponds "
        'to sigma=sqrt(2 gamma). Give one number, one per group, or one per input. "scale" takes about one over the '
        "spread of the data; with several groups each takes its own, and all have the same share in the kernel.",
    ),
    Option(
        "groups", None, "Inputs that share a sigma: each, channel, 0,0,1.", takes="str, list of labels or of slices",
        parse=parse.groups, optional=True, sample="each",
        doc='None: all inputs share one sigma. "each": every input has its own. Or give an integer label per input, '
        "slices, or the name of an xarray coordinate along the inputs.",
    ),
    Option(
        "frequencies", "orthogonal", "Frequency sampling: iid or quasi.", choices=SCHEMES,
        doc='"orthogonal": blocks of orthogonal directions. "iid": independent draws. "quasi": a scrambled Sobol '
        "sequence.",
    ),
    Option(
        "form", "paired", "Features: paired (cos, sin) or phase.", choices=FORMS,
        doc='"paired": cosine and sine of each frequency. "phase": cosine with a random phase.',
    ),
    Option(
        "skew", 1.0, "Constant c > 0 of the skewed kernels.", takes="float", parse=parse.number, rule=rules.positive,
    ),
    Option(
        "n_terms", 5, "Terms per input of the exp_ kernels.", takes="int", parse=int, rule=rules.count,
        doc="The exponentiated kernels map each input to the terms of an additive map, as Chi2Features does. Their "
        "beta is sigma squared: exp_chi2 is exp(-sigma^2 chi2(x, y)) with chi2 = sum (x - y)^2 / (2 (x + y)). The "
        "terms are fitted to all entries together, so bring channels to a similar size first (`dkl ingest --scale "
        "l1`).",
    ),
    Option(
        "landmarks", None, "Nystroem features: uniform, kmeans++, leverage.", choices=LANDMARKS, optional=True,
        sample="uniform",
        doc="None: Fourier features. Otherwise Nystroem features with n_components landmarks, as in NystroemFeatures; "
        "they have no frequencies, so `frequencies`, `form` and `learn` do not apply.",
    ),
)  # fmt: skip
