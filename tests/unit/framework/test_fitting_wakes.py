"""What can make room for a Pod that fits nowhere, where that is not on the node itself."""

from __future__ import annotations

import pytest

from reactive_descheduler.api.changes import Action, On
from reactive_descheduler.api.meta import Ref
from reactive_descheduler.cache.gone import GonePods
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.promised import PromisedPods
from reactive_descheduler.config.corrections import ALL, NONE, Corrections
from reactive_descheduler.framework.fitting import Fitting, fit_rules
from tests.builders import Manifest, cluster_store, make_node, make_pod, pod_view

HOST = "kubernetes.io/hostname"


def _term(**more: object) -> list[Manifest]:
    return [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **more}]


def _asking(kind: str, **term: object) -> Manifest:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": _term(**term)}
    return make_pod("p", node="n1", affinity={kind: required})


def _spread() -> Manifest:
    constraint = {
        **_term()[0],
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return make_pod("p", node="n1", spread=[constraint])


NEAR, APART, SPREAD = _asking("podAffinity"), _asking("podAntiAffinity"), _spread()
BY_LABELS = {"matchLabels": {"team": "red"}}
OWN: Ref = ("Namespace", "", "default")
OTHER: Ref = ("Namespace", "", "other")
NODE: Ref = ("Node", "", "n9")


def _wakes(
    pod: Manifest, corrections: Corrections, to_come: Manifest | None = None
) -> tuple[On, ...]:
    promised = PromisedPods()
    nodes = [make_node(name, labels={"zone": name, HOST: name}) for name in ("n1", "n2")]
    lister = Lister(cluster_store(*nodes, pod), GonePods(), promised)
    if to_come is not None:
        promised.promise(pod_view(to_come), "n2")
    return Fitting(fit_rules(corrections)).room_wakes(pod_view(pod), lister)


def _wakes_whatever_fits(wakes: tuple[On, ...], action: Action, ref: Ref) -> bool:
    return any(on.action & action and on.ref in (None, ref) and on.shape is None for on in wakes)


@pytest.mark.parametrize(
    ("pod", "action", "ref"),
    [
        pytest.param(NEAR, Action.POD_BOUND, OWN, id="one-to-be-near-came"),
        pytest.param(NEAR, Action.POD_LABELS, OWN, id="one-to-be-near-was-relabelled"),
        pytest.param(NEAR, Action.POD_GONE, OWN, id="it-may-be-the-first-now"),
        pytest.param(NEAR, Action.NODE_LABELS, NODE, id="another-node-lies-in-another-zone"),
        pytest.param(
            _asking("podAffinity", namespaces=["other"]),
            Action.POD_BOUND,
            OTHER,
            id="one-to-be-near-came-to-another-namespace",
        ),
        pytest.param(
            _asking("podAffinity", namespaceSelector=BY_LABELS),
            Action.NAMESPACE_LABELS,
            OTHER,
            id="a-namespace-to-be-near-was-relabelled",
        ),
        pytest.param(
            _asking("podAffinity", namespaces=["other"], matchLabelKeys=["app"]),
            Action.POD_LABELS,
            ("Pod", "default", "p"),
            id="its-own-labels-say-whom-to-be-near",
        ),
        pytest.param(APART, Action.POD_GONE, OWN, id="one-to-be-apart-from-went"),
        pytest.param(APART, Action.POD_OPAQUE, OWN, id="one-to-be-apart-from-can-be-read"),
        pytest.param(SPREAD, Action.POD_BOUND, OWN, id="one-came-to-the-least-domain"),
        pytest.param(SPREAD, Action.POD_OPAQUE, OWN, id="all-can-be-counted"),
    ],
)
def test_what_happens_elsewhere_in_the_domain_may_make_room(
    pod: Manifest, action: Action, ref: Ref
) -> None:
    assert _wakes_whatever_fits(_wakes(pod, ALL), action, ref)


def test_upstream_reads_no_domains() -> None:
    assert not _wakes_whatever_fits(_wakes(NEAR, NONE), Action.POD_BOUND, OWN)


@pytest.mark.parametrize("pod", [NEAR, APART, SPREAD], ids=["near", "apart", "spread"])
def test_so_may_the_end_of_a_promise_elsewhere_in_the_domain(pod: Manifest) -> None:
    promised = _wakes(pod, ALL, make_pod("q", labels={"app": "db"}))

    assert _wakes_whatever_fits(promised, Action.REPLACED, ("Node", "", "n2"))
    assert not _wakes_whatever_fits(_wakes(pod, ALL), Action.REPLACED, ("Node", "", "n2"))


def test_whom_one_that_is_to_come_must_be_near_waits_for_it() -> None:
    company = make_pod("p", node="n1", labels={"app": "db"})
    coming = make_pod("q", affinity=NEAR["spec"]["affinity"])  # type: ignore[index]
    promised = PromisedPods()
    nodes = [make_node(name, labels={"zone": name}) for name in ("n1", "n2")]
    lister = Lister(cluster_store(*nodes, company), GonePods(), promised)
    fitting = Fitting(fit_rules(ALL))

    assert fitting.elsewhere(pod_view(company), lister.nodes(), lister) is not None
    promised.promise(pod_view(coming), "n1")
    assert fitting.elsewhere(pod_view(company), lister.nodes(), lister) is None

    wakes = fitting.room_wakes(pod_view(company), lister)
    assert _wakes_whatever_fits(wakes, Action.REPLACED, ("Node", "", "n1"))
    assert _wakes_whatever_fits(wakes, Action.POD_BOUND, OWN)
