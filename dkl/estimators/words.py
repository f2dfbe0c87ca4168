"""What help() says of the parameters that the estimators of one kernel share."""

from __future__ import annotations

PARAMETERS = """
    Parameters
    ----------
    kernel, n_components, sigma, groups, frequencies, form, skew, n_terms : the map, as in FourierFeatures.
    landmarks : None for Fourier features; "uniform", "kmeans++" or "leverage" for Nystroem features with n_components
        landmarks, as in NystroemFeatures. They have no frequencies, so `frequencies`, `form` and `learn` are not for
        them.
    alpha : ridge penalty with the meaning of sklearn.linear_model.Ridge(alpha): a number, one for each output, or
        with cv the list to choose from. "auto" has it learned together with sigma, or chosen by cv from 0.01 to 1000 by
        tens and on beyond an end that is best; if nothing learns or chooses it (and for learn="joint"), it is 1. It is
        not sought below 1e-6 of the largest eigenvalue. A number stays as it is.
    cv : with learn="none", how one alpha is chosen, from the same single pass; with learn="cv", "log_loss" or
        "frequencies", the folds of the objective (5 if None). A number of folds, the fold of each row, or a
        scikit-learn splitter. If alpha was chosen, scores of all folds are in cv_results_: minus the mean squared error
        (of targets -1 and +1 for classes).
    learn : what sigma is learned for, by gradient through the ridge solution; one sigma for each of `groups`. "none"
        (or None) keeps sigma as it is. "validation": the squared error on rows held out. "cv": the same on every fold
        in turn. "gcv": generalised cross-validation, without holding rows out. "joint": the training objective itself,
        as in the paper that began this. It falls with every fall of alpha, so it must not choose alpha, and it prefers
        kernels that are too narrow: use it to compare. "log_loss" (classes only): the log loss of the scores on every
        fold in turn, by steps over ever new frequencies, so that many sigmas suit the kernel and not one draw of it;
        for accuracy rather than squared errors, where few rows meet many inputs. A step takes three passes over about
        10,000 rows, others each time. "frequencies": every frequency and phase on its own, for the folds of cv (so many
        parameters would learn a few held-out rows by heart), with the best weights at every step. alpha is held
        meanwhile, at 1, 4, 16 ... (`starts` of them) times the best one at the start.
    validation : the share of rows that is held out, by a hash of their number, or True for each row that is.
    sigma_l1, sigma_l2 : penalties on sigma, in units of its start and of the variance of y. sigma_l1 switches inputs
        off: their sigma becomes exactly zero (what is below 0.005 of its start in the end is set to zero, unless the
        objective rises by more than tol). A last stage learns the sigmas that are left without sigma_l1, which
        pulls them all towards zero; it is kept if the error falls (refit_errors_).
    starts : sigma is learned from so many starts (1, 1/3, 3, 1/9 ... times sigma), and on from the best; log_loss has
        one. With sigma="scale" every group starts at its own spread.
    subsample : the share of the blocks on which sigma is learned in the end (with log_loss, of each step), but at least
        eight, spread over the rows; None: all. Starts run on about 10,000 rows in at least 8 blocks, and the share
        grows fourfold from there. The weights are solved for on all rows.
    reduce : keep so many principal axes of the features, or (below 1) as many as have that share of their variance, or
        "mle" (as many as Minka's evidence speaks for), from the sums of the same pass; the weights are folded back, so
        predicting costs the same. With learn, sigma and alpha are learned before. reduced_ says what was kept.
    max_iter, tol, max_time : iterations of each start and of each stage, at most (an iteration is a step that was
        taken; where a start or a stage begins is none); the relative decrease of the objective (twice in a row, or once
        if the next step promises no more) at which learning has converged; seconds after which no further iteration
        begins. log_loss takes max_iter steps, ever smaller ones, whatever tol says.
    early_stopping : the share of the rows that no fold holds, 0.01 to 0.5. Learning stops if their error has not fallen
        for five iterations, and ends at the iteration where it was least. "auto": 0.1 if frequencies or more than ten
        sigmas are learned and that is at least 30 rows (not with sigma_l1, which is a guard of its own, nor for joint,
        for comparison, nor for log_loss, which draws fresh frequencies). None: off. The weights are solved for on all
        rows.
    fit_intercept : an intercept that is not penalised.
    random_state : seed of the frequencies and folds.
    dtype : "float32" or "float64"; None follows the input. Sums over blocks are float64 always.
    place : "scheduler" or "client": where the small solve runs when there is a cluster.
    checkpoint : a folder (path or URL, seen by all workers) that keeps what has been learned after every iteration, and
        what has been summed; a fit of the same parameters and rows goes on from it, with the same bits (only max_iter,
        tol and max_time may be others: learning that had ended at one of them goes on if it is now further away)
        (fit(resume=True) insists that there is one, resume=False begins anew). `save` removes it.
    verbose : 0 for no progress line.

    Attributes
    ----------
    coef_, intercept_ : the weights of the features, as in sklearn.linear_model.
    alpha_ : the penalty used; cv_results_ : scores of every fold and alpha, if cv is given.
    sigma_ : sigma of each input; groups_ : the group of each input; selected_inputs_ : whose sigma is not zero.
    refit_errors_ : errors of sigma_l1's solution and of the refit without it; those of unseen rows if there are any.
    n_iter_ : iterations of all starts and stages together (so up to max_iter times their number, and one more if
        sigma_l1 switched inputs off); history_ : what each of them found, and what there was where each start and
        stage began, as an xarray Dataset with `start` and `stage`.
    input_spread_, input_range_ : standard deviation of each input as the kernel sees it, and its least and greatest
        value, if sigma="scale" or learning made a pass over X.
    features_ : the feature map; dtype_ : the precision of its blocks.
    factorisation_ : how the system was solved, and the jitter it needed.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> import numpy as np, dkl
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = dkl.SingleKernelRegressor(n_components=50, sigma=1.0, alpha=1e-3, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999)
    True
"""
