"""A fit that fails leaves the estimator as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dkl.engine.run_ids import one_fit


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Undo every attribute that a failed fit has set."""

    @one_fit
    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded
