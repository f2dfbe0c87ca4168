"""Every parameter is described once: the table against the constructors, the docstrings and the refusals."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import fields

import dask
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import check_random_state

import dkl
from dkl.exact import KernelRidgeGD, KernelRidgeGDClassifier
from dkl.options.fields import check_parameters, options_of
from dkl.options.table import OPTIONS

ESTIMATORS = [
    *(getattr(dkl, name) for name in dkl.__all__ if isinstance(getattr(dkl, name), type)),
    KernelRidgeGD,
    KernelRidgeGDClassifier,
]
POSITIONAL = {
    dkl.ContinuousKernelClassifier: ["kernel", "n_components"],
    dkl.ContinuousKernelRegressor: ["kernel", "n_components"],
    dkl.FourierFeatures: ["kernel", "n_components"],
    dkl.InfiniteFeatureClassifier: ["kernel", "max_features"],
    dkl.InfiniteFeatureRegressor: ["kernel", "max_features"],
    dkl.NystroemFeatures: ["kernel", "n_components"],
    dkl.SingleKernelRegressor: ["kernel", "n_components"],
    dkl.SingleKernelClassifier: ["kernel", "n_components"],
    dkl.MultipleKernelRegressor: ["kernels", "n_components"],
    dkl.MultipleKernelClassifier: ["kernels", "n_components"],
    dkl.Chi2Features: ["method", "n_terms"],
    dkl.FeaturePCA: ["features", "n_components"],
    dkl.GaborFeatures: ["image_shape", "n_components"],
    KernelRidgeGD: ["kernel"],
    KernelRidgeGDClassifier: ["kernel"],
}
OFF = [
    ("kernel", "gausian", "kernel='gausian' is not known; did you mean 'gaussian'"),
    ("n_components", 0, "n_components=0 must be a whole number of at least 1"),
    ("sigma", "scal", "sigma='scal' is not known; did you mean 'scale'"),
    ("sigma", [1.0, -2.0], "sigma contains -2.0; use finite numbers >= 0"),
    ("frequencies", "sobol", "frequencies='sobol' is not known"),
    ("form", "pair", "form='pair' is not known; did you mean 'paired'"),
    ("skew", 0, "skew=0 must be a finite number above 0"),
    ("n_terms", 2.5, "n_terms=2.5 must be a whole number"),
    ("landmarks", "uniformly", "landmarks='uniformly' is not known; did you mean 'uniform'"),
    ("alpha", "best", "alpha='best' is not known; use one of 'auto'"),
    ("alpha", -1, "alpha contains -1.0; use finite numbers >= 0"),
    ("loss", "hing", "loss='hing' is not known"),
    ("loss", 3, "loss=3 must be the name of a loss"),
    ("penalty", "l3", "penalty='l3' is not known"),
    ("penalty", 1, "penalty=1 must be the name of a penalty"),
    ("solver", "qr", "solver='qr' is not known"),
    ("solver_tol", 0, "solver_tol=0 must be a finite number above 0"),
    ("learn_components", 0, "learn_components=0 must be a whole number of at least 1"),
    ("cv", 1, "cv=1 must be a whole number of at least 2"),
    ("cv", "five", "cv='five' must be a whole number"),
    ("learn", "gvc", "learn='gvc' is not known; did you mean 'gcv'"),
    ("validation", 1.0, "validation=1.0 must be a share of the rows between 0.01 and 0.99, or a mask"),
    ("validation", 0.004, "validation=0.004 must be a share"),
    ("sigma_l1", [1.0], r"sigma_l1=\[1.0\] must be one number >= 0"),
    ("sigma_l2", -1.0, "sigma_l2 contains -1.0"),
    ("starts", 0, "starts=0 must be a whole number of at least 1"),
    ("subsample", 1.5, "subsample=1.5 must be a share of the blocks above 0, at most 1"),
    ("max_iter", True, "max_iter=True must be a whole number"),
    ("tol", 0.0, "tol=0.0 must be a finite number above 0"),
    ("max_time", -1, "max_time=-1 must be a finite number above 0"),
    ("early_stopping", 0.6, "early_stopping=0.6 must be 'auto', None, or a share of the rows from 0.01 to 0.5"),
    ("early_stopping", True, "early_stopping=True must be 'auto'"),
    ("early_stopping", "yes", "early_stopping='yes' must be 'auto'"),
    ("reduce", "ml", "reduce='ml' is not known; did you mean 'mle'"),
    ("reduce", 2.5, "reduce=2.5 must be a whole number"),
    ("fit_intercept", "no", "fit_intercept='no' must be True or False"),
    ("calibrate", 0, "calibrate=0 must be a whole number of at least 1"),
    ("dtype", "float16", "dtype='float16' is not known"),
    ("dtype", np.int64, "dtype='int64' is not known"),
    ("place", "worker", "place='worker' is not known; use one of 'scheduler', 'client'"),
    ("search", 0, "search=0 must be a whole number of at least 1"),
    ("halving", 1, "halving=1 must be above 1: one of so many goes on"),
    ("checkpoint", 7, "checkpoint=7 must be the path or URL of a folder"),
    ("max_rows", 0, "max_rows=0 must be a whole number"),
    ("method", "best", "method='best' is not known; use one of 'direct'"),
    ("window", "round", "window='round' is not known"),
    ("image_shape", 16, r"image_shape=16 must be the height and width of grey patches"),
    ("image_shape", (16, 0), "image_shape=0 must be a whole number of at least 1"),
    ("stride", 0, "stride=0 must be a whole number of at least 1"),
    ("per_channel", -1, "per_channel=-1 must be a finite number above 0"),
    ("kernels", [], r"kernels=\[\] must be a list of one kernel or more"),
    ("n_alphas", 0, "n_alphas=0 must be a whole number of at least 1"),
    ("eps", 1, "eps=1 must be between 0 and 1"),
    ("rule", "first", "rule='first' is not known; use one of 'best'"),
    ("by_output", 2, "by_output=2 must be True or False"),
    ("max_features", 0, "max_features=0 must be a whole number of at least 1"),
    ("bandwidths", "3:0.1", "bandwidths='3:0.1' must be factors of sigma above 0"),
    ("candidates", 2.5, "candidates=2.5 must be a whole number"),
    ("per_round", "all", "per_round='all' is not known; use one of 'auto'"),
    ("per_round", 0, "per_round=0 must be a whole number of at least 1"),
    ("tasks", 1.5, "tasks=1.5 is no name or number of an input"),
    ("improve", -1, "improve=-1 must be a whole number of at least 0"),
    ("learning_rate", 0, "learning_rate=0 must be a finite number above 0"),
    ("momentum", 1.0, "momentum=1.0 must be a number from 0 to below 1"),
    ("momentum_start", -0.5, "momentum_start contains -0.5"),
    ("momentum_ramp", -1, "momentum_ramp=-1 must be a whole number of at least 0"),
    ("decay", [0.1], r"decay=\[0.1\] must be one number >= 0"),
    ("max_norm", 0.0, "max_norm=0.0 must be a finite number above 0"),
    ("batch_size", 0, "batch_size=0 must be a whole number of at least 1"),
    ("patience", 2.5, "patience=2.5 must be a whole number"),
    ("warm_start", 2, "warm_start=2 must be True or False"),
    ("debias", 0.0, "debias=0.0 must be a finite number above 0"),
]
"""Name, a value that is refused, and the sentence."""
NO_RULE = {"groups", "channels", "features", "class_weight", "random_state", "verbose"}
"""Checked with the data, or free."""
GOOD = [
    ("sigma", 0.0), ("sigma", np.ones(3)), ("alpha", [0.1, 1.0]), ("cv", [0, 1, 0]), ("cv", 2), ("learn", None),
    ("validation", np.array([True, False])), ("early_stopping", None), ("early_stopping", 0), ("early_stopping", 0.5),
    ("reduce", 0.5), ("reduce", 7), ("reduce", None), ("fit_intercept", np.True_), ("dtype", np.float32),
    ("dtype", np.dtype("float64")), ("subsample", 1.0), ("landmarks", None), ("max_time", None),
]  # fmt: skip


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_fields_are_the_constructor(cls):
    """Each parameter is a field with the table's name; only the first ones are positional."""
    found = inspect.signature(cls).parameters
    options = {option.name: option for option in options_of(cls)}
    assert set(found) == set(options) == {f.name for f in fields(cls)} <= set(OPTIONS)
    assert {name: p.default for name, p in found.items()} == {name: o.default for name, o in options.items()}
    assert [name for name, p in found.items() if p.kind is not p.KEYWORD_ONLY] == POSITIONAL[cls]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_docstrings_have_every_parameter(cls):
    """With type and default, under a numpydoc heading, once."""
    lines = inspect.cleandoc(cls.__doc__).splitlines()
    heading = lines.index("Parameters")
    assert lines[heading + 1] == "-" * len("Parameters")
    for option in options_of(cls):
        own = [i for i, line in enumerate(lines) if line.startswith(f"{option.name} : ")]
        assert len(own) == 1
        assert f"default={option.default!r}".replace("'", '"') in lines[own[0]]
        assert option.about.split()[0] in lines[own[0] + 1]
    assert max(map(len, lines)) <= 116


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_defaults_pass(cls):
    """And a clone, a pickle and set_params keep every value."""
    model = cls().set_params(verbose=0)
    check_parameters(model)
    for other in (clone(model), pickle.loads(pickle.dumps(model))):
        assert other.get_params() == model.get_params()
        assert other.verbose == 0
        assert repr(other) == f"{cls.__name__}(verbose=0)"


