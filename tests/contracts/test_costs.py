"""Every program states its cost, and what it states is what it takes: no less, and not much more."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import dkl.sums
from dkl.cost import Cost, Sizes
from dkl.features.additive import Chebyshev
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.landmark_weights import Far
from dkl.features.nystroem import NystroemMap
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide
from dkl.features.waves import WaveMap
from dkl.kernels import KERNELS
from dkl.learn.evaluate import CountProgram, ErrorProgram
from dkl.learn.model import Scores
from dkl.losses import Huber, Softmax, SquaredHinge
from dkl.sums.admm import AdmmProgram, Ahead, Step
from dkl.sums.cosine_networks import CosineModel, CosineProgram
from dkl.sums.curvature import CurvatureProgram
from dkl.sums.drawn_rows import DrawProgram
from dkl.sums.feature_rows import FeatureRowsProgram
from dkl.sums.feature_spread import FeatureSpreadProgram
from dkl.sums.gram import GramProgram
from dkl.sums.held_out import HeldOutProgram
from dkl.sums.histogram import HistogramProgram
from dkl.sums.input_moments import MomentProgram
from dkl.sums.input_squares import SquaresProgram
from dkl.sums.line_search import LineProgram
from dkl.sums.loss_products import LossProductProgram
from dkl.sums.loss_pullback import LossPullbackProgram
from dkl.sums.losses import LossProgram
from dkl.sums.path_curvature import PathProgram
from dkl.sums.pricing import PricingProgram, Uphill
from dkl.sums.products import CrossProgram, ProductProgram
from dkl.sums.pullback import Adjoint, PullbackProgram
from dkl.sums.row_norms import NormProgram
from dkl.sums.sample import SampleProgram
from dkl.sums.scatter import ScatterProgram
from dkl.sums.targets import LabelProgram, Targets, ValueProgram
from dkl.sums.top import TopProgram
from dkl.sums.training import TrainingProgram
from dkl.sums.tree import TreeProgram

N, M, D, C, K = 6000, 24, 160, 6, 3
RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(N, M))) * (RNG.random((N, M)) < 0.2)
VALUES, CODES = RNG.normal(size=(N, C)), RNG.integers(0, C, N)
GAUSSIAN = KERNELS["gaussian"]


def fourier(form="paired", inputs=M, d=D):
    """A map of so many features, of phases so large that float32 takes them again in float64."""
    waves = (d + 1) // 2 if form == "paired" else d
    unit = draw_unit(GAUSSIAN, inputs, waves, "iid", np.random.default_rng(1))
    phase = np.random.default_rng(2).random(d if form == "phase" else d % 2)
    return FourierMap(GAUSSIAN, unit, np.full(inputs, 3e4), phase, 1.0, form)


def nystroem(count=80):
    """A map of some rows."""
    whitening = RNG.normal(size=(count, count)) / count
    return NystroemMap(GAUSSIAN, np.full(M, 0.3), X[:count], whitening, np.arange(count), 1.0, True)


def side_by_side():
    """Two channels, one of them along axes."""
    halves = np.arange(M // 2), np.arange(M // 2, M)
    channels = [Channel(fourier(inputs=M // 2, d=90), inputs) for inputs in halves]
    return SideBySide((channels[0], ProjectedMap(channels[1], np.zeros(90), np.eye(90)[:, :40])))


MAPS = {
    "fourier": fourier(),
    "odd": fourier(d=D - 1),
    "phase": fourier("phase"),
    "nystroem": nystroem(),
    "additive": AdditiveRows(Chebyshev(1.0, 5), M, 5.0),
    "side by side": side_by_side(),
}
CLASSES = Targets(float(N), C, classes=np.arange(C))
NUMBERS = Targets(
    float(N), C, shift=np.zeros(C), unit=np.ones(C), absolute=np.full(C, 9.0 * N), square=np.full(C, 99.0 * N)
)  # fmt: skip


def gram(of="fourier", dtype=np.float64, targets=CLASSES, folds=K):
    """The first pass."""
    return GramProgram(MAPS[of].at(dtype), targets, N, folds)


def gradient(of="fourier", dtype=np.float64, curvature=False, **options):
    """The second pass of K systems, or of one with a curvature."""
    first = gram(of, dtype, NUMBERS, 1 if curvature else K)
    d, folds = MAPS[of].n_features, first.folds
    q = folds * C
    ones = np.ones((folds, q))
    extra = {"curvature": np.eye(d), "centre": np.zeros(d)} if curvature else {}
    coef = RNG.normal(size=(d, q))
    adjoint = Adjoint(coef, np.zeros(q), coef, np.zeros(q), ones, ones, bound=np.full(d, 1e6), **extra)
    return PullbackProgram(first, adjoint, np.full(M, 1e3), **options)


def losses(alphas, ks, dtype=np.float64):
    """A pass of scores."""
    coef = RNG.normal(size=(K, D, alphas * C))
    return LossProgram(
        gram(dtype=dtype), coef, np.zeros((K, alphas * C)), tuple(Softmax(float(k)) for k in np.linspace(1, 2, ks))
    )


def curvature(dtype=np.float64, targets=CLASSES, joint=False):
    """The sums of one Newton step."""
    loss = Softmax() if targets.is_class else Huber()
    return CurvatureProgram(gram("fourier", dtype, targets, 1), RNG.normal(size=(D, C)), np.zeros(C), loss, 0.1, joint)


def lengths(dtype=np.float64):
    """Trials along a line."""
    coef, step = RNG.normal(size=(2, D, C))
    return LineProgram(gram(dtype=dtype), coef, np.zeros(C), step, np.ones(C), Softmax())


def training(dtype=np.float64, targets=CLASSES, systems=K):
    """Training losses of systems that leave out a fold each."""
    loss, coef = Softmax() if targets.is_class else Huber(), 0.1 * RNG.normal(size=(systems, D, C))
    return TrainingProgram(gram("fourier", dtype, targets), loss, coef, np.zeros((systems, C)), np.arange(systems))


def admm(dtype=np.float64, tests=-1):
    """Two steps of the rows."""
    coef, zero = 0.1 * RNG.normal(size=(D, C)), np.zeros(C)
    steps = Step(coef, zero, 1.0), Step(-coef, zero, 0.5)
    return AdmmProgram(gram(dtype=dtype), Softmax(), tests).after(Ahead(steps, coef, zero))


def path_curvature(dtype=np.float64, targets=CLASSES, loss=None, systems=K + 1):
    """Curvatures of systems that leave out a fold each, and of one that leaves out none, in most of their features."""
    coef = 0.1 * RNG.normal(size=(systems, D, C))
    columns = tuple(np.arange(D - 3 * s) for s in range(systems))
    tests = np.append(np.arange(systems - 1), -1)
    loss = loss or (Softmax() if targets.is_class else Huber())
    floor = np.full(systems, 0.01)
    program = gram("fourier", dtype, targets)
    return PathProgram(program, loss, coef, np.zeros((systems, C)), tests, columns, floor)


def curved(dtype=np.float64, targets=CLASSES):
    """Products with the second derivative of their losses."""
    return LossProductProgram(training(dtype, targets), RNG.normal(size=(K, D, C)), np.ones((K, C)))


def loss_gradient(dtype=np.float64, targets=CLASSES, adjoints=True):
    """The last pass of a gradient under a loss."""
    folds = K if adjoints else 1
    q = folds * C
    tests = np.repeat(np.eye(folds), C, axis=1)
    coef, none = 0.1 * RNG.normal(size=(D, q)), np.zeros((D, 0))
    adjoint = Adjoint(
        coef, np.zeros(q), coef if adjoints else none, np.zeros(q * adjoints), tests, 1 - tests,
        bound=np.full(D, 1e6), loss=Softmax() if targets.is_class else Huber(),
    )  # fmt: skip
    return LossPullbackProgram(gram("fourier", dtype, targets, folds), adjoint, np.full(M, 1e3))


def scores(dtype=np.float64):
    """A model."""
    return Scores(MAPS["fourier"].at(dtype), RNG.normal(size=(D, C)).astype(dtype), np.zeros(C))


def sample(worth=None):
    """A draw of rows."""
    return SampleProgram(GAUSSIAN, 1.0, np.dtype(float), 200, 0, M, worth)


def top(dtype=np.float64):
    """Scores that are kept."""
    made = scores(dtype)
    return TopProgram(made.by_class, 300, made.sizes, made.map_cost)


def product(dtype=np.float64, targets=CLASSES, vectors=80):
    """Products of systems that leave out a fold each."""
    program = gram("fourier", dtype, targets)
    return ProductProgram(program, RNG.normal(size=(vectors, D)), np.sort(np.arange(vectors) % K))


def held_out(dtype=np.float64, targets=CLASSES, vectors=90):
    """Errors of scores of each fold."""
    fold, output = np.sort(np.arange(vectors) % K), np.arange(vectors) % C
    return HeldOutProgram(
        gram("fourier", dtype, targets), RNG.normal(size=(vectors, D)), np.ones(vectors), fold, output
    )


def networks(dtype=np.float64, targets=CLASSES, gradient=True, widths=(D,)):
    """Gradients of cosine networks."""
    loss, c, d = Softmax() if targets.is_class else Huber(), targets.n_outputs, sum(widths)
    model = CosineModel(fourier("phase", d=1), widths, targets, loss, N, np.dtype(dtype), np.full(M, 1e3))
    parameters = {
        "frequencies": draw_unit(GAUSSIAN, M, d, "iid", RNG),
        "phase": RNG.random(d),
        "coef": 0.1 * RNG.normal(size=(d, c)),
        "intercept": np.zeros((len(widths), c)),
    }
    return CosineProgram(model, parameters, gradient)


def prices(dtype=np.float64, targets=CLASSES, form="paired", pulls=False):
    """Candidates beside a model, perhaps with their derivatives."""
    first = GramProgram(WaveMap.of(fourier(form)).at(dtype), targets, N, 1)
    model = WaveMap.of(fourier(form, d=D // 2)).at(dtype)
    uphill = Uphill(tuple(first.features.map.parameters), np.full(M, 1e3), 1e3) if pulls else None
    coef, loss = 0.1 * RNG.normal(size=(D // 2, C)), Softmax() if targets.is_class else Huber()
    return PricingProgram(first, model, coef, np.zeros(C), loss, -1, uphill)


WEIGHTED = (X, None)
CLASSED, NUMBERED = (X, CODES, None, None), (X, VALUES, None, None)
EXAMPLES = {
    **{f"gram {of}": (lambda dtype, of=of: gram(of, dtype), CLASSED) for of in MAPS},
    "gram numbers": (lambda dtype: gram("fourier", dtype, NUMBERS), NUMBERED),
    **{f"gradient {of}": (lambda dtype, of=of: gradient(of, dtype), NUMBERED) for of in ("fourier", "odd", "phase")},
    "gradient of frequencies": (lambda dtype: gradient("phase", dtype, wanted=("unit", "phase")), NUMBERED),
    "gradient with curvature": (lambda dtype: gradient("fourier", dtype, curvature=True), NUMBERED),
    "cross": (lambda dtype: CrossProgram(gram("fourier", dtype)), CLASSED),
    "cross numbers": (lambda dtype: CrossProgram(gram("odd", dtype, NUMBERS)), NUMBERED),
    "product": (product, CLASSED),
    "product numbers": (lambda dtype: product(dtype, NUMBERS, 7), NUMBERED),
    "held out": (held_out, CLASSED),
    "held out numbers": (lambda dtype: held_out(dtype, NUMBERS), NUMBERED),
    "draw": (lambda dtype: DrawProgram(gram("fourier", dtype), 300, 5), CLASSED),
    "curvature": (curvature, CLASSED),
    "curvature of pairs": (lambda dtype: curvature(dtype, joint=True), CLASSED),
    "curvature of values": (lambda dtype: curvature(dtype, NUMBERS), NUMBERED),
    "lengths": (lengths, CLASSED),
    "prices": (prices, CLASSED),
    "prices of values": (lambda dtype: prices(dtype, NUMBERS, "phase"), NUMBERED),
    "prices uphill": (lambda dtype: prices(dtype, pulls=True), CLASSED),
    "prices uphill of phases": (lambda dtype: prices(dtype, form="phase", pulls=True), CLASSED),
    "training": (training, CLASSED),
    "training of values": (lambda dtype: training(dtype, NUMBERS), NUMBERED),
    "curved": (curved, CLASSED),
    "curved of values": (lambda dtype: curved(dtype, NUMBERS), NUMBERED),
    "path": (path_curvature, CLASSED),
    "path of one score each": (lambda dtype: path_curvature(dtype, loss=SquaredHinge()), CLASSED),
    "path of values": (lambda dtype: path_curvature(dtype, NUMBERS), NUMBERED),
    "gradient of a loss": (loss_gradient, CLASSED),
    "gradient of a loss of values": (lambda dtype: loss_gradient(dtype, NUMBERS), NUMBERED),
    "gradient of the joint loss": (lambda dtype: loss_gradient(dtype, adjoints=False), CLASSED),
    "networks": (networks, (X, CODES, None)),
    "networks of numbers": (lambda dtype: networks(dtype, NUMBERS), (X, VALUES, None)),
    "networks held out": (lambda dtype: networks(dtype, gradient=False), (X, CODES, None)),
    "networks side by side": (lambda dtype: networks(dtype, widths=(40, 100, 60)), (X, CODES, None)),
    "scores": (lambda dtype: losses(1, 1, dtype), CLASSED),
    "scores of trials": (lambda dtype: losses(5, 12, dtype), CLASSED),
    **{
        f"scatter {of}": (lambda dtype, of=of: ScatterProgram((MAPS[of].at(dtype),), N, N), (X,))
        for of in ("fourier", "nystroem", "additive", "side by side")
    },
    "scatter of two": (
        lambda dtype: ScatterProgram((MAPS["odd"].at(dtype), MAPS["nystroem"].at(dtype)), N, N),
        (X,),
    ),
    **{f"rows {of}": (lambda dtype, of=of: FeatureRowsProgram(gram(of, dtype)), CLASSED) for of in MAPS},
    "rows numbers": (lambda dtype: FeatureRowsProgram(gram("fourier", dtype, NUMBERS)), NUMBERED),
    "top": (top, WEIGHTED),
    "sample": (lambda dtype: sample(), WEIGHTED),
    "sample far away": (lambda dtype: sample(Far(GAUSSIAN, np.full(M, 0.3), X[:150])), WEIGHTED),
    "counts": (lambda dtype: CountProgram(scores(dtype), np.arange(C), None), (X, CODES)),
    "counts of probabilities": (lambda dtype: CountProgram(scores(dtype), np.arange(C), None, Softmax()), (X, CODES)),
    "errors": (lambda dtype: ErrorProgram(scores(dtype)), (X, VALUES)),
    "labels": (lambda dtype: LabelProgram(), (CODES, None)),
    "values": (lambda dtype: ValueProgram(), (VALUES, None)),
    "moments": (lambda dtype: MomentProgram(GAUSSIAN, 1.0), WEIGHTED),
    "spread": (lambda dtype: FeatureSpreadProgram(MAPS["side by side"].at(np.dtype(dtype))), WEIGHTED),
    "squares": (lambda dtype: SquaresProgram(MAPS["side by side"]), NUMBERED),
    "histogram": (lambda dtype: HistogramProgram("who"), (X,)),
    "admm": (admm, CLASSED),
    "admm that tests": (lambda dtype: admm(dtype, tests=1), CLASSED),
    "norms": (lambda dtype: NormProgram(), (X,)),
}
SMALL = ("labels", "values", "moments", "squares", "histogram")
"""Records of a few numbers for each column, beside tiles of which a program does not know the width."""


def program_classes():
    """Every class that a pass could be given."""
    names = [f"dkl.sums.{module.name}" for module in pkgutil.iter_modules(dkl.sums.__path__)]
    found = set()
    for name in [*names, "dkl.learn.evaluate"]:
        for _, cls in inspect.getmembers(importlib.import_module(name), inspect.isclass):
            if cls.__module__ == name and all(callable(getattr(cls, verb, None)) for verb in ("start", "add")):
                found.add(cls)
    return found - {TreeProgram}


def programs():
    """Those classes that sum blocks: a tree of sums has `add` too, but no workspace."""
    return sorted((cls for cls in program_classes() if hasattr(cls, "workspace")), key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", programs())
def test_every_program_has_an_example_and_states_its_cost(cls):
    """A new program is found here."""
    examples = [make(np.float64) for make, _ in EXAMPLES.values()]
    own = [program for program in examples if type(program) is cls]
    assert own, f"{cls.__name__} has no example in this file"
    for program in own:
        cost = program.cost()
        assert isinstance(cost, Cost)
        assert cost.rows_wanted == program.rows_wanted
        assert cost.name == program.task


def test_the_sweep_finds_them():
    """Programs of sums, and of evaluation."""
    assert len(programs()) >= 12
    assert {GramProgram, PullbackProgram, CountProgram} <= set(programs())


def held(value):
    """Bytes of all arrays in a record."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(map(held, value))
    if isinstance(value, dict):
        return held(list(value.values()))
    return held([getattr(value, f.name) for f in dataclasses.fields(value)]) if dataclasses.is_dataclass(value) else 0


