"""The pass of sums against dense products of float64 features."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import sparse

from dkl.prepare.draw import build_map
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram, sum_by_class
from dkl.sums.order_free import rounder
from dkl.sums.symmetric import unpack
from dkl.sums.targets import Targets
from dkl.sums.tiles import most_rows, tile_rows

N, M, D, SEED = 800, 3, 33, 5
TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}
LABELS = np.array(["ant", "bee", "cat", "dog"])
NAMES = ("weight", "gram", "cross", "feature_sum", "target_sum", "target_square")


def make_map(d=D, sigma=0.7, m=M):
    params = {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "frequencies": "iid", "form": "paired"}
    params |= {"n_components": d, "groups": None, "sigma": sigma}
    return build_map(params, m, {}, np.random.default_rng(0), None)[0]


FEATURES = make_map()


def draw(kind, weighted, n=N):
    """X in float32 numbers, y, weights, and the dense targets that y stands for."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, M)).astype(np.float32)
    w = rng.gamma(2, size=n) * (rng.random(n) > 0.1) if weighted else None
    ones = np.ones(n) if w is None else w
    if kind == "classes":
        codes = rng.integers(0, len(LABELS), n)
        return X, LABELS[codes], w, np.eye(len(LABELS))[codes], Targets(ones.sum(), len(LABELS), classes=LABELS)
    y = rng.normal(size=(n, 2)) * [1, 50] + [3, -1]
    shift = np.array([2.5, -4.0])
    absolute, square = ones @ np.abs(y - shift), ones @ (y - shift) ** 2
    return X, y, w, y - shift, Targets(ones.sum(), 2, shift=shift, absolute=absolute, square=square)


def run(program, X, y, w, chunk, order=None):
    """Sums of the blocks, added in the order given."""
    sums, space = program.start(), program.workspace()
    starts = range(0, len(y), chunk)
    for block in range(len(starts)) if order is None else order:
        rows = slice(starts[block], starts[block] + chunk)
        program.add(sums, space, block, rows.start, (X[rows], y[rows], None if w is None else w[rows], None))
    return sums


def dense(kind, X, w, Y, rows):
    """The same sums from dense float64 matrices, features unscaled, and the scale of a sum that may cancel."""
    Psi = FEATURES.at(np.float64).transform(X[rows]) / FEATURES.scale
    W, Y = (np.ones(len(Psi)) if w is None else w[rows]), Y[rows]
    return {
        "weight": W.sum(),
        "gram": Psi.T @ (W[:, None] * Psi),
        "cross": Y.T @ (W[:, None] * Psi),
        "feature_sum": W @ Psi,
        "target_sum": W @ Y,
        "scale": (W @ np.abs(Y)).max(),
        "target_square": W @ Y**2 if kind == "values" else np.zeros(len(LABELS)),
    }


