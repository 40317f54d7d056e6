"""A certificate authority of the sandbox's own, and a serving certificate, made at each start."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import trustme


@dataclass(frozen=True)
class Certificates:
    """What both ends of TLS need."""

    ca_pem: bytes
    server_context: ssl.SSLContext
    client_context: ssl.SSLContext


def make_certificates(*identities: str) -> Certificates:
    """Make both certificates for these names and addresses.

    Blocks for some milliseconds: the standard library takes a key only from a file.
    """
    authority = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*identities).configure_cert(server_context)
    client_context = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    return Certificates(authority.cert_pem.bytes(), server_context, client_context)
