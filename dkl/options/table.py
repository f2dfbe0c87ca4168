"""The table of all parameters, by name."""

from __future__ import annotations

from dkl.options.feature_maps import FEATURE_MAP
from dkl.options.learning import LEARNING
from dkl.options.running import RUNNING
from dkl.options.transformers import TRANSFORMER

OPTIONS = {option.name: option for option in (*TRANSFORMER, *FEATURE_MAP, *LEARNING, *RUNNING)}
