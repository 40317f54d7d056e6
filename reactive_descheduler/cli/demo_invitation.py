"""How to reach the demo's cluster, and three things to try on it as it stands."""

from __future__ import annotations

import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from reactive_descheduler.cli.demo_stage import DISK_LABEL
from reactive_descheduler.sandbox.documents import JsonObject, controller_of, labels, text


class Invitation(NamedTuple):
    """Lines for a shell. `tries`: a command each, and what it means."""

    export: str
    tries: tuple[tuple[str, str], ...]


def invite(kubeconfig: Path, pods: Iterable[JsonObject]) -> Invitation:
    """Choose nodes on which there is something to do, a node of its own for each try.

    After the last, a Pod of `store` on a node with a new taint has to wait: its budget wants 2.
    """
    apps: defaultdict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if text(controller_of(pod), "kind") != "DaemonSet":
            apps[text(pod, "spec", "nodeName")].append(labels(pod).get("app", ""))
    fullest = sorted(apps, key=lambda node: (-len(apps[node]), node))
    labelled = next(node for node in fullest if "api" in apps[node])
    tainted = next(node for node in fullest if node != labelled)
    return Invitation(
        f"export KUBECONFIG={shlex.quote(str(kubeconfig))}",
        (
            (f"kubectl taint node {tainted} retiring=yes:NoSchedule", "its Pods leave at once"),
            (f"kubectl label node {labelled} {DISK_LABEL}-", "the Pods of api ask for it"),
            ("kubectl scale deployment store --replicas=2", "its budget then lets none go"),
        ),
    )


def told(invitation: Invitation) -> str:
    """Return it as a paragraph."""
    wide = max(len(command) for command, _ in invitation.tries)
    lines = [f"  {command:{wide}}  # {meaning}" for command, meaning in invitation.tries]
    if shutil.which("kubectl") is None:
        lines.append("\nThere is no kubectl on this PATH; 1.32 or newer is what it takes.")
    return "\n".join(["Ready. In another terminal:\n", f"  {invitation.export}", *lines])
