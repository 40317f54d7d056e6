"""A cluster that somebody else runs, such as kind's, with a few nodes of ours lent to it.

Of all nodes kwok looks after those that carry our label; the others are left alone, and so are
their Pods. What is made for tests carries the same label, and goes by it in the end.
"""

from __future__ import annotations

import base64
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.controlplane.cluster import BINARIES, STOP_WITHIN, ControlPlane, kwok, spawn, stop

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "E2E_KUBECONFIG"
"""Names the kubeconfig of the cluster; unset or empty where the tests start one themselves."""
OURS = {"e2e.test/suite": "reactive-descheduler"}
"""The label of nodes, namespaces and volumes that the tests make."""
SELECTOR = ",".join(f"{key}={value}" for key, value in OURS.items())
KINDS = "namespaces,nodes,persistentvolumes"
NEEDS_ITS_OWN = "needs its own control plane"
"""Why a test is skipped that restarts components, knows other users, serves a webhook, ..."""
GONE_WITHIN = 120
"""Seconds for all that was made to be deleted; a namespace takes 5 to 20."""


class GivenClusterError(Exception):
    """The kubeconfig cannot be used, or an earlier run has left something there."""


def given() -> Path | None:
    """The kubeconfig to test against, if one is given."""
    path = os.environ.get(VARIABLE)
    return Path(path) if path else None


@contextmanager
def joined(kubeconfig: Path, directory: Path) -> Iterator[ControlPlane]:
    """That cluster for the length of a `with` block, with a kwok for the nodes of ours.

    Raises GivenClusterError if something of ours is there already: from a run that was killed, or
    from one that goes on and would be disturbed.
    """
    directory = directory.resolve()
    # Its current context alone, with all files that it names: who reads it need not choose.
    flat = _kubectl(kubeconfig, directory, "config", "view", "--raw", "--flatten", "--minify")
    copy = directory / "admin.kubeconfig"
    copy.touch(mode=0o600)
    copy.write_text(flat)
    cluster = yaml.safe_load(flat)["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster.get("certificate-authority-data", ""))
    (directory / "ca.crt").write_bytes(authority)
    ours = f"--selector={SELECTOR}"
    if left := _kubectl(copy, directory, "get", KINDS, ours, "--output=name").split():
        raise GivenClusterError(
            f"in use, or left by a run that was killed: {', '.join(left)}; "
            f"to remove it: kubectl delete {KINDS} --selector {SELECTOR}"
        )
    component = kwok(
        directory, "--manage-all-nodes=false", f"--manage-nodes-with-label-selector={SELECTOR}"
    )
    process = spawn(directory, component)
    try:
        yield ControlPlane(
            directory=directory,
            server=cluster["server"],
            tokens={},
            components=[component],
            processes=[process],
        )
    finally:
        try:
            # While kwok is there to end the Pods.
            for kind in KINDS.split(","):
                _kubectl(copy, directory, "delete", kind, ours)
        finally:
            stop(directory)
            process.wait(STOP_WITHIN)


def _kubectl(kubeconfig: Path, directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        [
            BINARIES / "kubectl",
            f"--kubeconfig={kubeconfig}",
            f"--cache-dir={directory / 'kubectl'}",
            *arguments,
        ],
        text=True,
        capture_output=True,
        check=False,
        timeout=GONE_WITHIN,
    )
    if done.returncode != 0:
        raise GivenClusterError(f"kubectl {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
