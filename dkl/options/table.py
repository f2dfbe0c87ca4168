"""The table of all parameters, by name."""

from __future__ import annotations

from dkl.options.continuous import CONTINUOUS
from dkl.options.feature_maps import FEATURE_MAP
from dkl.options.infinite import INFINITE
from dkl.options.learning import LEARNING
from dkl.options.multiple import MULTIPLE
from dkl.options.running import RUNNING
from dkl.options.transformers import TRANSFORMER

OPTIONS = {
    option.name: option
    for option in (*MULTIPLE, *INFINITE, *CONTINUOUS, *TRANSFORMER, *FEATURE_MAP, *LEARNING, *RUNNING)
}
"""Of two with the same name the transformers' comes last; the estimators of several kernels name theirs themselves."""
OF_SEVERAL = {option.name: option for option in MULTIPLE}
"""Those of the estimators of several kernels."""
