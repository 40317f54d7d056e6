"""What node fit looks at beyond upstream, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reactive_descheduler.api.scheduling.fit import UPSTREAM, FitRules, misfit
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods
from tests.builders import (
    Manifest,
    cluster,
    cluster_store,
    make_claim,
    make_namespace,
    make_node,
    make_pod,
    make_volume,
    pod_view,
)

APART, NEAR, PORTS, VOLUMES, SPREAD = (
    UPSTREAM._replace(anti_affinity=True),
    UPSTREAM._replace(pod_affinity=True),
    UPSTREAM._replace(host_ports=True),
    UPSTREAM._replace(volumes=True),
    UPSTREAM._replace(spread=True),
)
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def zoned(name: str, zone: str, **more: object) -> Manifest:
    return make_node(name, labels={ZONE: zone}, **more)  # type: ignore[arg-type]


FROM, TARGET, BESIDE = zoned("n0", "a"), zoned("n1", "b"), zoned("n2", "b")


def term(app: str = "db", key: str = ZONE, **more: object) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


MALFORMED: Manifest = {
    "topologyKey": ZONE,
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]},
}


def apart(*terms: Mapping[str, object]) -> Manifest:
    return {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*map(dict, terms)]}
    }


def near(*terms: Mapping[str, object]) -> Manifest:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [*map(dict, terms)]}}


def db(node: str, **more: object) -> Manifest:
    return make_pod("db", node=node, **{"labels": {"app": "db"}, **more})  # type: ignore[arg-type]


def fit(rules: FitRules, pod: Manifest, *objects: Manifest) -> str | None:
    lister = cluster(FROM, TARGET, BESIDE, pod, *objects)
    found, target = lister.pod(pod_view(pod).uid), lister.node("n1")
    assert found is not None
    assert target is not None
    return misfit(found, target, lister, rules)


def mover(**more: object) -> Manifest:
    return make_pod("p", node="n0", **more)  # type: ignore[arg-type]


OTHER_SPACE = [
    make_namespace("other", labels={"team": "red"}),
    make_namespace("default", labels={"team": "blue"}),
]
RED = {"matchLabels": {"team": "red"}}
NOT_BLUE = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]}
PORT = {"containerPort": 1, "hostPort": 80}
CONSTRAINT = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def with_ports(name: str, node: str, *ports: Mapping[str, object], **more: object) -> Manifest:
    containers = [{"name": "c", "ports": [*ports]}]
    return make_pod(name, node=node, spec={"containers": containers}, **more)  # type: ignore[arg-type]


def claiming(*claims: str) -> list[Manifest]:
    return [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]


@pytest.mark.parametrize(
    ("rules", "pod", "others", "expected"),
    [
        # Anti-affinity of its own, over the domain.
        pytest.param(
            APART, mover(affinity=apart(term())), [db("n2")], "db on n2", id="own-term-over-zone"
        ),
        pytest.param(
            APART, mover(affinity=apart(term())), [db("n0")], None, id="own-term-in-another-zone"
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term(key=HOST))),
            [db("n2")],
            None,
            id="own-term-on-another-host",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("web", HOST))),
            [],
            None,
            id="a-pod-does-not-keep-itself-away",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("db", HOST, namespaces=["other"]))),
            [make_pod("p", namespace="other", node="n1", labels={"app": "db"})],
            "other/p",
            id="a-namesake-is-another-pod",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("db", HOST, namespaceSelector=RED))),
            [*OTHER_SPACE, db("n1", namespace="other")],
            "other/db",
            id="namespace-selector",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("db", HOST, namespaceSelector=RED))),
            [*OTHER_SPACE, db("n1")],
            None,
            id="namespace-selector-leaves-out-its-own",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("db", HOST, namespaceSelector=NOT_BLUE))),
            [*OTHER_SPACE, db("n1")],
            "default/db",
            id="negative-namespace-selector-looks-everywhere-as-the-scheduler-does",
        ),
        pytest.param(
            APART,
            mover(),
            [
                *OTHER_SPACE,
                db(
                    "n1",
                    namespace="other",
                    affinity=apart(term("web", HOST, namespaceSelector=NOT_BLUE)),
                ),
            ],
            None,
            id="but-not-one-of-theirs",
        ),
        pytest.param(
            APART,
            mover(
                labels={"app": "web", "rev": "2"},
                affinity=apart(term("db", HOST, matchLabelKeys=["rev"])),
            ),
            [db("n1", labels={"app": "db", "rev": "1"})],
            None,
            id="match-label-keys-differ",
        ),
        pytest.param(
            APART,
            mover(
                labels={"app": "web", "rev": "2"},
                affinity=apart(term("db", HOST, mismatchLabelKeys=["rev"])),
            ),
            [db("n1", labels={"app": "db", "rev": "1"})],
            "default/db",
            id="mismatch-label-keys-differ",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term())),
            [db("n2", phase="Failed")],
            None,
            id="a-finished-pod-keeps-nobody-away",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(MALFORMED)),
            [],
            "malformed",
            id="a-malformed-term-fits-nowhere",
        ),
        # Anti-affinity of those already there.
        pytest.param(
            APART, mover(), [db("n1", affinity=apart(term("web", HOST)))], "default/db", id="theirs"
        ),
        pytest.param(
            APART,
            mover(),
            [db("n2", affinity=apart(term("web")))],
            "db on n2",
            id="theirs-over-the-zone",
        ),
        pytest.param(
            APART,
            mover(),
            [db("n0", affinity=apart(term("web")))],
            None,
            id="theirs-in-another-zone",
        ),
        pytest.param(
            APART,
            mover(),
            [db("n1", namespace="other", affinity=apart(term("web", HOST)))],
            None,
            id="theirs-about-their-own-namespace",
        ),
        pytest.param(
            APART,
            mover(),
            [
                *OTHER_SPACE[:1],
                make_namespace("default", labels={"team": "red"}),
                db(
                    "n1",
                    namespace="other",
                    affinity=apart(term("web", HOST, namespaceSelector=RED)),
                ),
            ],
            "other/db",
            id="theirs-by-labels-of-namespaces",
        ),
        pytest.param(
            APART,
            mover(),
            [db("n1", phase="Succeeded", affinity=apart(term("web", HOST)))],
            None,
            id="theirs-when-finished",
        ),
        pytest.param(
            UPSTREAM,
            mover(affinity=apart(term())),
            [db("n2", affinity=apart(term("web")))],
            None,
            id="upstream-reads-the-node-alone",
        ),
        # Pod affinity.
        pytest.param(
            NEAR, mover(affinity=near(term())), [db("n2")], None, id="near-one-in-the-zone"
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(key="rack"))),
            [db("n1")],
            "has no label",
            id="near-but-the-node-lacks-the-key",
        ),
        pytest.param(
            NEAR, mover(affinity=near(term())), [db("n0")], f"in {ZONE} b", id="near-one-elsewhere"
        ),
        pytest.param(
            NEAR, mover(affinity=near(term())), [], f"in {ZONE} b", id="near-one-that-is-nowhere"
        ),
        pytest.param(
            NEAR, mover(affinity=near(term("web"))), [], None, id="near-its-like-and-is-the-first"
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term("web"))),
            [make_pod("q", node="n0")],
            f"in {ZONE} b",
            id="near-its-like-and-one-is-elsewhere",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term("web"))),
            [make_node("bare"), make_pod("q", node="bare")],
            None,
            id="near-its-like-and-one-is-in-no-zone",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term("web"))),
            [make_pod("q", node="removed")],
            f"in {ZONE} b",
            id="near-its-like-and-one-is-who-knows-where",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term("web"))),
            [make_pod("q", node="n1", deleted="2026-01-01T00:00:00Z")],
            f"in {ZONE} b",
            id="near-one-that-terminates",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term())),
            [db("n1", phase="Succeeded")],
            f"in {ZONE} b",
            id="near-one-that-has-finished",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term("web"))),
            [make_pod("q", node="n0", phase="Failed")],
            None,
            id="near-its-like-of-which-one-has-finished",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(), term("web"))),
            [db("n1"), make_pod("q", node="n1")],
            f"in {ZONE} b",
            id="near-one-that-all-terms-choose-not-one-for-each",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(), term(labelSelector={"matchLabels": {"rev": "1"}}))),
            [db("n1", labels={"app": "db", "rev": "1"})],
            None,
            id="near-one-that-all-terms-choose",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(namespaces=["other"]))),
            [db("n1")],
            f"in {ZONE} b",
            id="near-one-of-another-namespace",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(namespaceSelector=RED))),
            [*OTHER_SPACE, db("n1", namespace="other")],
            None,
            id="near-one-of-a-namespace-chosen-by-labels",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(namespaceSelector=RED))),
            [*OTHER_SPACE, db("n1")],
            f"in {ZONE} b",
            id="near-one-but-its-namespace-is-not-chosen",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(namespaceSelector=NOT_BLUE))),
            [*OTHER_SPACE, db("n1")],
            None,
            id="near-any-where-namespaces-without-labels-are-chosen",
        ),
        pytest.param(
            NEAR,
            mover(labels={"rev": "2"}, affinity=near(term(matchLabelKeys=["rev"]))),
            [db("n1", labels={"app": "db", "rev": "1"})],
            f"in {ZONE} b",
            id="near-but-match-label-keys-differ",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near({"topologyKey": ZONE})),
            [db("n1")],
            f"in {ZONE} b",
            id="near-nobody-without-a-selector",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(MALFORMED)),
            [],
            "malformed",
            id="near-by-a-malformed-term",
        ),
        pytest.param(
            UPSTREAM,
            mover(affinity=near(term())),
            [],
            None,
            id="upstream-reads-no-pod-affinity",
        ),
        # Host ports.
        pytest.param(
            PORTS,
            with_ports("p", "n0", PORT),
            [with_ports("q", "n1", PORT)],
            "80/TCP",
            id="port-taken",
        ),
        pytest.param(
            PORTS,
            with_ports("p", "n0", PORT),
            [with_ports("q", "n1", {**PORT, "protocol": "UDP"})],
            None,
            id="port-of-another-protocol",
        ),
        pytest.param(
            PORTS,
            with_ports("p", "n0", {**PORT, "hostIP": "10.0.0.1"}),
            [with_ports("q", "n1", {**PORT, "hostIP": "10.0.0.2"})],
            None,
            id="port-of-another-address",
        ),
        pytest.param(
            PORTS,
            with_ports("p", "n0", {**PORT, "hostIP": "10.0.0.1"}),
            [with_ports("q", "n1", PORT)],
            "80/TCP",
            id="port-of-every-address",
        ),
        pytest.param(
            PORTS,
            with_ports("p", "n0", {**PORT, "hostIP": "::"}),
            [with_ports("q", "n1", {**PORT, "hostIP": "::1"})],
            None,
            id="port-of-every-address-of-ipv6-is-one-of-its-own",
        ),
        pytest.param(
            PORTS,
            with_ports("p", "n0", PORT),
            [with_ports("q", "n1", PORT, phase="Failed")],
            None,
            id="port-of-a-finished-pod",
        ),
        pytest.param(
            PORTS, with_ports("p", "n1", PORT), [], None, id="its-own-port-on-its-own-node"
        ),
        pytest.param(
            UPSTREAM,
            with_ports("p", "n0", PORT),
            [with_ports("q", "n1", PORT)],
            None,
            id="upstream-reads-no-ports",
        ),
        # Volumes.
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [
                make_claim(volume="disk"),
                make_volume(
                    terms=[{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
                ),
            ],
            "volume disk",
            id="affinity-of-the-volume",
        ),
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [make_claim(volume="disk"), make_volume(terms=[])],
            "volume disk",
            id="affinity-without-terms",
        ),
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [make_claim(volume="disk"), make_volume(labels={ZONE: "a"})],
            "volume disk",
            id="zone-of-the-volume",
        ),
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [
                make_claim(volume="disk"),
                make_volume(labels={"failure-domain.beta.kubernetes.io/zone": "a__b"}),
            ],
            None,
            id="one-of-two-zones-under-the-old-name",
        ),
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [make_claim(volume="disk"), make_volume()],
            None,
            id="volume-without-a-place",
        ),
        pytest.param(
            VOLUMES, mover(volumes=claiming("data")), [make_claim()], None, id="unbound-claim"
        ),
        pytest.param(
            VOLUMES, mover(volumes=claiming("data")), [], "claim data", id="claim-is-not-there"
        ),
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [make_claim(volume="disk")],
            "volume disk",
            id="volume-is-not-there",
        ),
        pytest.param(
            VOLUMES,
            mover(volumes=claiming("data")),
            [make_claim(volume="disk", deleted="2026-01-01T00:00:00Z"), make_volume()],
            "claim data is being deleted",
            id="claim-is-being-deleted",
        ),
        pytest.param(
            UPSTREAM, mover(volumes=claiming("data")), [], None, id="upstream-reads-no-volumes"
        ),
        # Topology spread.
        pytest.param(
            SPREAD,
            mover(spread=[CONSTRAINT]),
            [make_pod("q", node="n1")],
            "topology spread",
            id="skew-is-counted-without-the-pod-itself",
        ),
        pytest.param(
            SPREAD,
            mover(spread=[CONSTRAINT]),
            [make_pod("q", node="n0")],
            None,
            id="no-skew",
        ),
        pytest.param(
            SPREAD,
            mover(spread=[{**CONSTRAINT, "whenUnsatisfiable": "ScheduleAnyway"}]),
            [make_pod("q", node="n1")],
            None,
            id="soft-constraint",
        ),
        pytest.param(
            UPSTREAM,
            mover(spread=[CONSTRAINT]),
            [make_pod("q", node="n1")],
            None,
            id="upstream-reads-no-spread",
        ),
    ],
)
def test_rule_refuses_what_the_scheduler_would(
    rules: FitRules, pod: Manifest, others: list[Manifest], expected: str | None
) -> None:
    found = fit(rules, pod, *others)

    assert found is None if expected is None else expected in str(found)


def unreadable(manifest: Manifest) -> Manifest:
    return manifest | {"status": 1}


UNREADABLE_SPACE: Manifest = {
    "kind": "Namespace",
    "metadata": {"name": "other", "uid": "uid-other", "labels": 1},
}


@pytest.mark.parametrize(
    ("rules", "pod", "others", "expected"),
    [
        pytest.param(
            UPSTREAM, mover(), [unreadable(db("n1"))], "default/db cannot be read", id="room"
        ),
        pytest.param(UPSTREAM, mover(), [unreadable(db("n2"))], None, id="room-of-another-node"),
        pytest.param(UPSTREAM, mover(), [unreadable(db(""))], None, id="room-nobody-knows-where"),
        pytest.param(
            APART,
            mover(affinity=apart(term("web"))),
            [unreadable(db("n2"))],
            "default/db on n2",
            id="may-be-meant-by-anti-affinity",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("web"))),
            [unreadable(db("n0"))],
            None,
            id="may-be-meant-in-another-zone",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("web"))),
            [unreadable(db(""))],
            "default/db, wherever that is",
            id="may-be-meant-wherever-it-is",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("web", namespaces=["third"]))),
            [unreadable(db(""))],
            None,
            id="in-a-namespace-that-is-not-meant",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term())),
            [unreadable(make_node("n3")), db("n3")],
            "default/db, wherever that is",
            id="in-the-way-on-a-node-that-cannot-be-read",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term("db", HOST, namespaceSelector=RED))),
            [UNREADABLE_SPACE, db("n1", namespace="other")],
            "other/db",
            id="in-a-namespace-that-cannot-be-read",
        ),
        pytest.param(
            APART,
            mover(namespace="other"),
            [UNREADABLE_SPACE, db("n1", affinity=apart(term("web", HOST, namespaceSelector=RED)))],
            "default/db",
            id="of-a-namespace-that-cannot-be-read",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(labelSelector={}))),
            [unreadable(db("n1"))],
            "cannot be read",
            id="nobody-to-be-near",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term("web"))),
            [unreadable(db(""))],
            f"in {ZONE} b",
            id="nobody-else-is-the-first",
        ),
        pytest.param(
            NEAR,
            mover(affinity=near(term(namespaceSelector=RED))),
            [UNREADABLE_SPACE, db("n1", namespace="other")],
            f"in {ZONE} b",
            id="nobody-to-be-near-in-a-namespace-that-cannot-be-read",
        ),
        pytest.param(
            SPREAD,
            mover(spread=[CONSTRAINT]),
            [unreadable(db("n0"))],
            "default/db cannot be read",
            id="spread",
        ),
    ],
)
def test_what_cannot_be_read_is_taken_for_the_worst(
    rules: FitRules, pod: Manifest, others: list[Manifest], expected: str | None
) -> None:
    found = fit(rules, pod, *others)

    assert found is None if expected is None else expected in str(found)


@pytest.mark.parametrize(
    ("rules", "pod", "to_come"),
    [
        pytest.param(
            UPSTREAM,
            mover(requests={"cpu": "3"}),
            make_pod("q", requests={"cpu": "3"}),
            id="resources",
        ),
        pytest.param(
            APART,
            mover(affinity=apart(term())),
            make_pod("q", labels={"app": "db"}),
            id="own-anti-affinity",
        ),
        pytest.param(
            APART, mover(), make_pod("q", affinity=apart(term("web", HOST))), id="anti-affinity"
        ),
        pytest.param(
            PORTS, with_ports("p", "n0", PORT), with_ports("q", "", PORT), id="host-ports"
        ),
        pytest.param(SPREAD, mover(spread=[CONSTRAINT]), make_pod("q"), id="spread"),
    ],
)
def test_who_is_promised_room_counts_as_being_there_but_not_for_itself(
    rules: FitRules, pod: Manifest, to_come: Manifest
) -> None:
    promised = PromisedPods()
    lister = Lister(cluster_store(FROM, TARGET, BESIDE, pod), GonePods(), promised)
    found, target = lister.pod_named("default", "p"), lister.node("n1")
    assert found is not None
    assert target is not None

    assert misfit(found, target, lister, rules) is None
    promised.promise(found, "n1")
    assert misfit(found, target, lister, rules) is None
    promised.promise(pod_view(to_come), "n1")
    assert misfit(found, target, lister, rules) is not None
    promised.end("uid-default-q")
    assert misfit(found, target, lister, rules) is None


def test_a_pod_that_counts_as_gone_keeps_nobody_away() -> None:
    other = db("n1", affinity=apart(term("web", HOST)))
    full = cluster(FROM, TARGET, mover(), other)
    pod, node = full.pod_named("default", "p"), full.node("n1")
    assert pod is not None
    assert node is not None

    assert misfit(pod, node, full, APART) is not None
    assert misfit(pod, node, full.less(GonePods([pod_view(other)])), APART) is None


def test_who_may_leave_is_nobody_to_be_near_and_yet_no_one_else_is_the_first() -> None:
    promised, beside = PromisedPods(), make_pod("q", node="n2")
    pod = mover(affinity=near(term("web")))
    lister = Lister(cluster_store(FROM, TARGET, BESIDE, pod, beside), GonePods(), promised)
    found, target = lister.pod_named("default", "p"), lister.node("n1")
    assert found is not None
    assert target is not None

    assert misfit(found, target, lister, NEAR) is None
    promised.promise(pod_view(beside), "n1")
    assert misfit(found, target, lister, NEAR) is not None
    promised.end("uid-default-q")
    assert misfit(found, target, lister.less(GonePods([pod_view(beside)])), NEAR) is None


def test_who_is_to_come_is_nobody_to_be_near_and_yet_no_one_else_is_the_first() -> None:
    promised = PromisedPods()
    pod = mover(affinity=near(term("web")))
    lister = Lister(cluster_store(FROM, TARGET, BESIDE, pod), GonePods(), promised)
    found, target = lister.pod_named("default", "p"), lister.node("n1")
    assert found is not None
    assert target is not None

    promised.promise(found, "n1")
    assert misfit(found, target, lister, NEAR) is None
    promised.promise(pod_view(make_pod("q")), "n1")
    assert misfit(found, target, lister, NEAR) is not None


def test_whom_one_that_is_to_come_must_be_near_has_to_stay() -> None:
    promised, coming = PromisedPods(), make_pod("web", affinity=near(term(key=HOST)))
    nodes = [make_node(name, labels={HOST: name}) for name in ("n0", "n1", "n2")]
    company, beside = (make_pod(name, node="n0", labels={"app": "db"}) for name in ("p", "q"))
    alone = Lister(cluster_store(*nodes, company), GonePods(), promised)
    with_another = Lister(cluster_store(*nodes, company, beside), GonePods(), promised)

    def fits(lister: Lister) -> bool:
        found, target = lister.pod_named("default", "p"), lister.node("n1")
        assert found is not None
        assert target is not None
        return misfit(found, target, lister, NEAR) is None

    assert fits(alone)
    promised.promise(pod_view(coming), "n0")
    assert not fits(alone)
    assert fits(with_another)
    promised.promise(pod_view(coming), "n2")
    assert fits(alone)
