"""Which tests are nearest to a module: tests/X/test_Y.py of dkl/X/Y.py, those of its layer, and what is listed here."""

from __future__ import annotations

from pathlib import Path

LAYERS = {
    "kernels": ["tests/kernels", "tests/features", "tests/solvers/test_exact_ridge.py"],
    "features": [
        "tests/contracts/test_maps.py",
        "tests/features",
        "tests/sums",
        "tests/learn/test_hypergradient.py",
        "tests/estimators/test_single.py",
    ],
    "losses": ["tests/contracts/test_losses.py", "tests/sums/test_losses.py", "tests/sums/test_pullback.py"],
    "sums": ["tests/sums", "tests/learn/test_hypergradient.py", "tests/learn/test_ridge.py"],
    "solvers": ["tests/solvers", "tests/learn/test_hypergradient.py", "tests/learn/test_ridge.py"],
    "prepare": ["tests/prepare", "tests/estimators/test_single.py"],
    "learn": ["tests/learn/test_ridge.py", "tests/prepare/test_prepare.py", "tests/estimators/test_single.py"],
    "store": ["tests/store"],
    "engine": [
        *(f"tests/engine/test_{name}.py" for name in ("progress", "row_readers", "sparse", "stream", "tables")),
        "tests/engine/test_tasks.py",
        "tests/estimators/test_inputs.py",
    ],
}
"""Tests that every module of a layer is tried with: folders, or files."""

PCA = ["tests/estimators/test_pca.py", "tests/estimators/test_pca_channels.py"]
STOPPING = ["tests/learn/test_early_stopping.py", "tests/learn/test_alpha_choice.py"]
LEARNING = [
    "tests/learn/test_hypergradient.py",
    "tests/learn/test_bandwidth.py",
    "tests/estimators/test_learning.py",
    *STOPPING,
]
LOG_LOSS = ["tests/learn/test_redrawn_steps.py", "tests/estimators/test_learning.py"]
NYSTROEM = ["tests/estimators/test_nystroem.py"]
CHI2 = ["tests/estimators/test_chi2.py", "tests/estimators/test_exp_chi2.py"]
DATASETS = ["tests/prepare/test_ingest.py", "tests/estimators/test_datasets.py"]
ANSWERS = ["tests/engine/test_answer_regions.py"]
WHITENED = ["tests/store/test_zca.py", "tests/store/test_whitened_sets.py"]
RESUMED = ["tests/learn/test_checkpoint_learning.py", "tests/learn/test_resumable_pass.py"]
INTERRUPTED = ["tests/learn/test_interrupt.py", "tests/learn/test_limits.py"]
CASTS = ["tests/estimators/test_silent_casts.py"]
CLUSTER = ["tests/engine/test_cluster.py"]
GABOR = ["tests/features/test_gabor.py", "tests/estimators/test_gabor.py", "tests/estimators/test_infinite_gabor.py"]
ADMM = ["tests/solvers/test_admm.py", "tests/learn/test_admm_master.py"]
WALKS = ["tests/engine/test_walk.py"]

