"""dkl certificates: an authority, and a certificate for each role of a TLS cluster."""

from __future__ import annotations

import os

import click

from dkl.cli.layout import Verb, several

ROLES = ("scheduler", "worker", "client")
CONFIG = "dask.yaml"


@click.command(
    cls=Verb,
    example="dkl certificates tls\ndkl certificates tls --hosts login1,10.0.0.5 --days 90",
    help="Write an authority and certificates for scheduler, workers and client into the new folder DIR, and print how "
    "they are used. Whoever has client.key can run code on the cluster.",
)
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--hosts", multiple=True, callback=several, help="Names and addresses of the scheduler (this machine).")
@click.option("--days", type=click.IntRange(1, 3650), default=365, help="Days for which they hold [365].")
def certificates(folder: str, hosts: tuple[str, ...], days: int) -> None:
    """The verb."""
    try:
        from dkl.cli.authority import make_certificates, own_hosts
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "cryptography":
            raise
        raise ValueError(f"dkl certificates needs the package {error.name}; pip install 'dkl[tls]'") from None
    place = os.path.abspath(folder)
    if not place.isprintable():
        raise ValueError(f"{place!r} has characters that a configuration cannot hold; name another folder")
    files = make_certificates(ROLES, hosts or own_hosts(), days)
    files[CONFIG] = dask_config(place).encode()
    write_new(place, files)
    click.echo(usage(folder, place, days))


def write_new(place: str, files: dict[str, bytes]) -> None:
    """Files of a new folder (or an empty one) that nobody else may read; keys were never readable by others."""
    if os.path.lexists(place) and (not os.path.isdir(place) or os.listdir(place)):
        raise ValueError(f"{place!r} exists; nothing is overwritten: name a new folder, or remove this one")
    os.makedirs(place, mode=0o700, exist_ok=True)
    os.chmod(place, 0o700)
    for name, content in files.items():
        mode = 0o600 if name.endswith(".key") else 0o644
        with os.fdopen(os.open(os.path.join(place, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)


def dask_config(place: str) -> str:
    """What dask reads for all three roles: plain connections are refused."""
    import json

    def quoted(name: str) -> str:
        return json.dumps(os.path.join(place, name), ensure_ascii=False)

    lines = ["distributed:", "  comm:", "    default-scheme: tls", "    require-encryption: true", "    tls:"]
    lines.append(f"      ca-file: {quoted('ca.pem')}")
    for role in ROLES:
        lines += [f"      {role}:", f"        cert: {quoted(f'{role}.pem')}", f"        key: {quoted(f'{role}.key')}"]
    return "\n".join(lines) + "\n"


def usage(folder: str, place: str, days: int) -> str:
    """What to type next."""
    from shlex import quote

    def path(name: str) -> str:
        return quote(os.path.join(folder, name))

    def flags(role: str, ca: str = "--tls-ca-file") -> str:
        return f"{ca} {path('ca.pem')} --tls-cert {path(f'{role}.pem')} --tls-key {path(f'{role}.key')}"

    return f"""{folder}: ca.pem, and scheduler, worker, client with .pem and .key; they hold {days} days.
ca.key signs new ones: keep it away from the cluster.

With one variable, for dask and for dkl (dask.yaml holds full paths; edit it if the folder moves):
  export DASK_CONFIG={quote(os.path.join(place, CONFIG))}
  dask scheduler
  dask worker tls://HOST:8786
  dkl fit DATA MODEL --scheduler tls://HOST:8786

Or with flags:
  dask scheduler --protocol tls {flags("scheduler")}
  dask worker tls://HOST:8786 {flags("worker")}
  dkl fit DATA MODEL --scheduler tls://HOST:8786 {flags("client", "--tls-ca")}"""