def peak(program, data):
    """Bytes that adding one block takes at most."""
    sums, space, rows = program.start(), program.workspace(), min(N, program.rows_wanted)
    block = tuple(None if part is None else part[:rows] for part in data)
    program.add(program.start(), space, 0, 0, block)  # what is imported and cached by the first call is no part of it
    tracemalloc.start()
    try:
        program.add(sums, space, 0, 0, block)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_workspace_and_sums_are_stated(name, dtype):
    """Arrays that a thread begins with."""
    program = EXAMPLES[name][0](dtype)
    cost = program.cost()
    assert held(program.workspace()) <= cost.thread_bytes
    assert held(program.start()) <= cost.sums_bytes


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in SMALL])
def test_what_is_stated_is_what_is_taken(name, dtype, kind):
    """All arrays of a thread while it adds a block: at most what is stated, and a third of it or more."""
    make, data = EXAMPLES[name]
    program = make(dtype)
    cost, sizes = program.cost(), Sizes(N, M, np.dtype(dtype), row_bytes=8 * M)
    if kind == "sparse":
        rows = sp.csr_array(data[0])
        data = (rows, *data[1:])
        sizes = dataclasses.replace(sizes, row_bytes=-(-(rows.data.nbytes + rows.indices.nbytes) // N))
    block = sizes.block_of(cost.rows_wanted)
    beside = block * (sizes.block_row_bytes(cost.columns) + cost.row_bytes) + cost.sums_bytes
    stated = cost.thread_bytes + cost.sums_bytes + (cost.sparse_bytes if kind == "sparse" else 0)
    taken = peak(program, data) + held(program.workspace()) + held(program.start())
    assert taken <= stated + beside + 2**18
    assert stated <= 3 * taken + 2**20


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in SMALL])
def test_parameters_that_travel_are_stated(name):
    """Arrays of a program and of its map."""
    program = EXAMPLES[name][0](np.float32)
    size = {}

    def walk(value):
        if isinstance(value, np.ndarray):
            size[id(value)] = value.nbytes
        elif isinstance(value, tuple | list | dict):
            for part in value.values() if isinstance(value, dict) else value:
                walk(part)
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                walk(getattr(value, field.name))

    walk(program)
    assert sum(size.values()) <= program.cost().parameter_bytes + 2**14
