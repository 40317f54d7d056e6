"""Makes shared Pod templates out of the undecoded parts of a Pod spec.

One template stands for all Pods that agree, byte for byte, in what it is made of. Decoding a Pod
whose template is known therefore costs one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress
from typing import TypeVar

import msgspec
from msgspec import Raw

from reactive_descheduler.api import wire
from reactive_descheduler.api.meta import OwnerReference
from reactive_descheduler.api.pod import Pod, PodTemplate
from reactive_descheduler.api.quantity import parse_quantity
from reactive_descheduler.api.terms import Toleration, TopologySpreadConstraint

Amounts = Mapping[str, int]
T = TypeVar("T")

NO_TEXTS: dict[str, str] = {}
"""The one empty map of labels, annotations and selectors."""

_texts = msgspec.json.Decoder(dict[str, str] | None)
_owners = msgspec.json.Decoder(tuple[OwnerReference, ...] | None)
_tolerations = msgspec.json.Decoder(tuple[Toleration, ...] | None)
_spread = msgspec.json.Decoder(tuple[TopologySpreadConstraint, ...] | None)
_affinity = msgspec.json.Decoder(wire.Affinity | None)
_resources = msgspec.json.Decoder(wire.Resources | None)
_amounts = msgspec.json.Decoder(wire.Amounts | None)
_ports = msgspec.json.Decoder(tuple[wire.Port, ...] | None)
_claim = msgspec.json.Decoder(wire.ClaimSource | None)
_text = msgspec.json.Decoder(str | None)
_list = msgspec.json.Decoder(list[Raw] | None)

_NULLS = (b"", b"null")
_NO_SPEC = wire.PodSpec()
_NO_AFFINITY = wire.Affinity()
_NO_RESOURCES = wire.Resources()
_SHARED_FIELDS = ("labels", "owners", "node_selector", "tolerations", "spread_constraints")


class TemplateTable:
    """The templates of all Pods seen, by content. It only grows until `sweep`."""

    def __init__(self) -> None:
        self._templates: dict[bytes, PodTemplate] = {}
        self._parts: dict[tuple[int, bytes], object] = {}

    def __len__(self) -> int:
        return len(self._templates)

    def template(self, meta: wire.Meta, spec: wire.PodSpec | None) -> PodTemplate:
        """Return the template of a Pod, the same object for the same content.

        Raises ValueError or msgspec's errors when a part cannot be read.
        """
        key = _key(meta, spec or _NO_SPEC)
        found = self._templates.get(key)
        if found is None:
            found = self._templates[key] = self._make(meta, spec or _NO_SPEC)
        return found

    def part(self, raw: Raw, decoder: msgspec.json.Decoder[T | None], default: T) -> T:
        """Return what a stretch of input says, the same object for the same bytes."""
        text = bytes(raw)
        if text in _NULLS:
            return default
        key = (id(decoder), text)
        found = self._parts.get(key)
        if found is None:
            decoded = decoder.decode(text)
            found = self._parts[key] = default if decoded is None else decoded
        return found  # type: ignore[return-value]  # entries of one decoder have its type

    def sweep(self, pods: Iterable[Pod]) -> None:
        """Forget every template that none of these Pods uses, and every part of no template.

        Whatever is forgotten too early only loses its sharing: a Pod decoded later then seems to
        have changed once.
        """
        used: dict[int, PodTemplate] = {id(pod.template): pod.template for pod in pods}
        self._templates = {
            key: template for key, template in self._templates.items() if id(template) in used
        }
        parts = {id(getattr(found, name)) for found in used.values() for name in _SHARED_FIELDS}
        self._parts = {key: part for key, part in self._parts.items() if id(part) in parts}

    def _make(self, meta: wire.Meta, spec: wire.PodSpec) -> PodTemplate:
        affinity = self.part(spec.affinity, _affinity, _NO_AFFINITY)
        node_affinity = affinity.node_affinity or wire.NodeAffinity()
        pod_affinity = affinity.pod_affinity or wire.PodTerms()
        anti_affinity = affinity.pod_anti_affinity or wire.PodTerms()
        containers = spec.containers or []
        init_containers = spec.init_containers or []
        resources = [self._amounts_of(container) for container in containers]
        init_resources = [self._amounts_of(container) for container in init_containers]
        always = [_decode(_text, each.restart_policy, "") == "Always" for each in init_containers]
        volumes = spec.volumes or []
        return PodTemplate(
            labels=self.part(meta.labels, _texts, NO_TEXTS),
            owners=self.part(meta.owner_references, _owners, ()),
            node_selector=self.part(spec.node_selector, _texts, NO_TEXTS),
            required_node_affinity=node_affinity.required,
            preferred_node_affinity=node_affinity.preferred or (),
            pod_affinity=pod_affinity.required or (),
            anti_affinity=anti_affinity.required or (),
            tolerations=self.part(spec.tolerations, _tolerations, ()),
            spread_constraints=self.part(spec.topology_spread_constraints, _spread, ()),
            priority=spec.priority,
            requests=pod_requests(
                [requests for requests, _ in resources],
                [
                    (requests, kept)
                    for (requests, _), kept in zip(init_resources, always, strict=True)
                ],
                pod_level=read_amounts(
                    self.part(spec.resources, _resources, _NO_RESOURCES).requests
                ),
                overhead=read_amounts(_decode(_amounts, spec.overhead, {})),
            ),
            requested=tuple(
                sorted({name for found, _ in (*resources, *init_resources) for name in found})
            ),
            computed_qos=qos_class(resources + init_resources),
            images=tuple(_decode(_text, container.image, "") for container in containers),
            local_storage=any(
                bytes(volume.host_path) not in _NULLS or bytes(volume.empty_dir) not in _NULLS
                for volume in volumes
            ),
            claims=tuple(
                _decode(_claim, volume.persistent_volume_claim, wire.ClaimSource()).claim_name or ""
                for volume in volumes
                if bytes(volume.persistent_volume_claim) not in _NULLS
            ),
            resource_claims=bool(_decode(_list, spec.resource_claims, [])),
            host_ports=tuple(
                f"{port.host_ip or '0.0.0.0'}:{port.host_port}/{port.protocol or 'TCP'}"
                for container in (*containers, *compress(init_containers, always))
                for port in _decode(_ports, container.ports, ())
                if port.host_port
            ),
        )

    def _amounts_of(self, container: wire.Container) -> tuple[Amounts, Amounts]:
        found = self.part(container.resources, _resources, _NO_RESOURCES)
        return read_amounts(found.requests), read_amounts(found.limits)


def pod_requests(
    containers: Iterable[Amounts],
    init_containers: Iterable[tuple[Amounts, bool]],
    *,
    pod_level: Amounts,
    overhead: Amounts,
) -> dict[str, int]:
    """Return what a Pod takes of a node, as the scheduler counts it (spec/strategies 2.8).

    Init containers come in their order, each with whether it restarts always (a sidecar).
    """
    total: dict[str, int] = {}
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for requests in containers:
        _add(total, requests)
    for requests, sidecar in init_containers:
        running = dict(sidecars)
        _add(running, requests)
        if sidecar:
            _add(total, requests)
            sidecars = running
        for name, amount in running.items():
            peak[name] = max(amount, peak.get(name, amount))
    for name, amount in peak.items():
        total[name] = max(amount, total.get(name, amount))
    total.update({name: amount for name, amount in pod_level.items() if _pod_level(name)})
    _add(total, overhead)
    return total


def qos_class(containers: Iterable[tuple[Amounts, Amounts]]) -> str:
    """Return the QoS class by requests and limits of all containers (spec/strategies 2.6)."""
    requested: dict[str, int] = {}
    limited: dict[str, int] = {}
    guaranteed = True
    for requests, limits in containers:
        _add(requested, _counted(requests))
        counted = _counted(limits)
        _add(limited, counted)
        guaranteed = guaranteed and len(counted) == 2
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requested == limited else "Burstable"


def _key(meta: wire.Meta, spec: wire.PodSpec) -> bytes:
    parts: list[Raw | bytes] = [
        meta.labels,
        meta.owner_references,
        b"" if spec.priority is None else b"%d" % spec.priority,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.overhead,
        spec.resources,
        spec.resource_claims,
    ]
    for containers in (spec.containers, spec.init_containers):
        parts.append(b"[]")
        for each in containers or ():
            parts += (each.image, each.resources, each.ports, each.restart_policy)
    parts.append(b"[]")
    for volume in spec.volumes or ():
        parts += (volume.host_path, volume.empty_dir, volume.persistent_volume_claim)
    return b"\0".join(parts)  # no JSON text contains a zero byte


def _decode(decoder: msgspec.json.Decoder[T | None], raw: Raw, default: T) -> T:
    text = bytes(raw)
    found = decoder.decode(text) if text else None
    return default if found is None else found


def decode_texts(raw: Raw) -> dict[str, str]:
    """Return labels or annotations; absent and null mean none."""
    return _decode(_texts, raw, NO_TEXTS)


def read_amounts(amounts: wire.Amounts | None) -> dict[str, int]:
    """Return a map of quantities in nanos; null stands for zero, as in the API."""
    if not amounts:
        return {}
    return {name: parse_quantity(0 if each is None else each) for name, each in amounts.items()}


def _add(total: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _counted(amounts: Amounts) -> Amounts:
    return {name: amounts[name] for name in ("cpu", "memory") if amounts.get(name, 0) > 0}


def _pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")
