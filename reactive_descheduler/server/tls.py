"""The listener's certificate: files of the operator's, or one made at start and kept in memory.

Synchronous and outside the event loop: both read or make files, if only in memory.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

VALID_FOR = timedelta(days=3 * 365)
"""Of a certificate made at start: longer than a process lives."""


def self_signed(host: str, now: datetime) -> ssl.SSLContext:
    """Return a server context with a new certificate for `host`, of which nothing is on disk: a
    read-only root file system will do."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reactive-descheduler")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks of clients differ
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with _in_memory(certificate.public_bytes(Encoding.PEM) + private) as path:
        return from_files(path, path)


def from_files(certificate: str, key: str) -> ssl.SSLContext:
    """Return a server context with these PEM files. Raises OSError or ssl.SSLError if they cannot
    be read or do not belong together."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


class FileCertificate:
    """A certificate in files that somebody renews (a mounted Secret).

    `context` stays the same object over a reload: connections opened later use the new one.
    """

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._read = self._versions()
        self.context = from_files(certificate, key)

    def refresh(self) -> bool:
        """Load the files again if they changed, and say whether they did.

        Raises as `from_files` does; then the old certificate stays, and the next call tries again.
        """
        versions = self._versions()
        if versions == self._read:
            return False
        from_files(*self._files)  # a pair half written must not spoil the context in use
        self.context.load_cert_chain(*self._files)
        self._read = versions
        return True

    def _versions(self) -> tuple[int, ...]:
        return tuple(Path(file).stat().st_mtime_ns for file in self._files)


def _names(host: str) -> list[x509.GeneralName]:
    """What clients may call the listener: the loopback's names, and the address it binds to."""
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    try:
        addresses = {ip_address("127.0.0.1"), ip_address(host)}
    except ValueError:
        return [*names, x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName(host)]
    return [*names, *map(x509.IPAddress, sorted(addresses, key=str))]


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Offer the content under a path, since the ssl module reads files only. Where the system has
    no files in memory, a private one on disk is deleted at once."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("certificate"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as temporary:
            temporary.write(content)
            temporary.flush()
            yield temporary.name
