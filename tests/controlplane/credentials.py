"""Certificates, tokens and kubeconfigs of the control plane that tests run against.

One authority signs one serving certificate, which all components share. Users are told by static
tokens: the controller manager and the scheduler carry the names that the bootstrap roles bind, so
that their real rights are in force; `nobody` has none.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class User:
    """Who may call the API server: name of the kubeconfig, name in the cluster, groups."""

    kubeconfig: str
    name: str
    groups: str = ""


USERS = (
    User("admin", "admin", "system:masters"),
    User("controller-manager", "system:kube-controller-manager"),
    User("scheduler", "system:kube-scheduler"),
    User("nobody", "nobody"),
)


def write_certificates(directory: Path) -> None:
    """Write ca.crt, server.crt, server.key and the key pair that signs service account tokens."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.crt")
    served = authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
    served.private_key_pem.write_to_path(directory / "server.key")
    served.cert_chain_pems[0].write_to_path(directory / "server.crt")
    signing = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (directory / "sa.key").write_bytes(
        signing.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    (directory / "sa.pub").write_bytes(
        signing.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def write_users(directory: Path, server: str) -> dict[str, str]:
    """Write tokens.csv and a kubeconfig for each of `USERS`; gives the tokens by kubeconfig."""
    tokens = {user.kubeconfig: secrets.token_hex(16) for user in USERS}
    (directory / "tokens.csv").write_text(
        "".join(
            f'{tokens[user.kubeconfig]},{user.name},{user.kubeconfig},"{user.groups}"\n'
            for user in USERS
        )
    )
    for user in USERS:
        write_kubeconfig(
            directory / f"{user.kubeconfig}.kubeconfig",
            server=server,
            token=tokens[user.kubeconfig],
            authority=directory / "ca.crt",
        )
    return tokens


def write_kubeconfig(path: Path, *, server: str, token: str, authority: Path | None = None) -> None:
    """Write a kubeconfig of one cluster and one user; no authority for plain HTTP."""
    cluster = {"server": server}
    if authority is not None:
        cluster["certificate-authority"] = str(authority)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(document, indent=2))  # JSON is YAML too
