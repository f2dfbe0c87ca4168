"""The benchmarks: what each measures, what it stands beside, and what it needs."""

from __future__ import annotations

from typing import NamedTuple


class Benchmark(NamedTuple):
    """One benchmark; `anchor` is what dkl is measured against, `needs` what a bare machine lacks ("data", "torch")."""

    text: str
    anchor: str
    needs: tuple[str, ...] = ()
    quick: bool = False


DATA, TORCH = ("data",), ("data", "torch")
NAMES = {
    "pass": Benchmark("features + gram against bare BLAS, embedded and on a cluster", "bare BLAS"),
    "sklearn": Benchmark("fit against RBFSampler + Ridge: speed, error, memory", "RBFSampler + Ridge"),
    "small": Benchmark("digits against the same scikit-learn pipeline", "RBFSampler + RidgeClassifier", quick=True),
    "dual": Benchmark(
        "digits with more features than rows, five folds and six alphas, against Ridge from the same features",
        "Ridge on the same features",
        quick=True,
    ),
    "scaling": Benchmark("one against two single-threaded worker processes", "one worker"),
    "far": Benchmark(
        "a client near its cluster, and over a link of 50 ms and 10 Mbit/s: time of a fit, bytes through the client",
        "a near client",
    ),
    "imagenet": Benchmark("ImageNet's size out of core from Zarr, in one pass", "3 GiB of memory"),
    "gradient": Benchmark(
        "value and gradient of an objective against its value alone, and against dQ/dsigma one by one",
        "the value alone",
        quick=True,
    ),
    "relevance": Benchmark(
        "5 relevant and 45 noise inputs: learned sigma of each input against an oracle that knows the 5",
        "an oracle that knows the relevant inputs",
        quick=True,
    ),
    "learned": Benchmark(
        "learned sigma of each input against a cross-validated grid on real data (needs --data)",
        "the best shared sigma of a grid",
        DATA,
    ),
    "headline": Benchmark(
        "100,000 samples, 3000 features, sigma learned: the paper took 15 minutes", "15 minutes in the paper"
    ),
    "table": Benchmark(
        "accuracy and time against the training size, Fourier and exact, on real data (needs --data)",
        "the exact kernel",
        DATA,
    ),
    "chi2": Benchmark(
        "additive chi2 maps against AdditiveChi2Sampler: error by the number of terms, and speed",
        "AdditiveChi2Sampler",
        quick=True,
    ),
    "expchi2": Benchmark(
        "exponentiated chi2 by eight maps and exactly: accuracy by the number of features (needs --data)",
        "as many random features without axes",
        DATA,
    ),
    "pca": Benchmark(
        "axes of a feature matrix of 20 GB, out of core; against scikit-learn's PCA where that fits",
        "scikit-learn's PCA",
    ),
    "classes": Benchmark("1000 classes against 10 at the same rows and features", "10 classes", quick=True),
    "covtype": Benchmark(
        "the newcomer's path: ingest, fit and evaluate covtype from the command line (needs --data)",
        "five minutes, 1.5 GiB",
        DATA,
    ),
    "proba": Benchmark(
        "log loss and calibration against LogisticRegression on the same features (needs --data)",
        "LogisticRegression on the same features",
        DATA,
    ),
    "logistic": Benchmark(
        "softmax on covtype against LogisticRegression on features in memory: time and memory (needs --data)",
        "LogisticRegression on features in memory",
        DATA,
    ),
    "wide": Benchmark(
        "covtype with 4,000 to 32,000 features, sigma learned with 1,000 (needs --data)", "fewer features", DATA
    ),
    "losses": Benchmark(
        "every loss, penalty and solver on random problems against solvers that are not dkl's: excess",
        "the least objective of any solver",
    ),
    "path": Benchmark(
        "50 alphas x 5 folds of 16 kernels against one ridge fit; the solver against adelie and celer",
        "one ridge fit; adelie and celer",
    ),
    "mfeat": Benchmark(
        "six descriptors of digits, one kernel each: alone, summed, exact GMKL, path, joint (needs --data)",
        "exact GMKL",
        DATA,
    ),
    "mkl_scaling": Benchmark(
        "time of several kernels against the training size, by one pass and exactly", "exact GMKL"
    ),
    "equivalence": Benchmark(
        "kernel weights of the group lasso against exact GMKL on the same features", "exact GMKL", quick=True
    ),
    "textures": Benchmark(
        "Brodatz patches: learned Gabor filters against 81 fixed and 3,000 random ones (needs --data)",
        "81 fixed filters; 3,000 random ones",
        DATA,
    ),
    "grfl": Benchmark(
        "few features out of infinitely many against published accuracy and random features (needs --data)",
        "published accuracy",
        DATA,
    ),
    "multitask": Benchmark(
        "few rows of several tasks: shared and specific weights against separate and pooled (needs --data)",
        "separate and pooled models",
        DATA,
    ),
    "master": Benchmark(
        "the restricted problem by prox-Newton, ADMM and FISTA: passes, time, objective (needs --data)",
        "ADMM and FISTA",
        DATA,
    ),
    "ckl": Benchmark(
        "seven small sets by networks of cosines with a random search, beside the published figures (needs --data)",
        "published accuracy",
        DATA,
    ),
    "ckl_speed": Benchmark(
        "an epoch of a network of cosines against torch, and on 1 and 2 workers (needs --data and torch)",
        "the same network in torch",
        TORCH,
    ),
    "ckl_images": Benchmark(
        "convolutional network with and without cosines on images, and ridge on HOG (needs torch and --data)",
        "kernel ridge on HOG",
        TORCH,
    ),
    "drill": Benchmark(
        "fit, learn and ingest while processes of the cluster are killed, stopped, slowed and cut off",
        "the same bits, undisturbed",
    ),
    "swarm": Benchmark(
        "16, 64 and 256 simulated workers at ImageNet's size: efficiency, bytes and CPU of scheduler and client",
        "workers that never wait",
    ),
    "ingest": Benchmark("a CSV of 2 GB against pandas.read_csv alone", "pandas.read_csv"),
}


def chosen(only: str | None, quick: bool, has: set[str]) -> list[str]:
    """The benchmarks of `all`: those named, or those that what the machine `has` lets run (and that are quick)."""
    if only:
        if wrong := [name for name in only.split(",") if name not in NAMES]:
            raise SystemExit(f"--only {wrong[0]!r}: there is no such benchmark; say some of {','.join(NAMES)}")
        return only.split(",")
    return [name for name, one in NAMES.items() if set(one.needs) <= has and (one.quick or not quick)]
