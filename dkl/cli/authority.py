"""Certificates signed by a new authority: elliptic keys, each allowed the part of a connection that its role plays.

The scheduler and the workers answer and call; a client only calls. So a stolen client key cannot pose as a scheduler.
Dask checks who signed a certificate, not the name in it; other programs check the names too.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import socket
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = re.compile(r"(?!-)(?:\*\.)?[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\Z")
EARLY = datetime.timedelta(hours=1)
"""Clocks of machines differ."""
CALLS, ANSWERS = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def make_certificates(roles: Sequence[str], hosts: Sequence[str], days: int) -> dict[str, bytes]:
    """ca.pem, ca.key, and ROLE.pem and ROLE.key of each role."""
    names = x509.SubjectAlternativeName([_name_of(host) for host in hosts])
    begin = datetime.datetime.now(datetime.UTC) - EARLY
    span = begin, begin + EARLY + datetime.timedelta(days=days)
    top = ec.generate_private_key(ec.SECP256R1())
    issuer = _named("dkl authority")
    root = _builder(issuer, issuer, top, span)
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    root = root.add_extension(_usage(signs=True), critical=True)
    root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(top.public_key()), critical=False)
    files = {"ca.pem": _pem(root.sign(top, hashes.SHA256())), "ca.key": _key(top)}
    for role in roles:
        own = ec.generate_private_key(ec.SECP256R1())
        leaf = _builder(_named(f"dkl {role}"), issuer, own, span).add_extension(names, critical=False)
        leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        leaf = leaf.add_extension(_usage(signs=False), critical=True)
        parts = [CALLS] if role == "client" else [CALLS, ANSWERS]
        leaf = leaf.add_extension(x509.ExtendedKeyUsage(parts), critical=True)
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(top.public_key())
        leaf = leaf.add_extension(by, critical=False)
        files |= {f"{role}.pem": _pem(leaf.sign(top, hashes.SHA256())), f"{role}.key": _key(own)}
    return files


def own_hosts() -> list[str]:
    """Names by which this machine may be called."""
    names = [name for name in (socket.gethostname(), socket.getfqdn()) if NAME.match(name)]
    return list(dict.fromkeys(["localhost", "127.0.0.1", "::1", *names]))


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not NAME.match(host) or re.fullmatch(r"[0-9.]+", host):
            raise ValueError(f"--hosts {host!r} is no name or address of a machine; type login1 or 10.0.0.5") from None
        return x509.DNSName(host)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    span: tuple[datetime.datetime, datetime.datetime],
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return made.serial_number(x509.random_serial_number()).not_valid_before(span[0]).not_valid_after(span[1])


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(*form, serialization.NoEncryption())