def assert_sums(sums, k, expected, tolerance):
    for name in NAMES:
        found = getattr(sums, name)[k]
        found = unpack(found, D) if name == "gram" else found
        scale = expected["scale"] if name == "target_sum" else np.abs(expected[name]).max()
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("chunk", [1, 7, 64, N])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_sums_are_the_dense_products(kind, weighted, folds, dtype, chunk):
    """Psi'WPsi, Y'WPsi (of one-hot rows for classes) and the sums that centre them, in each fold."""
    X, y, w, Y, targets = draw(kind, weighted)
    program = GramProgram(FEATURES.at(dtype), targets, N, folds=folds, seed=SEED)
    sums = run(program, X, y, w, chunk)
    member = fold_of(0, N, folds, SEED)
    for k in range(folds):
        assert_sums(sums, k, dense(kind, X, w, Y, member == k), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_order_of_blocks_does_not_change_the_bits(kind, dtype):
    """Blocks added in another order, and on three workers whose sums are merged, give identical records."""
    X, y, w, _, targets = draw(kind, weighted=True)
    program = GramProgram(FEATURES.at(dtype), targets, N, folds=3, seed=SEED)
    expected = run(program, X, y, w, 64)
    order = np.random.default_rng(2).permutation(-(-N // 64))
    merged = program.start()
    for share in (order[9:], order[:4], order[4:9]):
        merged.merge(run(program, X, y, w, 64, share))
    for other in (run(program, X, y, w, 64, order), merged):
        for name in NAMES:
            assert getattr(other, name).tobytes() == getattr(expected, name).tobytes(), name


def test_given_folds_are_used():
    """Fold numbers that come with the data stand in place of the hash."""
    X, y, _, Y, targets = draw("values", weighted=False)
    fold = np.arange(N) // (N // 2)
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=2)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (X, y, None, fold))
    for k in range(2):
        assert_sums(sums, k, dense("values", X, None, Y, fold == k), 1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_class_weight_multiplies_the_rows(weighted):
    """The sums are those of rows weighted by sample weight times the weight of their class."""
    X, y, w, Y, plain = draw("classes", weighted)
    factor = np.array([1.0, 2.0, 0.0, 0.5])
    ones = np.ones(N) if w is None else w
    total = ones * (Y @ factor)
    targets = Targets(total.sum(), plain.n_targets, classes=LABELS, class_weight=factor)
    sums = run(GramProgram(FEATURES.at(np.float64), targets, N), X, y, w, 64)
    assert_sums(sums, 0, dense("classes", X, total, Y, slice(None)), 1e-12)


def test_sparse_blocks_give_the_dense_sums():
    """csr rows, cut into folds and tiles."""
    X, y, w, Y, targets = draw("values", weighted=True)
    X[np.random.default_rng(3).random(X.shape) < 0.7] = 0
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=3, seed=SEED)
    sums = run(program, sparse.csr_array(X), y, w, 300)
    member = fold_of(0, N, 3, SEED)
    for k in range(3):
        assert_sums(sums, k, dense("values", X, w, Y, member == k), 1e-12)


@pytest.mark.parametrize("name", ["gram", "cross", "feature_sum"])
def test_float32_holds_over_a_full_tile(name):
    """8192 rows of nearly constant features, as a small sigma gives, add up to 1e-6 within one float32 tile."""
    rows, features = 8192, make_map(d=8, sigma=0.01)
    X = np.random.default_rng(4).normal(size=(rows, M)).astype(np.float32)
    program = GramProgram(features.at(np.float32), Targets(rows, 2, classes=np.array([0, 1])), 2**18)
    assert program.tile == rows
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (X, np.zeros(rows, int), None, None))
    Psi = features.at(np.float64).transform(X) / features.scale
    expected = {"gram": Psi.T @ Psi, "cross": np.vstack([Psi.sum(0), np.zeros(8)]), "feature_sum": Psi.sum(0)}[name]
    found = getattr(sums, name)[0]
    found = unpack(found, 8) if name == "gram" else found
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * rows)


def test_refused_row_is_noted_and_the_first_one_wins():
    """A NaN stops its block; of several the earliest row of the data is kept, also through merge and copy."""
    X, y, w, _, targets = draw("values", weighted=False)
    X[[70, 500], 1] = np.nan
    program = GramProgram(FEATURES.at(np.float64), targets, N)
    sentence = "X contains NaN at row 70, column 1; remove or impute it"
    assert run(program, X, y, w, 64, [12, 7, 1, 0]).refusal == (70, sentence)
    late, early = run(program, X, y, w, 64, [7]), run(program, X, y, w, 64, [1])
    assert late.refusal[0] == 500
    for a, b in ((late, early), (early, late)):
        merged = a.copy()
        merged.merge(b)
        assert merged.refusal == (70, sentence)


def test_copy_shares_nothing():
    """Adding to a copy leaves the original."""
    X, y, w, _, targets = draw("values", weighted=False)
    sums = run(GramProgram(FEATURES.at(np.float64), targets, N), X, y, w, N)
    twin = sums.copy()
    twin.merge(sums)
    for name in (f.name for f in fields(sums) if f.name != "refusal"):
        np.testing.assert_array_equal(getattr(twin, name), 2 * getattr(sums, name))


def test_empty_block_adds_nothing():
    """No rows, no change."""
    *_, targets = draw("values", weighted=False)
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=3)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (np.empty((0, M)), np.empty((0, 2)), None, None))
    assert all(not getattr(sums, name).any() for name in NAMES)


