"""Pictures of a fitted model: arrays in, axes out.

    plot_convergence   the objective against iterations, seconds or passes, one line for each start
    plot_sigma         sigma times spread of each input or group, largest first, with its start
    plot_spectrum      |omega_k| = |sigma * h_k| of the frequencies, at the start and learned
    plot_kernel        k(delta e_j) of some inputs j, exact and by random features, with the range of the data
    plot_path          |w_g| of every kernel along the path of alpha, with the error of the folds
    plot_kernel_weights   bars of the weight of each kernel on each channel
    plot_features      |w_j| against |omega_j| of the few features of an InfiniteFeature model
    plot_search        held-out loss of the candidates of a search
    plot_reliability   how often the confidence of a classifier comes true
    plot_scaling       seconds against rows, features or workers, on logarithmic axes
    plot_compare       models side by side: scores, and paired differences, with intervals
    plot_filters       the Gabor filters of a model or transformer as pictures

Each takes the axes to draw on, or makes some, and returns them; nothing is shown or saved. `dkl.plot.style` has the
colours and sizes: `with matplotlib.rc_context(dkl.plot.STYLE)` gives other pictures the same look.
"""

from dkl.plot.compare import plot_compare
from dkl.plot.convergence import plot_convergence
from dkl.plot.features import plot_features
from dkl.plot.filters import plot_filters
from dkl.plot.kernel import plot_kernel
from dkl.plot.path import plot_kernel_weights, plot_path
from dkl.plot.reliability import plot_reliability
from dkl.plot.scaling import plot_scaling
from dkl.plot.search import plot_search
from dkl.plot.sigma import plot_sigma
from dkl.plot.spectrum import plot_spectrum
from dkl.plot.style import COLOURS, STYLE

__all__ = [
    "COLOURS",
    "STYLE",
    "plot_compare",
    "plot_convergence",
    "plot_features",
    "plot_filters",
    "plot_kernel",
    "plot_kernel_weights",
    "plot_path",
    "plot_reliability",
    "plot_scaling",
    "plot_search",
    "plot_sigma",
    "plot_spectrum",
]