MODULES = {
    "kernels/additive.py": CHI2,
    "kernels/exponentiated.py": CHI2,
    "kernels/values.py": NYSTROEM,
    "features/additive.py": CHI2,
    "features/gabor.py": GABOR,
    "features/gabor_filters.py": GABOR,
    "features/gabor_groups.py": GABOR,
    "features/additive_rows.py": CHI2,
    "features/landmark_weights.py": NYSTROEM,
    "features/side_by_side.py": [*CHI2, *PCA],
    "features/nystroem.py": NYSTROEM,
    "features/projected.py": PCA,
    "features/refusal.py": CASTS,
    "features/stored.py": [*NYSTROEM, *PCA, "tests/estimators/test_persist.py"],
    "features/rows.py": [*CASTS, "tests/engine/test_sparse_checks.py"],
    "features/sparse.py": ["tests/engine/test_sparse_checks.py"],
    "sums/exact_product.py": WHITENED,
    "sources/recipe_matrices.py": WHITENED,
    "sums/histogram.py": CHI2,
    "sums/losses.py": LOG_LOSS,
    "sums/sample.py": NYSTROEM,
    "sums/scatter.py": PCA,
    "sums/spread.py": LEARNING,
    "sums/targets.py": ["tests/estimators/test_scales.py", "tests/estimators/test_bad_input.py"],
    "sums/top.py": ["tests/learn/test_thresholds.py"],
    "solvers/adam.py": LOG_LOSS,
    "solvers/axes.py": PCA,
    "solvers/evidence.py": PCA,
    "solvers/exact_ridge.py": ["tests/test_exact.py"],
    "solvers/spectral_gradient.py": ["tests/contracts/test_solvers.py", "tests/exact/test_gmkl.py"],
    "learn/kernel_machines.py": ["tests/exact/test_gmkl.py"],
    "learn/kernel_weights.py": ["tests/exact/test_gmkl.py"],
    "prepare/base_kernels.py": ["tests/exact/test_gmkl.py"],
    "prepare/grams.py": ["tests/exact/test_gmkl.py"],
    "features/base_kernel.py": ["tests/exact/test_gmkl.py"],
    "solvers/hypergradient.py": LEARNING,
    "solvers/lbfgs.py": LEARNING,
    "solvers/nodes.py": [*CHI2, "tests/features/test_additive.py"],
    "solvers/scalar.py": LEARNING,
    "solvers/whiten.py": NYSTROEM,
    "prepare/additive.py": [*CHI2, "tests/features/test_additive.py"],
    "learn/thresholds.py": ["tests/learn/test_model.py"],
    "learn/channels.py": [*CHI2, *PCA, "tests/learn/test_pca.py"],
    "learn/program_digest.py": ["tests/learn/test_program_digest.py", "tests/learn/test_checkpoint_moved.py"],
    "learn/bandwidth.py": [*LEARNING, *RESUMED, *INTERRUPTED],
    "learn/exact.py": ["tests/test_exact.py"],
    "prepare/input_ranges.py": ["tests/test_plot.py", *INTERRUPTED],
    "learn/history.py": [*LEARNING, *RESUMED],
    "prepare/ingest.py": DATASETS,
    "prepare/saved_map.py": RESUMED,
    "learn/resumable_pass.py": RESUMED,
    "learn/redrawn_steps.py": LOG_LOSS,
    "learn/model.py": ["tests/estimators/test_persist.py", "tests/learn/test_thresholds.py"],
    "prepare/landmarks.py": NYSTROEM,
    "learn/bandwidth_steps.py": [*LEARNING, "tests/learn/test_redrawn_steps.py"],
    "learn/parameters.py": [*LEARNING, "tests/test_exact.py"],
    "learn/pca.py": PCA,
    "learn/penalised_loss.py": ["tests/learn/test_penalised_loss.py"],
    "learn/plan.py": ["tests/engine/test_memory.py", *PCA],
    "prepare/draw.py": [*LEARNING, "tests/estimators/test_scales.py", "tests/prepare/test_prepare.py"],
    "prepare/scales.py": [*LEARNING, "tests/estimators/test_scales.py", "tests/prepare/test_prepare.py"],
    "prepare/targets.py": [*LEARNING, "tests/prepare/test_prepare.py"],
    "learn/redrawn.py": [*LOG_LOSS, *RESUMED],
    "learn/search.py": [*LEARNING, *RESUMED],
    "features/slices.py": ["tests/test_plot.py"],
    "learn/stages.py": LEARNING,
    "learn/iterate.py": [*RESUMED, *INTERRUPTED],
    "learn/watchers.py": ["tests/learn/test_iterate.py", *RESUMED, *INTERRUPTED],
    "learn/run.py": ["tests/learn/test_iterate.py"],
    "learn/admm_master.py": ADMM,
    "losses/prox.py": ADMM,
    "sums/admm.py": ADMM,
    "sums/row_memory.py": [*ADMM, *WALKS],
    "sums/row_norms.py": GABOR,
    "prepare/gabor.py": GABOR,
    "prepare/gabor_candidates.py": GABOR,
    "engine/walk.py": WALKS,
    "sources/patches.py": ["tests/store/test_patch_sets.py"],
    "learn/objectives.py": ["tests/learn/test_bandwidth_steps.py", *LEARNING],
    "learn/alpha.py": ["tests/learn/test_bandwidth_steps.py", *LEARNING],
    "learn/adjoints.py": ["tests/learn/test_bandwidth_steps.py", *LEARNING],
    "learn/learners.py": LEARNING,
    "learn/learned.py": LEARNING,
    "learn/exact_problem.py": ["tests/learn/test_exact.py", "tests/test_exact.py"],
    "store/packed.py": RESUMED,
    "learn/unlabelled.py": [*PCA, "tests/learn/test_pca.py"],
    "learn/ridge.py": STOPPING,
    "store/answers.py": DATASETS,
    "store/answer_regions.py": ANSWERS,
    "store/feature_regions.py": ANSWERS,
    "store/regions.py": ANSWERS,
    "estimators/written.py": ANSWERS,
    "estimators/map_transformer.py": ANSWERS,
    "engine/stream.py": ANSWERS,
    "store/assemble.py": DATASETS,
    "store/checkpoint.py": [*RESUMED, "tests/learn/test_checkpoint_moved.py"],
    "store/dataset.py": DATASETS,
    "store/decide.py": DATASETS,
    "store/folder.py": DATASETS,
    "store/ingest.py": DATASETS,
    "store/recipe.py": [*DATASETS, *WHITENED],
    "store/scale_steps.py": WHITENED,
    "store/zca.py": WHITENED,
    "store/column_constants.py": ["tests/store/test_constants.py", "tests/store/test_survey.py"],
    "store/equal_blocks.py": ["tests/store/test_constants.py", *WHITENED],
    "store/record.py": ["tests/estimators/test_persist.py"],
    "store/request.py": DATASETS,
    "store/staging.py": DATASETS,
    "store/survey.py": DATASETS,
    "engine/active.py": CLUSTER,
    "engine/cluster.py": CLUSTER,
    "engine/interrupt.py": INTERRUPTED,
    "engine/labels.py": ["tests/estimators/test_labels.py"],
    "engine/names.py": CLUSTER,
    "engine/sparse.py": ["tests/engine/test_sparse_checks.py", "tests/engine/test_sparse_rows.py"],
    "engine/stamp.py": ["tests/engine/test_versions.py", "tests/engine/test_version_words.py"],
    "engine/tables.py": ["tests/estimators/test_labels.py", *CASTS, "tests/engine/test_sparse_checks.py"],
    "engine/handles.py": CLUSTER,
    "engine/memory.py": [
        *(f"tests/engine/test_{name}.py" for name in ("memory", "memory_limits")),
        "tests/test_cost.py",
    ],
    "engine/passes.py": [*CLUSTER, "tests/engine/test_cluster_kinds.py"],
    "engine/place.py": [*CLUSTER, "tests/learn/test_learning_cluster.py"],
    "engine/progress.py": ["tests/engine/test_progress_clock.py"],
    "engine/reduce.py": CLUSTER,
    "engine/threads.py": ["tests/solvers/test_factor.py"],
    "engine/versions.py": ["tests/engine/test_version_words.py"],
}
"""Further tests, by module."""

