"""Answers the cases of a corpus file, one JSON line a case, in the order of the file.

Usage: python tests/conformance/run.py FILE.jsonl [FILE.jsonl ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from reactive_descheduler.api.errors import DeschedulerError
from reactive_descheduler.api.eviction import Candidate
from reactive_descheduler.api.quantity import parse_quantity
from reactive_descheduler.app.pass_driver import PassReport, Refusal, run_pass
from reactive_descheduler.app.policy import (
    in_tree_registry,
    pass_limits,
    usage_sources,
    wanted_usage,
)
from reactive_descheduler.app.snapshot import Manifest, snapshot_of
from reactive_descheduler.cache.usage import Sample, Usage, Vector, summed
from reactive_descheduler.config.corrections import NONE
from reactive_descheduler.config.feature_gates import FeatureGate
from reactive_descheduler.config.load import load_policy
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.evictor.background import BackgroundEvictions
from reactive_descheduler.framework.cycle import CycleNodes
from reactive_descheduler.framework.profile import Profile
from reactive_descheduler.kit.clock import SystemClock
from reactive_descheduler.observability.logs import set_up
from reactive_descheduler.strategies import PLUGINS

Entry = dict[str, str | int]


class Metrics(TypedDict, total=False):
    metadata: Mapping[str, str]
    usage: Mapping[str, str]
    containers: Sequence[Mapping[str, Mapping[str, str]]]


class PrometheusSample(TypedDict):
    instance: str
    value: float


class Case(TypedDict, total=False):
    name: str
    now: str
    policy: object
    objects: Sequence[Manifest]
    nodeMetrics: Sequence[Metrics]
    podMetrics: Sequence[Metrics]
    prometheusSamples: Sequence[PrometheusSample]
    featureGates: Mapping[str, bool]
    evictionReplies: Sequence[Mapping[str, str | int]]


class Answer(TypedDict):
    name: str
    evicted: list[Entry]
    refused: list[Entry]
    failedPlugins: list[str]
    gracePeriodSeconds: int | None
    failureEvents: int
    error: str | None


def cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a corpus file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def usage_of(case: Case, policy: LoadedPolicy, now: datetime) -> Usage | None:
    """Return what the case says was measured, as of now; None if the policy names no source."""
    sources = usage_sources(policy)
    if not sources:
        return None
    usage = Usage(sources, max_age=policy.reactive.usage.max_age)

    def sample(amounts: Mapping[str, int]) -> Sample:
        return Sample(amounts, sampled=now, received=now)

    usage.put_nodes(
        {
            each["metadata"]["name"]: sample(_amounts(each["usage"]))
            for each in case.get("nodeMetrics") or ()
        },
        now,
    )
    usage.put_pods(
        {
            (each["metadata"]["namespace"], each["metadata"]["name"]): sample(
                summed(_amounts(container["usage"]) for container in each["containers"])
            )
            for each in case.get("podMetrics") or ()
        }
    )
    values = {each["instance"]: each["value"] for each in case.get("prometheusSamples") or ()}
    for query in wanted_usage(policy).queries:
        usage.put_vector(query, Vector(values, sampled=now, received=now), now)
    return usage


def _amounts(usage: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(amount) for name, amount in usage.items()}


def beyond(case: Case) -> list[str]:
    """Return the feature gates of a case that there are not here."""
    return [name for name in _gates(case) if name not in list(FeatureGate)]


def _gates(case: Case) -> list[str]:
    return [name for name, is_on in (case.get("featureGates") or {}).items() if is_on]


def answer(case: Case) -> Answer:
    """Run one full pass on a case, with upstream's behaviour throughout."""
    found = Answer(
        name=case["name"],
        evicted=[],
        refused=[],
        failedPlugins=[],
        gracePeriodSeconds=None,
        failureEvents=0,
        error=None,
    )
    missing = beyond(case)
    if missing:
        found["error"] = f"not built yet: {', '.join(missing)}"
        return found
    try:
        _run(case, found)
    except DeschedulerError as error:
        found["error"] = str(error)
    return found


def _run(case: Case, found: Answer) -> None:
    now = datetime.fromisoformat(case["now"])
    text = json.dumps(case["policy"])
    policy = load_policy(text, source=case["name"], plugins=PLUGINS, corrections=NONE)
    snapshot = snapshot_of(case["objects"], source=case["name"])
    profiles = in_tree_registry().profiles(policy, priority_classes=snapshot.priority_classes)
    replies = {
        (str(reply["namespace"]), str(reply["name"])): Refusal(
            int(reply["code"]), str(reply["message"])
        )
        for reply in case.get("evictionReplies") or ()
    }
    background = None
    if FeatureGate.EVICTIONS_IN_BACKGROUND in _gates(case):
        background = BackgroundEvictions()
        for pod in snapshot.lister.pods():
            background.on_pod(pod, now)
    report = run_pass(
        profiles,
        store=snapshot.store,
        nodes=CycleNodes(
            policy.node_selector, {node.name: node for node in snapshot.lister.nodes()}
        ),
        now=now,
        limits=pass_limits(policy, background),
        ask=lambda candidate: replies.get((candidate.pod.namespace, candidate.pod.name)),
        one_offer=False,
        background=background,
        usage=usage_of(case, policy, now),
    )
    _tell(report, found, profiles=profiles, policy=policy)


def _tell(
    report: PassReport, found: Answer, *, profiles: Sequence[Profile], policy: LoadedPolicy
) -> None:
    def entry(candidate: Candidate) -> Entry:
        return {
            "namespace": candidate.pod.namespace,
            "name": candidate.pod.name,
            "plugin": candidate.key.strategy,
            "profile": profiles[candidate.key.profile].name,
        }

    found["evicted"] = [entry(candidate) for candidate in report.evicted]
    found["refused"] = [
        {**entry(candidate), "code": refusal.code}
        for candidate, refusal in (*report.refused, *report.in_background)
    ]
    found["failedPlugins"] = list(dict.fromkeys(each.strategy for each in report.failed))
    found["gracePeriodSeconds"] = policy.grace_period_seconds
    found["failureEvents"] = report.failures if policy.failure_events else 0


def main() -> int:
    """Answer every case of the files named on the command line."""
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    set_up(stream=sys.stderr, clock=SystemClock())
    for path in sys.argv[1:]:
        for case in cases(Path(path)):
            print(json.dumps(answer(case)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
