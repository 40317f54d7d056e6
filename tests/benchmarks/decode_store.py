"""What a Pod event, a page and a cluster cost, from bytes to the indexed store.

Run by hand, on a quiet machine: `python -m tests.benchmarks.decode_store`.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections import deque
from collections.abc import Callable

import orjson

from reactive_descheduler.api.changes import Change
from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.cache.informer import Informer
from reactive_descheduler.cache.store import Store
from tests.builders import Manifest, make_node, make_pod, owner

PODS = 10_000
PODS_PER_WORKLOAD = 10
PODS_PER_NODE = 20
PAGE = 500
ROUNDS = 7


def main() -> None:
    gc.set_threshold(10_000, 20, 100)  # as the running program has it
    print(f"{'':44}{'measured':>10}{'target':>8}{'fail at':>9}")
    lines = [
        orjson.dumps({"type": "MODIFIED", "object": pod(place, version=2)}) for place in range(PAGE)
    ]
    print(f"Pod line {len(lines[0])} bytes, page of {PAGE}, best and median of {ROUNDS}")
    show("Pod event, decode alone, us", decode_lines(lines), None)
    show("Pod event, decode to indexed store, us", status_events(), (30, 80))
    show("Pod replayed, us", replays(lines), None)
    show(f"page of {PAGE}, decode with views, ms", pages(), (15, None))
    show("Node event, us", node_events(), None)
    rate, megabytes = sync()
    print(f"{'initial sync from memory, Pods/s':44}{rate:10.0f}{15_000:8}{8_000:9}")
    print(f"{f'memory per {PODS} Pods, MB':44}{megabytes:10.1f}{25:8}{35:9}")


def show(name: str, measured: list[float], limits: tuple[int, int | None] | None) -> None:
    target, fail = limits if limits is not None else ("", "")
    best, middle = min(measured), statistics.median(measured)
    print(f"{name:44}{f'{best:.1f} {middle:.1f}':>10}{target:>8}{fail or '':>9}")


def decode_lines(lines: list[bytes]) -> list[float]:
    decoder = Decoder()

    def run() -> None:
        for line in lines:
            decoder.decode_line("Pod", line)

    run()
    return [timed(run) * 1e6 / len(lines) for _ in range(ROUNDS)]


def status_events() -> list[float]:
    decoder, informer = Decoder(), Informer(Store(), ignore)
    measured = []
    for version in range(ROUNDS + 1):
        lines = [
            orjson.dumps({"type": "MODIFIED", "object": pod(place, version=version)})
            for place in range(PAGE)
        ]

        def run(lines: list[bytes] = lines) -> None:
            for line in lines:
                informer.apply(decoder.decode_line("Pod", line))

        measured.append(timed(run) * 1e6 / PAGE)
    return measured[1:]


def replays(lines: list[bytes]) -> list[float]:
    decoder, informer = Decoder(), Informer(Store(), ignore)
    events = [decoder.decode_line("Pod", line) for line in lines]

    def run() -> None:
        for event in events:
            informer.apply(event)

    run()
    return [timed(run) * 1e6 / len(lines) for _ in range(ROUNDS)]


def pages() -> list[float]:
    decoder = Decoder()
    body = page(0)
    decoder.decode_list("Pod", body)
    return [timed(lambda: decoder.decode_list("Pod", body)) * 1e3 for _ in range(ROUNDS)]


def node_events() -> list[float]:
    decoder, informer = Decoder(), Informer(Store(), ignore)
    measured = []
    for version in range(ROUNDS + 1):
        lines = [
            orjson.dumps({"type": "MODIFIED", "object": node(place, version=version)})
            for place in range(PAGE)
        ]

        def run(lines: list[bytes] = lines) -> None:
            for line in lines:
                informer.apply(decoder.decode_line("Node", line))

        measured.append(timed(run) * 1e6 / PAGE)
    return measured[1:]


def sync() -> tuple[float, float]:
    """Return Pods per second, and megabytes held for all of them; measured in two passes, since
    tracing slows down."""
    bodies = [page(first) for first in range(0, PODS, PAGE)]
    seconds = timed(lambda: fill(bodies))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = fill(bodies)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del held
    return PODS / seconds, (after - before) / 1e6


def fill(bodies: list[bytes]) -> tuple[Decoder, Informer]:
    decoder, informer = Decoder(), Informer(Store(), ignore)
    views = [each for body in bodies for each in decoder.decode_list("Pod", body).items]
    deque(informer.replace("Pod", views, "1"), maxlen=0)
    return decoder, informer


def timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ignore(change: Change) -> None:
    """Take no notice: the bus has its own benchmark."""


def page(first: int) -> bytes:
    items = [pod(place, version=1) for place in range(first, first + PAGE)]
    return orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": items})


def pod(place: int, *, version: int) -> Manifest:
    """Return a Pod of about 8 kB, as an API server writes it, 3 kB of it managedFields."""
    workload = f"shop-{place // PODS_PER_WORKLOAD}"
    hash_ = f"{place // PODS_PER_WORKLOAD:010x}"
    made = make_pod(
        f"{workload}-{hash_}-{place:05x}",
        namespace=f"team-{place // 200}",
        uid=f"3b1f4d0c-6a52-4f7e-9d3a-{place:012x}",
        version=str(10**6 + version),
        node=f"ip-10-0-{place // PODS_PER_NODE}.eu-central-1.compute.internal",
        labels={
            "app.kubernetes.io/name": workload,
            "app.kubernetes.io/part-of": "shop",
            "pod-template-hash": hash_,
        },
        annotations={
            "cni.projectcalico.org/podIP": f"10.1.{place // 250}.{place % 250}/32",
            "prometheus.io/scrape": "true",
        },
        owners=[owner(f"{workload}-{hash_}")],
        requests={"cpu": "250m", "memory": "256Mi"},
        limits={"memory": "512Mi"},
        images=(f"registry.example.com/shop/{workload}:1.2.3", "envoy:1.30"),
        tolerations=[
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
        volumes=[{"name": f"kube-api-access-{place:05x}", "projected": {"sources": [{}, {}]}}],
        priority=0,
        restarts=version % 3,
        qos="Burstable",
        conditions=[
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": f"2026-01-01T00:{place % 60:02}:{version % 60:02}Z",
            }
            for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady")
        ],
    )
    spec, metadata = made["spec"], made["metadata"]
    assert isinstance(spec, dict)
    assert isinstance(metadata, dict)
    for container in spec["containers"]:
        container["env"] = [{"name": f"SETTING_{n}", "value": "v" * 40} for n in range(14)]
        container["volumeMounts"] = [{"name": f"kube-api-access-{place:05x}", "mountPath": "/var"}]
    fields: Manifest = {f"f:field{n}": {".": {}, "f:inner": {}} for n in range(80)}
    metadata["managedFields"] = [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}]
    return made


def node(place: int, *, version: int) -> Manifest:
    """Return a Node of about 12 kB, most of it names of images."""
    room = {
        "cpu": "15890m",
        "memory": f"{60_000_000 + place}Ki",
        "ephemeral-storage": "95551679124",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": "110",
    }
    made = make_node(f"node-{place}", version=str(10**6 + version), allocatable=room)
    status = made["status"]
    assert isinstance(status, dict)
    status["images"] = [
        {"names": [f"registry.example.com/team/image-{n}@sha256:{n:064x}"], "sizeBytes": n}
        for n in range(80)
    ]
    return made


if __name__ == "__main__":
    main()