def test_every_option_is_told():
    """A whole sentence that fits a line of the help; a sample wherever a file could not show the default."""
    for option in OPTIONS.values():
        assert option.about.endswith(".")
        assert "\n" not in option.about + option.doc
        assert option.takes or option.choices
        assert len(option.about) + (0 if option.default is None else len(f" [{option.default}]")) <= 52


def test_every_rule_is_tried():
    """A new option comes with a value that is refused."""
    assert {name for name, _, _ in OFF} | NO_RULE == set(OPTIONS)


@pytest.mark.parametrize(("name", "value", "sentence"), OFF)
def test_refusals(name, value, sentence):
    """By the table, and at the door of an estimator that has the parameter, before any row is read."""
    with pytest.raises(ValueError, match=sentence):
        OPTIONS[name].check(value)
    for cls in (cls for cls in ESTIMATORS if name in inspect.signature(cls).parameters):
        with pytest.raises(ValueError, match=f"^{name}"):
            check_parameters(cls(**{name: value}))


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_values_that_are_taken(name, value):
    """At the ends, and of other types than the default."""
    OPTIONS[name].check(value)


def test_what_one_estimator_changes():
    """Nystroem features need landmarks; axes of a PCA may be a share; chi2's kernels are others."""
    with pytest.raises(ValueError, match="landmarks=None is not known"):
        check_parameters(dkl.NystroemFeatures(landmarks=None))
    check_parameters(dkl.FeaturePCA(n_components=0.5))
    with pytest.raises(ValueError, match="kernel='gaussian' is not known; use one of 'chi2'"):
        check_parameters(dkl.Chi2Features(kernel="gaussian"))
    with pytest.raises(ValueError, match="learn='log_loss' is not known"):
        check_parameters(KernelRidgeGD(learn="log_loss"))


def test_dask_tells_two_fits_apart():
    """Tokens depend on what was fitted, not on the parameters alone: map_blocks(model.predict) caches by them."""
    X = check_random_state(0).standard_normal((30, 2))
    fitted = [dkl.SingleKernelRegressor(n_components=5, random_state=0, verbose=0).fit(X, X[:, i]) for i in (0, 1)]
    assert dask.base.tokenize(fitted[0]) != dask.base.tokenize(fitted[1])
    assert dask.base.tokenize(fitted[0].predict) != dask.base.tokenize(fitted[1].predict)
    again = pickle.loads(pickle.dumps(fitted[0]))
    assert dask.base.tokenize(fitted[0]) == dask.base.tokenize(again)
