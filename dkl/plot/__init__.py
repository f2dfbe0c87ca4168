"""Pictures of a fitted model: arrays in, axes out.

    plot_convergence   the objective against iterations, seconds or passes, one line for each start
    plot_sigma         sigma times spread of each input or group, largest first, with its start
    plot_spectrum      |omega_k| = |sigma * h_k| of the frequencies, at the start and learned
    plot_kernel        k(delta e_j) of some inputs j, exact and by random features, with the range of the data
    plot_path          |w_g| of every kernel along the path of alpha, with the error of the folds
    plot_kernel_weights   bars of the weight of each kernel on each channel
    plot_features      |w_j| against |omega_j| of the few features of an InfiniteFeature model
    plot_filters       the Gabor filters of a model or transformer as pictures

Each takes the axes to draw on, or makes some, and returns them; nothing is shown or saved.
"""

from dkl.plot.convergence import plot_convergence
from dkl.plot.features import plot_features
from dkl.plot.filters import plot_filters
from dkl.plot.kernel import plot_kernel
from dkl.plot.path import plot_kernel_weights, plot_path
from dkl.plot.sigma import plot_sigma
from dkl.plot.spectrum import plot_spectrum

__all__ = [
    "plot_convergence",
    "plot_features",
    "plot_filters",
    "plot_kernel",
    "plot_kernel_weights",
    "plot_path",
    "plot_sigma",
    "plot_spectrum",
]