ON_CLUSTERS = {
    "active.py", "cluster.py", "handles.py", "names.py", "passes.py", "place.py", "reduce.py", "stamp.py",
    "versions.py",
}  # fmt: skip
"""Modules of the engine that act on a cluster; all others are tried without starting one."""


TOO_LONG = [
    f"tests/engine/test_memory.py::{name}"
    for name in (
        "test_a_real_peak_keeps_the_promise",
        "test_four_times_the_rows_need_the_same_memory",
        "test_learning_keeps_the_promise",
        "test_transformers_keep_the_promise",
    )
]
"""Tests of five seconds and more that measure a peak; a trial goes without them."""


def needs_cluster(file: str) -> bool:
    """Whether tests that start a cluster are run."""
    path = Path(file)
    return path.parent.name == "engine" and path.name in ON_CLUSTERS


def mirrors_of(root: Path, file: str) -> list[str]:
    """Test files of a module, by name; those that are named but do not exist are an error."""
    package, layer, name = Path(file).parts[0], Path(file).parts[1], Path(file).name
    own = root / "tests" / layer / f"test_{name}"
    listed = [*LAYERS.get(layer, []), *MODULES.get(f"{layer}/{name}", [])]
    paths = [root / entry for entry in listed] + ([own] if own.exists() else [])
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise FileNotFoundError(f"{missing[0]} is listed as a mirror of {package}/{layer}/{name}; correct mirrors.py")
    files = {test for path in paths for test in (path.glob("test_*.py") if path.is_dir() else [path])}
    return sorted(test.relative_to(root).as_posix() for test in files)