@pytest.mark.parametrize("n", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("d", [1, 1000, 30_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_workspace_holds_every_tile(n, d, dtype):
    """round(n / tile) equal parts never exceed the workspace, for every block up to eight tiles."""
    tile = tile_rows(n, d, np.dtype(dtype))
    for rows in range(1, 8 * tile, max(1, tile // 100)):
        parts = max(1, round(rows / tile))
        assert max((i + 1) * rows // parts - i * rows // parts for i in range(parts)) <= most_rows(tile)


@pytest.mark.parametrize(
    ("n", "d", "dtype", "rows"),
    [
        (10**7, 10, "float32", 8192),
        (10**7, 10, "float64", 4096),
        (100, 10, "float64", 512),
        (64_000, 10, "float64", 2000),
        (10**7, 20_000, "float64", 96 * 2**20 // 160_000),
        (10**7, 10**6, "float64", 256),
    ],
)
def test_rows_of_a_tile(n, d, dtype, rows):
    """At most 8192 rows of four bytes, a thirty-second of all rows, 96 MiB; never below 256."""
    assert tile_rows(n, d, np.dtype(dtype)) == rows
    assert most_rows(rows) == int(1.5 * rows) + 1


def test_passes_that_say_nothing_more():
    """One fold, seed zero, nothing held out and nothing unseen."""
    *_, targets = draw("values", weighted=False)
    program = GramProgram(FEATURES.at(np.float64), targets, N)
    assert (program.folds, program.seed, program.held, program.unseen, program.task) == (1, 0, None, None, "gram")
    assert program.rows_wanted == program.tile == tile_rows(N, D, np.dtype(np.float64))
    many = GramProgram(FEATURES.at(np.float64), targets, N, folds=3)
    assert many.rows_wanted == 3 * many.tile
    assert many.with_map(make_map(d=12)).features.map.n_features == 12
    space, product = program.workspace()
    assert (space.shape, product.shape) == ((most_rows(program.tile), D), (D * D,))


def test_folds_of_rows():
    """By the hash of the index; a share that is held out; given ones; and the last fold for the unseen share."""
    *_, targets = draw("values", weighted=False)
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=3, seed=SEED)
    np.testing.assert_array_equal(program.fold_of(10, 50), fold_of(10, 50, 3, SEED))
    given = np.arange(40) % 3
    np.testing.assert_array_equal(program.fold_of(10, 50, given), given)
    held = replace(program, folds=2, held=(1, 4))
    np.testing.assert_array_equal(held.fold_of(10, 50), fold_of(10, 50, 4, SEED) < 1)
    unseen = replace(program, unseen=(1, 5))
    hidden = fold_of(10, 50, 5, SEED + 1) < 1
    np.testing.assert_array_equal(unseen.fold_of(10, 50), np.where(hidden, 2, fold_of(10, 50, 2, SEED)))
    np.testing.assert_array_equal(unseen.fold_of(10, 50, given), np.where(hidden, 2, given))


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_rows_of_positive_weight_are_counted(kind):
    """By fold; a row without weight is none."""
    X, y, w, _, targets = draw(kind, weighted=True)
    sums = run(GramProgram(FEATURES.at(np.float64), targets, N, folds=3, seed=SEED), X, y, w, 64)
    assert sums.rows.tolist() == [np.count_nonzero(w[fold_of(0, N, 3, SEED) == k]) for k in range(3)]


def test_bounds_of_the_sums():
    """Four times the weight, and of values four times the sums of their sizes and squares."""
    *_, targets = draw("values", weighted=True)
    program = GramProgram(FEATURES.at(np.float64), targets, N)
    assert program.bounds["count"] == rounder(4 * targets.weight)
    np.testing.assert_array_equal(program.bounds["cross"], rounder(4 * targets.absolute)[:, None])
    np.testing.assert_array_equal(program.bounds["sum"], rounder(4 * targets.absolute))
    np.testing.assert_array_equal(program.bounds["square"], rounder(4 * targets.square))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 200])
def test_sums_by_class(n):
    """Of classes that are there, by runs of 32 rows; long runs are added in float64."""
    rng = np.random.default_rng(n)
    Psi, codes, root = rng.normal(size=(n, 4)), rng.integers(0, 3, n) * 5, rng.random(n)
    present, part = sum_by_class(Psi, codes, root)
    assert present.tolist() == sorted(set(codes.tolist()))
    for label, row in zip(present, part, strict=True):
        np.testing.assert_allclose(row, root[codes == label] @ Psi[codes == label], rtol=1e-12)
    small = Psi.astype(np.float32)
    assert sum_by_class(small, np.zeros(n, int), root.astype(np.float32))[1].dtype == (
        np.float64 if n > 32 else np.float32
    )


def test_many_classes_at_once():
    """More than are added to together, with labels that are not there."""
    X, y = draw("values", weighted=False)[0], np.arange(N) % 150 * 2
    targets = Targets(float(N), 300, classes=np.arange(300))
    sums = run(GramProgram(FEATURES.at(np.float64), targets, N), X, y, None, 400)
    Psi = FEATURES.at(np.float64).transform(X) / FEATURES.scale
    np.testing.assert_allclose(sums.cross[0], np.eye(300)[y].T @ Psi, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(sums.target_sum[0], np.bincount(y, minlength=300))
