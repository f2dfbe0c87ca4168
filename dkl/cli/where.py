"""Where a verb runs: in this process (the default), on a local cluster, or on a running one."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

OPTIONS = (
    click.option("--workers", type=click.IntRange(1), metavar="N", help="Start a local cluster of N processes."),
    click.option("--threads", type=click.IntRange(1), metavar="M", help="Threads per process (all cores)."),
    click.option("--scheduler", metavar="ADDRESS", help="Use a running cluster: tcp://, tls://, file.json."),
    click.option("--tls-ca", type=click.Path(dir_okay=False), help="TLS certificate authority of the cluster (PEM)."),
    click.option("--tls-cert", type=click.Path(dir_okay=False), help="TLS certificate (PEM)."),
    click.option("--tls-key", type=click.Path(dir_okay=False), help="TLS key (PEM)."),
)
SCHEDULER_SECONDS = 10.0
"""How long to wait for a scheduler to answer (dask config dkl.scheduler-timeout)."""
NAMES = ("workers", "threads", "scheduler", "tls_ca", "tls_cert", "tls_key")


class ClusterError(RuntimeError):
    """The cluster does not answer, or was lost."""


def runs_somewhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of where it runs."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def is_spread(where: dict[str, Any]) -> bool:
    """Whether the options name a cluster."""
    return where["workers"] is not None or where["scheduler"] is not None


@contextmanager
def cluster(
    workers: int | None = None,
    threads: int | None = None,
    scheduler: str | None = None,
    tls_ca: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
) -> Iterator[None]:
    """Use the cluster that the options name."""
    import dask

    if workers is not None and scheduler is not None:
        raise click.UsageError(
            f"--workers {workers} starts a local cluster, --scheduler {scheduler} uses an existing one; give one"
        )
    if scheduler is not None and threads is not None:
        raise click.UsageError(f"--threads {threads} has no effect on --scheduler {scheduler}; leave it out")
    if scheduler is None and any((tls_ca, tls_cert, tls_key)):
        given = next(path for path in (tls_ca, tls_cert, tls_key) if path)
        raise click.UsageError(f"{given!r}: --tls-ca, --tls-cert and --tls-key belong to --scheduler tls://...")
    if workers is None and scheduler is None:
        with dask.config.set({"num_workers": threads} if threads else {}):
            yield
        return
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if scheduler is None:
        assert workers is not None
        with _local(workers, threads):
            yield
        return
    with _existing(scheduler, _security(scheduler, tls_ca, tls_cert, tls_key)):
        yield


@contextmanager
def _local(workers: int, threads: int | None) -> Iterator[None]:
    from distributed import Client, LocalCluster

    from dkl.engine.threads import thread_count

    each = threads or max(1, thread_count() // workers)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: a Ctrl-C is for this process, not for workers
    try:
        made = LocalCluster(
            n_workers=workers,
            threads_per_worker=each,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with made, Client(made):
        yield


@contextmanager
def _existing(address: str, security: Any) -> Iterator[None]:
    import dask
    from distributed import Client, default_client
    from distributed.comm.core import CommClosedError

    from dkl.engine.versions import VersionSkew

    where: dict[str, Any] = {"address": address}
    if address.endswith(".json"):
        if not os.path.isfile(address):
            raise ClusterError(
                f"the scheduler file {address!r} does not exist; start: dask scheduler --scheduler-file {address}"
            )
        where = {"scheduler_file": address}
    elif "://" not in address:
        where = {"address": f"tcp://{address}"}
    try:
        client = Client(
            **where, security=security, timeout=float(dask.config.get("dkl.scheduler-timeout", SCHEDULER_SECONDS))
        )
    except Exception as error:  # a bad address, a bad file, TLS, nobody there: each raises its own
        with suppress(Exception):  # the one that could not connect would stay the default
            default_client().close(timeout=1)
        cause = str(error).split("\n")[0]
        check = "is it running, and are the TLS files its own?"
        if security is None and address.startswith("tls://") and "ssl_context" in cause:
            cause, check = "tls:// needs three files", "give --tls-ca, --tls-cert and --tls-key, or DASK_CONFIG"
        raise ClusterError(f"no scheduler answers at {address!r} ({cause}); {check}") from None
    try:
        with client:
            yield
    except (CommClosedError, RuntimeError) as error:
        lost = "no worker" in str(error) or "scheduler" in str(error)
        if lost or isinstance(error, (CommClosedError, VersionSkew)):
            raise ClusterError(str(error)) from error
        raise


def _security(address: str, ca: str | None, cert: str | None, key: str | None) -> Any:
    if not any((ca, cert, key)):
        return None
    for name, path in (("--tls-ca", ca), ("--tls-cert", cert), ("--tls-key", key)):
        if path is None:
            raise click.UsageError(f"{name} is missing; TLS needs --tls-ca, --tls-cert and --tls-key")
        if not os.path.isfile(path):
            raise click.UsageError(f"{name} {path!r} is not a file; give a PEM file")
    from distributed import Security

    return Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
