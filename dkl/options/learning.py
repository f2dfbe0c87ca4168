"""Parameters of the ridge weights and of learning sigma."""

from __future__ import annotations

from dkl.options import parse, rules
from dkl.options.option import Option

LEARN = ("none", "validation", "cv", "gcv", "joint", "log_loss", "frequencies")
"""What sigma can be learned for."""
SOLVERS = ("auto", "cholesky", "cg", "fista", "lbfgs", "newton")
"""How weights can be found."""

LEARNING = (
    Option(
        "loss", "square", "Loss to minimise, e.g. log_loss or huber.", takes="str", rule=rules.loss,
        doc='For classes: "square" (one against all, -1 and +1), "log_loss" (softmax; predict_proba), "logistic" (log '
        'loss of each class against the rest; predict_proba), "squared_hinge", "smoothed_hinge". For numbers: '
        '"square", "huber", "epsilon_insensitive". "softmax" is another name of "log_loss". Parameters follow a colon: '
        '"huber:delta=2" (1.35, where the loss turns linear), "epsilon_insensitive:epsilon=0.1,gamma=10" (the width '
        'without loss, and the sharpness of its corners), both in the units of y; "smoothed_hinge:mu=0.5" (width of '
        'the rounded corner), "log_loss:sharpness=1" (factor of the scores). alpha is the penalty beside the sum of '
        "all losses; scikit-learn's C is 1 / alpha.",
    ),
    Option(
        "penalty", "l2", "Penalty of the weights, e.g. l1.", takes="str", rule=rules.penalty,
        doc='"l2": half the sum of squares. "l1": sum of absolute values, many weights are zero. "group_l21" and '
        '"l1_linf": the weights of a feature for all outputs are zero together. Behind a colon a share of l2 beside '
        'it: "l1:ridge=0.5"; "elastic" is "l1:ridge=1".',
    ),
    Option(
        "solver", "auto", "How the weights are found, e.g. cg.", choices=SOLVERS,
        doc='"auto" takes the one with the least work, which plan prints. "cholesky": squared errors, one pass for the '
        'gram, or for the rows if they are fewer than the features. "cg": squared errors by preconditioned conjugate '
        'gradients, for more features than a gram allows; a pass for each step. "fista": squared errors with a penalty '
        'that makes zeros, from the sums of one pass. "lbfgs": any loss with l2, one pass for the gram, then one for '
        'each step. "newton": any loss and penalty, two passes for each step.',
    ),
    Option(
        "solver_tol", 1e-4, "Tolerance of the weights (certificate_).", takes="float", parse=parse.number,
        rule=rules.positive,
        doc="The solver stops when its certificate is below this: the relative residual, the gradient over that at "
        "zero weights, the KKT residual, or the duality gap. certificate_ holds the value reached.",
    ),
    Option(
        "alpha", "auto", "Ridge penalty, or list for cv: 0.1,1.", takes='float, array or "auto"',
        parse=parse.numbers_or("auto"), rule=rules.numbers_or("auto"),
        doc="The alpha of sklearn.linear_model.Ridge: a number, one per output, or with cv the candidates. A number is "
        'kept. "auto" learns alpha together with sigma; with cv it chooses from 0.0001, 0.001 ... 1000 and extends the '
        'grid while an end is best (solver="fista": 16 shares, 0.56 ... 0.0001, of the least alpha at which all '
        'weights are zero); otherwise, and with learn="joint", it is 1. For squared errors alpha is never chosen below '
        "1e-6 of the largest eigenvalue.",
    ),
    Option(
        "cv", None, "Number of cross-validation folds, e.g. 5.", takes="int, array of folds or splitter", parse=int,
        optional=True, rule=rules.folds, sample=5,
        doc='With learn="none", the folds that choose one alpha, from the same pass. With learn="cv", "log_loss" or '
        '"frequencies", the folds of the objective (None: 5). Give a number of folds, the fold of each row, or a '
        "scikit-learn splitter. The scores are in cv_results_: minus the mean squared error (for classes, of targets "
        "-1 and +1); under another loss, minus the mean loss of the held-out rows.",
    ),
    Option(
        "learn", "none", "Objective for sigma, e.g. cv or validation.", choices=LEARN, optional=True,
        doc='Sigma is learned by gradient through the ridge solution, one per group. "none" (or None): sigma is kept. '
        '"validation": squared error on held-out rows. "cv": squared error on each fold in turn. "gcv": generalised '
        'cross-validation, which holds no rows out. "joint": the training objective itself, for comparison; it falls '
        'with alpha, so it cannot choose alpha, and it prefers kernels that are too narrow. "log_loss" (classes only): '
        "log loss on each fold in turn; use it for accuracy with few rows and many inputs. Each step draws fresh "
        "frequencies, so that sigma cannot overfit one frequency sample, and a fresh sample of about 10,000 rows; it "
        'takes three passes over them. "frequencies": every frequency and phase is learned on its own, on the folds of '
        "cv, with the best weights at every step; alpha is fixed meanwhile, at 1, 4, 16 ... (`starts` of them) times "
        "its best value at the start.",
    ),
    Option(
        "learn_components", None, "Features to learn sigma with, e.g. 1000.", takes="int", parse=int, optional=True,
        rule=rules.count, sample=100,
        doc="Sigma is learned with so many frequencies, and the weights have n_components features, or landmarks. The "
        "sigmas of the inputs carry over; one number times all of them, and alpha, are chosen again by held-out rows, "
        "as more features pay for a narrower kernel. scales_ tells what was tried. None: n_components.",
    ),
    Option(
        "validation", 0.2, "Share of rows held out by learn=validation.", takes="float or boolean mask",
        parse=parse.number, rule=rules.held_share,
        doc="Rows are chosen by a hash of their number. A mask is True for each held-out row.",
    ),
    Option(
        "sigma_l1", 0.0, "L1 penalty on sigma; switches inputs off.", takes="float", parse=parse.number,
        rule=rules.nonnegative,
        doc="In units of the starting sigma and of the variance of y. Sigmas that end below 0.005 of their start are "
        "set to zero, unless that raises the objective by more than tol. A last stage learns the remaining sigmas "
        "without the penalty; its result is kept if the error falls (refit_errors_).",
    ),
    Option(
        "sigma_l2", 0.0, "L2 penalty on sigma.", takes="float", parse=parse.number, rule=rules.nonnegative,
        doc="In the same units as sigma_l1.",
    ),
    Option(
        "starts", 3, "Number of starting points of sigma.", takes="int", parse=int, rule=rules.count,
        doc="Learning starts from 1, 1/3, 3, 1/9 ... times sigma on about 10,000 rows and continues from the best; "
        "log_loss has one start.",
    ),
    Option(
        "subsample", None, "Share of the blocks to learn sigma on (all).", takes="float", parse=parse.number,
        optional=True, rule=rules.block_share, sample=0.1,
        doc="The starts run on about 10,000 rows in at least 8 blocks; the share then grows fourfold per stage up to "
        "this one (None: all blocks). With log_loss, the share of each step. The weights are always solved on all "
        "rows.",
    ),
    Option(
        "max_iter", 50, "Most iterations a stage (weights: 10 times it).", takes="int", parse=int, rule=rules.count,
        doc="An iteration is one accepted step of sigma. log_loss takes exactly max_iter steps. Solvers that find the "
        'weights step by step ("cg", "lbfgs", "newton") may take ten times max_iter steps.',
    ),
    Option(
        "tol", 0.001, "Relative decrease at which learning stops.", takes="float", parse=parse.number,
        rule=rules.positive,
        doc="Learning has converged when the objective falls by less than this twice in a row, or once if the next "
        "step promises no more. log_loss ignores it.",
    ),
    Option(
        "max_time", None, "Most seconds of learning (no limit).", takes="float", parse=parse.number, optional=True,
        rule=rules.positive, sample=600.0,
        doc="No iteration begins after this time.",
    ),
    Option(
        "early_stopping", "auto", "Share of rows for early stopping, or none.", takes='float or "auto"',
        parse=parse.share, optional=True, rule=rules.early_share,
        doc="These rows, 0.01 to 0.5 of all, are in no fold. Learning stops when their error has not fallen for five "
        'iterations, and returns the iteration where it was least. "auto": 0.1 if frequencies or more than ten sigmas '
        "are learned and that leaves at least 30 rows; off with sigma_l1, joint and log_loss. None: off. The weights "
        "are always solved on all rows.",
    ),
    Option(
        "reduce", None, "Principal axes to keep: 500, 0.9 (share), mle.", takes='int, float or "mle"',
        parse=parse.axes, optional=True, rule=rules.axes, sample=0.9,
        doc="A number of axes, the share of variance they must explain (below 1), or \"mle\": Minka's evidence "
        "decides. The axes come from the sums of the same pass; the weights are mapped back, so predicting costs the "
        "same. With learn, sigma and alpha are learned first. reduced_ reports what was kept.",
    ),
    Option(
        "fit_intercept", True, "Fit an intercept: yes or no.", takes="bool", parse=parse.yes, rule=rules.yes_or_no,
        doc="The intercept is not penalised.",
    ),
    Option(
        "class_weight", None, "Class weights: balanced, or a=1,b=5.", takes='dict or "balanced"',
        parse=parse.class_weight, optional=True, sample="balanced",
        doc='"balanced" weighs classes inversely to their frequency (to their total weight, given sample_weight). A '
        "dict maps each class to its weight.",
    ),
    Option(
        "calibrate", None, "Subtract each class's k-th best score (e.g. 500).", takes="int", parse=int, optional=True,
        rule=rules.count, sample=500,
        doc="calibrate=k takes one more pass over X and subtracts from each class the k-th highest score it has on the "
        "training rows, so that every class scores above zero equally often; use it for many classes. Rows of "
        "sample_weight 0 do not count; all others count once. thresholds_ holds what is subtracted (for two classes, "
        "which share one score, half the difference); coef_ and intercept_ do not change. calibrate_scores does the "
        "same on other rows.",
    ),
)  # fmt: skip
