"""python -m tests.benchmarks NAME: a table for people, then one JSON line for machines."""

from __future__ import annotations

import argparse
import importlib

NAMES = {
    "pass": "features + gram against bare BLAS, embedded and on a cluster",
    "sklearn": "fit against RBFSampler + Ridge: speed, error, memory",
    "small": "digits against the same scikit-learn pipeline",
    "dual": "digits with more features than rows, five folds and six alphas, against Ridge from the same features",
    "scaling": "one against two single-threaded worker processes",
    "imagenet": "ImageNet's size out of core from Zarr, in one pass",
    "gradient": "value and gradient of an objective against its value alone, and against dQ/dsigma one by one",
    "relevance": "5 relevant and 45 noise inputs: learned sigma of each input against an oracle that knows the 5",
    "learned": "learned sigma of each input against a cross-validated grid on real data (needs --data)",
    "headline": "100,000 samples, 3000 features, sigma learned: the paper took 15 minutes",
    "table": "accuracy and time against the training size, Fourier and exact, on real data (needs --data)",
    "chi2": "additive chi2 maps against AdditiveChi2Sampler: error by the number of terms, and speed",
    "expchi2": "exponentiated chi2 by eight maps and exactly: accuracy by the number of features (needs --data)",
    "pca": "axes of a feature matrix of 20 GB, out of core; against scikit-learn's PCA where that fits",
    "classes": "1000 classes against 10 at the same rows and features",
    "covtype": "the newcomer's path: ingest, fit and evaluate covtype from the command line (needs --data)",
    "proba": "log loss and calibration against LogisticRegression on the same features (needs --data)",
    "logistic": "softmax on covtype against LogisticRegression on features in memory: time and memory (needs --data)",
    "wide": "covtype with 4,000 to 32,000 features, sigma learned with 1,000 (needs --data)",
    "losses": "every loss, penalty and solver on random problems against solvers that are not dkl's: excess",
    "path": "50 alphas x 5 folds of 16 kernels against one ridge fit; the solver against adelie and celer",
    "mfeat": "six descriptors of digits, one kernel each: alone, summed, exact GMKL, path, joint (needs --data)",
    "mkl_scaling": "time of several kernels against the training size, by one pass and exactly",
    "equivalence": "kernel weights of the group lasso against exact GMKL on the same features",
    "textures": "Brodatz patches: learned Gabor filters against 81 fixed and 3,000 random ones (needs --data)",
    "grfl": "few features out of infinitely many against published accuracy and random features (needs --data)",
    "master": "the restricted problem by prox-Newton, ADMM and FISTA: passes, time, objective (needs --data)",
    "ckl": "seven small sets by networks of cosines with a random search, beside the published figures (needs --data)",
    "ckl_speed": "an epoch of a network of cosines against torch, and on 1 and 2 workers (needs --data and torch)",
    "ckl_images": "convolutional network with and without cosines on images, and ridge on HOG (needs torch and --data)",
    "swarm": "16, 64 and 256 simulated workers at ImageNet's size: efficiency, bytes and CPU of scheduler and client",
    "ingest": "a CSV of 2 GB against pandas.read_csv alone",
}


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Benchmarks: " + "; ".join(f"{name}: {text}" for name, text in NAMES.items()),
    )
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--repeats", type=int, default=5, help="repetitions; medians are reported")
    parser.add_argument("--scratch", default=None, help="folder for temporary data (default: the system's)")
    parser.add_argument("--data", default=None, help="folder of the real data sets (default: DKL_DATA)")
    parser.add_argument("--sets", default=None, help="of learned, table, expchi2, proba, ckl: some sets, with commas")
    parser.add_argument("--splits", type=int, default=None, help="of ckl: splits of a set, at most (20, or 5); grfl: 5")
    parser.add_argument("--search", type=int, default=None, help="of ckl: candidates (100, or 40 of large sets)")
    parser.add_argument(
        "--rows",
        type=int,
        default=None,
        help="of proba (50,000), path, mkl_scaling (200,000), textures (10,000): most",
    )
    parser.add_argument("--learn", default="log_loss", help="of learned: the objective, log_loss or cv")
    parser.add_argument(
        "--sizes",
        default=None,
        help="of expchi2 (1000,3000,5000), grfl: numbers of features, with commas; of swarm: workers:features",
    )
    parser.add_argument("--most", type=int, default=9000, help="of expchi2: features of one PCA, at most")
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        help="of expchi2: splits and draws; of losses, equivalence, mfeat: problems or splits",
    )
    parser.add_argument("--improve", type=int, default=2, help="of grfl: gradient steps of new features")
    parser.add_argument("--without-peers", action="store_true", help="of grfl: our model alone")
    parser.add_argument("--wide", default=None, help="of wide: numbers of features, with commas")
    parser.add_argument("--slower", type=float, default=1.0, help="of swarm: how much longer blocks take")
    options = parser.parse_args()
    importlib.import_module(f"tests.benchmarks.bench_{options.name}").run(options)


if __name__ == "__main__":
    main()
