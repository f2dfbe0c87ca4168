"""Good data sets and models, made once, for what is to go wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import zarr

import dkl
from tests.cli.case import TABLE, put
from tests.cli.in_process import done

COLOURS = "a,b,c,y\n" + "".join(f"{i},{i % 7},{['red', 'green', 'blue'][i % 3]},k{i % 2}\n" for i in range(60))
NUMBERS = "a,b,y\n" + "".join(f"{i % 11},{i % 7},{i * 0.37}\n" for i in range(60))
FIT = ("--n-components", "10")


def make_shared(folder: Path) -> None:
    """c.zarr, cm.zarr: classes k0 and k1, a categorical column, splits. r, rm: regression. n: no target. p, pm: any
    Zarr, and a model without a recipe. whole, wholem: classes 0 and 1 without splits. sparse: svmlight rows."""
    put(folder, {"c.csv": COLOURS, "r.csv": NUMBERS, "t.csv": TABLE, "s.svm": "1 2:1 9:2\n0 1:1 7:3\n" * 20})
    done(folder, "ingest", "c.csv", "c.zarr", "--categorical", "c", "--scale", "standard", "--split", "test=0.3")
    done(folder, "ingest", "r.csv", "r.zarr", "--task", "regression")
    done(folder, "ingest", "t.csv", "n.zarr", "--target", "none")
    done(folder, "ingest", "t.csv", "whole.zarr")
    done(folder, "ingest", "s.svm", "sparse.zarr")
    done(folder, "fit", "c.zarr", "cm.zarr", *FIT)
    done(folder, "fit", "r.zarr", "rm.zarr", *FIT)
    done(folder, "fit", "whole.zarr", "wholem.zarr", *FIT)
    X = np.random.default_rng(0).normal(size=(40, 3))
    plain = zarr.open_group(folder / "p.zarr", mode="w")
    plain.create_array("X", data=X)
    plain.create_array("y", data=(X[:, 0] > 0).astype(np.int64))
    dkl.SingleKernelClassifier(n_components=10, random_state=0).fit(X, X[:, 0] > 0).save(folder / "pm.zarr")
