"""A client behind a port forward, over TLS: the same bits, and nothing of the size of a gram comes through."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from distributed import Client, Security

import dkl
from tests.cli.test_where import by_hand, make_authority
from tests.engine.conftest import assert_same_bits, embedded, learned
from tests.slow_link import slow_link

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(150),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

FEATURES = 600
GRAM_BYTES = 8 * FEATURES**2


def test_a_client_through_a_forwarded_port_receives_only_scalars(tmp_path: Path) -> None:
    """Learning too: its gradients and steps stay on the scheduler; a fit's coefficients are all that comes."""
    rng = np.random.default_rng(0)
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    X = rng.standard_normal((1200, 5))
    group.create_array("X", data=X, chunks=(200, 5))
    group.create_array("y", data=np.sin(X[:, 0]), chunks=(200,))
    data, ca = str(tmp_path / "d.zarr"), make_authority(tmp_path / "tls", "cluster")

    def model() -> dkl.SingleKernelRegressor:
        return dkl.SingleKernelRegressor(
            n_components=FEATURES, learn="cv", groups="each", max_iter=2, random_state=0, verbose=0, alpha="auto"
        )

    with embedded():
        right = learned(model().fit(data))
    keys = Security(tls_ca_file=str(ca[0]), tls_client_cert=str(ca[1]), tls_client_key=str(ca[2]))
    with (
        by_hand(tmp_path / "hand", 1, ca) as (address, _),
        slow_link(int(address.rpartition(":")[2]), 0.005, 1e9) as link,
        Client(f"tls://127.0.0.1:{link.port}", security=keys, timeout="20s"),
    ):
        connected = link.traffic()
        found = learned(model().fit(data))
        traffic = link.traffic()
    assert_same_bits(found, right)
    assert traffic.received - connected.received < 0.2 * GRAM_BYTES
    assert traffic.received > connected.received > 0, "it is this link that they used"
