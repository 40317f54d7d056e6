"""A real kubectl against the sandbox, over TLS with the written kubeconfig.

The tables hold what is typed and what must be seen. Most rows share one cluster: rows that write
have a namespace of their own, and what changes nodes has a cluster of its own.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from anyio.from_thread import start_blocking_portal

from reactive_descheduler.sandbox.cluster import running_sandbox
from reactive_descheduler.sandbox.kubelet import Pace
from reactive_descheduler.sandbox.sample import create_sample_workloads, make_deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reactive_descheduler.sandbox.documents import JsonObject

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.timeout(60),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


@dataclass(frozen=True)
class Kubectl:
    """kubectl, with its files in a directory of its own."""

    directory: Path
    namespace: str = "default"

    def command(self, line: str) -> list[str]:
        cache = f"--cache-dir={self.directory / 'cache'}"
        return ["kubectl", cache, f"--namespace={self.namespace}", *shlex.split(line)]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"KUBECONFIG": str(self.directory / "kubeconfig")}

    def __call__(self, line: str, *, stdin: str = "", fails: bool = False) -> str:
        """What it prints; it must succeed, or with `fails` it must not."""
        result = subprocess.run(
            self.command(line),
            input=stdin,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=30,
            check=False,
        )
        assert (result.returncode != 0) is fails, result.stdout
        return result.stdout

    def json(self, line: str) -> JsonObject:
        document: JsonObject = json.loads(self(f"{line} -o json"))
        return document


@contextmanager
def sample_cluster(directory: Path) -> Iterator[Kubectl]:
    """Three nodes with the workloads of the demo, in a thread of its own."""
    pace = Pace(start=0.02, stop_cap=0.05, job=0.1)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running_sandbox(nodes=3, pace=pace)) as cluster,
    ):
        portal.call(cluster.write_kubeconfig, directory / "kubeconfig")
        portal.call(create_sample_workloads, cluster.client)
        yield Kubectl(directory)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with sample_cluster(tmp_path_factory.mktemp("kubectl")) as kubectl:
        yield kubectl


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Kubectl]:
    with sample_cluster(tmp_path) as kubectl:
        yield kubectl


@pytest.fixture
def apart(shared: Kubectl) -> Kubectl:
    """The shared cluster, in a namespace of the test's own."""
    namespace = f"test-{secrets.token_hex(4)}"
    shared(f"create namespace {namespace}")
    return Kubectl(shared.directory, namespace)


READS = {
    # command: patterns that its output must have, in this order
    "version": [r"Server Version: v1\.\d+"],
    "api-resources": [r"pods +po +v1 +true +Pod", r"poddisruptionbudgets +pdb +policy/v1"],
    "api-versions": ["apps/v1", r"\nv1"],
    "cluster-info": ["control plane.*is running at"],
    "explain pod": ["KIND: +Pod", "run together on one node", "spec.*<PodSpec>", "status"],
    "explain pod.spec.tolerations": ["<\\[\\]Toleration>", "tolerationSeconds.*<integer>"],
    "explain deploy.spec.strategy --recursive": ["rollingUpdate", "maxSurge"],
    "explain pdb.spec": ["maxUnavailable", "minAvailable"],
    "explain events": ["KIND: +Event", "involvedObject"],
    "get nodes": ["NAME +STATUS +ROLES +AGE +VERSION", r"node-1 +Ready +<none> +\d+s +v1"],
    "get nodes -o wide": ["INTERNAL-IP", "node-3"],
    "get pods": ["READY +STATUS +RESTARTS", r"agent-\w+ +1/1 +Running +0"],
    "get pods -o wide": ["NODE", r"web-\w+-\w+ +1/1 +Running +0 +\d+s +10\.\S+ +node-\d"],
    "get pods -A": ["NAMESPACE +NAME", r"default +web-"],
    "get pods -A --chunk-size=3": [r"agent-(.|\n)*api-(.|\n)*batch-(.|\n)*store-(.|\n)*web-"],
    "top nodes": [r"CPU\(cores\)", r"node-1 +\d+m +\d+%"],
    "top pods -A": [r"default +web-\S+ +100m +64Mi"],
    "get nodes.metrics.k8s.io": ["NAME +CPU +MEMORY +WINDOW", r"node-1 +\d+n +\d+Ki +15s"],
    "get pods -l app=store -o name": [r"^(pod/store-\S+\n){3}$"],
    "get pods -l 'app in (web,api),app!=api' -o name": [r"^(pod/web-\S+\n){4}$"],
    "get pods --field-selector=spec.nodeName=node-1 -o name": [r"pod/agent-\w+"],
    "get pods --field-selector=status.phase!=Running": ["No resources found"],
    "get pods --show-labels -l app=web": ["app=web,pod-template-hash="],
    "get pods -L app": ["APP", "store"],
    "get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name": [r"agent-(.|\n)*web-"],
    "get pods -o jsonpath='{.items[*].spec.nodeName}'": [r"node-\d( node-\d)+"],
    "get deploy web -o json": [r'"kind": "Deployment"', r'"observedGeneration": 1'],
    "get deploy,ds,rs -o wide": ["CONTAINERS +IMAGES +SELECTOR", "example/web:1 +app=web"],
    "get deploy web -o yaml": [
        "kind: Deployment",
        "strategy:",
        "maxSurge: 25%",
        "readyReplicas: 4",
    ],
    "get deploy,rs,ds,pdb": [
        "deployment.apps/web +4/4 +4 +4",
        "replicaset.apps/",
        "daemonset.apps/",
    ],
    "get all": ["pod/", "deployment.apps/web", "replicaset.apps/", "daemonset.apps/agent"],
    "get pdb": ["MIN AVAILABLE +MAX UNAVAILABLE +ALLOWED DISRUPTIONS", "store +2 +N/A +1"],
    "get ns": ["default +Active"],
    "get statefulsets,jobs,events": ["No resources found"],
    "get --raw /readyz": ["ok"],
    "describe node node-1": [
        r"Labels:(.|\n)*kubernetes.io/hostname=node-1",
        r"Ready +True",
        r"Non-terminated Pods: +\(\d+ in total\)",
        r"default +agent-",
        r"cpu +\d+m",
    ],
    "describe pod -l app=store": ["Controlled By: +ReplicaSet/store-", "Ready +True", "QoS Class"],
    "describe deploy web": [
        "StrategyType: +RollingUpdate",
        "25% max unavailable, 25% max surge",
        "Available +True +MinimumReplicasAvailable",
        "Progressing +True +NewReplicaSetAvailable",
        r"NewReplicaSet: +web-\w+ \(4/4 replicas created\)",
    ],
    "describe rs -l app=api": ["Controlled By: +Deployment/api", "3 Running"],
    "describe ds agent": ["Desired Number of Nodes Scheduled: 3"],
    "describe pdb store": ["Min available: +2", "Allowed disruptions: +1", "Current: +3"],
    "rollout status deploy/web": ["successfully rolled out"],
    "rollout status ds/agent": ["successfully rolled out"],
    "rollout history deploy/web": ["REVISION", r"\n1 +<none>"],
    "auth can-i create pods/eviction": ["yes"],
    "auth can-i '*' '*'": ["yes"],
    "auth can-i --list": [r"\*\.\*"],
    "auth whoami": ["Username +sandbox"],
}

REFUSALS = {
    "logs deploy/web": ["the sandbox runs no containers, so it does not serve pods/log"],
    "exec deploy/web -- ls": ["the sandbox runs no containers, so it does not serve pods/exec"],
    "attach deploy/web": ["the sandbox runs no containers"],
    "port-forward deploy/web 8080:80": ["the sandbox runs no containers"],
    "get nothings": ['server doesn.t have a resource type "nothings"'],
    "get pod missing": [r'Error from server \(NotFound\): pods "missing" not found'],
    "get pods --field-selector=spec.no=a": ["field label not supported: spec.no"],
    "create deployment web --image=a:1": ['deployments.apps "web" already exists'],
    "create ingress a --rule=a/b=c:80": ["could not find the requested resource"],
    "drain node-1 --dry-run=server": ["cannot delete DaemonSet-managed Pods"],
}


@pytest.mark.parametrize("line", READS)
def test_it_shows(shared: Kubectl, line: str) -> None:
    _assert_shows(shared(line), READS[line])


@pytest.mark.parametrize("line", REFUSALS)
def test_it_is_refused_clearly(shared: Kubectl, line: str) -> None:
    _assert_shows(shared(line, fails=True), REFUSALS[line])


def _assert_shows(output: str, patterns: list[str]) -> None:
    place = 0
    for pattern in patterns:
        found = re.compile(pattern, re.MULTILINE).search(output, place)
        assert found, f"no {pattern!r} in what follows:\n{output[place:]}"
        place = found.end()


_CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "NAMESPACE"},
    "reason": "Happened",
    "message": "it did",
    "type": "Normal",
}


def _manifest(**data: str) -> str:
    return json.dumps({**_CONFIG, "data": data})


def _deployment(name: str, *, replicas: int, image: str = "a:1") -> str:
    # The namespace is the command's.
    document = make_deployment(name, replicas=replicas)
    document["metadata"] = {"name": name, "labels": {"app": name}}
    text = json.dumps(document)
    return text.replace(f"example/{name}:1", image)


# Each: commands, one after the other in a namespace of their own; with a manifest for the standard
# input where a command takes one, and the patterns that the output must have.
WRITES: dict[str, list[tuple[str, str, list[str]]]] = {
    "create-deployment": [
        ("create deployment d --image=a:1 --replicas=2", "", ["deployment.apps/d created"]),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("get deploy d", "", ["d +2/2 +2 +2"]),
    ],
    "create-by-name": [
        ("create pdb b --selector=app=d --min-available=1", "", ["b created"]),
        ("get pdb b -o jsonpath='{.spec.minAvailable} {.spec.selector}'", "", ['1 .*"app":"d"']),
        ("create configmap c --from-literal=a=b", "", ["configmap/c created"]),
        ("create secret generic s --from-literal=a=b", "", ["secret/s created"]),
        ("get secret s -o jsonpath='{.data.a}'", "", ["Yg=="]),
        ("create serviceaccount a", "", ["serviceaccount/a created"]),
        ("create service clusterip v --tcp=80:8080", "", ["service/v created"]),
    ],
    "create-job": [
        ("create job j --image=a:1", "", ["job.batch/j created"]),
        ("wait --for=condition=complete job/j --timeout=20s", "", ["condition met"]),
        ("get job j -o jsonpath='{.status.succeeded}'", "", ["1"]),
        ("get jobs", "", [r"STATUS +COMPLETIONS", r"j +Complete +1/1"]),
        ("delete job j", "", ['job.batch "j" deleted']),
    ],
    "create-from-a-file": [
        ("create -f -", _deployment("d", replicas=1), ["deployment.apps/d created"]),
        ("get deploy d -o name", "", ["deployment.apps/d"]),
        ("create -f - --dry-run=server -o name", _manifest(a="b"), ["configmap/c"]),
        ("get configmaps", "", ["No resources found"]),
    ],
    "apply-on-the-clients-side": [
        ("apply -f -", _deployment("d", replicas=1), ["deployment.apps/d created"]),
        ("apply -f -", _deployment("d", replicas=1), ["deployment.apps/d unchanged"]),
        ("apply -f -", _deployment("d", replicas=2), ["deployment.apps/d configured"]),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("get deploy d -o jsonpath='{.spec.replicas}'", "", ["2"]),
        ("apply -f -", _manifest(a="1", b="1"), ["configmap/c created"]),
        ("apply -f -", _manifest(a="2"), ["configmap/c configured"]),
        ("get cm c -o jsonpath='{.data}'", "", [r'^\{"a":"2"\}$']),
    ],
    "patch-in-three-kinds": [
        ("create configmap c --from-literal=a=b", "", []),
        ("""patch cm c --type=merge -p '{"data":{"a":"m"}}'""", "", ["patched"]),
        ("get cm c -o jsonpath='{.data.a}'", "", ["m"]),
        ("""patch cm c --type=json -p '[{"op":"remove","path":"/data/a"}]'""", "", ["patched"]),
        ("create deployment d --image=a:1", "", []),
        (
            """patch deploy d -p '{"spec":{"template":{"spec":{"containers":"""
            """[{"name":"a","image":"a:2"},{"name":"side","image":"b:1"}]}}}}'""",
            "",
            ["patched"],
        ),
        ("get deploy d -o jsonpath='{..containers[*].image}'", "", ["b:1 a:2|a:2 b:1"]),
    ],
    "label-and-annotate": [
        ("create configmap c", "", []),
        ("label cm c a=b", "", ["labeled"]),
        ("annotate cm c a=b", "", ["annotated"]),
        ("get cm -l a=b -o jsonpath='{.items[0].metadata.annotations.a}'", "", ["b"]),
        ("label cm c a-", "", ["unlabeled"]),
    ],
    "scale": [
        ("create deployment d --image=a:1", "", []),
        ("scale deploy d --replicas=3", "", ["deployment.apps/d scaled"]),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("get deploy d", "", ["3/3"]),
        ("scale deploy d --current-replicas=3 --replicas=0", "", ["scaled"]),
        ("wait --for=delete pods -l app=d --timeout=20s", "", []),
    ],
    "rollout": [
        ("create deployment d --image=a:1 --replicas=2", "", []),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("rollout restart deploy/d", "", ["deployment.apps/d restarted"]),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("set image deploy/d a=a:2", "", ["image updated"]),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("rollout history deploy/d", "", [r"\n1 ", r"\n2 ", r"\n3 "]),
        ("rollout undo deploy/d --to-revision=1", "", ["rolled back"]),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("get deploy d -o jsonpath='{..image}'", "", ["^a:1$"]),
        ("rollout pause deploy/d", "", ["paused"]),
        ("rollout resume deploy/d", "", ["resumed"]),
    ],
    "delete": [
        ("create deployment d --image=a:1 --replicas=2", "", []),
        ("rollout status deploy/d --timeout=20s", "", ["successfully rolled out"]),
        ("delete pods -l app=d --timeout=20s", "", [r'(pod "d-\S+" deleted.*\n){2}']),
        ("delete deploy d --timeout=20s", "", ['deployment.apps "d" deleted']),
        ("wait --for=delete pods -l app=d --timeout=20s", "", []),
        ("get all", "", ["No resources found"]),
    ],
    "run-and-set": [
        ("run p --image=a:1", "", ["pod/p created"]),
        ("wait --for=condition=ready pod/p --timeout=20s", "", ["condition met"]),
        ("set image pod/p p=a:2", "", ["image updated"]),
        ("delete pod p --grace-period=0 --force", "", ['pod "p" force deleted']),
    ],
    "stateful-set": [
        (
            "create -f -",
            _deployment("s", replicas=2).replace('"Deployment"', '"StatefulSet"'),
            ["statefulset.apps/s created"],
        ),
        ("rollout status sts/s --timeout=20s", "", ["2 new pods have been updated"]),
        ("get pods -o name", "", ["pod/s-0", "pod/s-1"]),
        ("get sts", "", ["READY", "s +2/2"]),
    ],
    "events": [
        ("create -f -", json.dumps(_EVENT), ["event/e created"]),
        ("get events", "", ["LAST SEEN +TYPE +REASON +OBJECT", "Normal +Happened +pod/p +it did"]),
        ("events", "", ["Happened"]),
    ],
    "diff-and-replace": [
        ("create configmap c --from-literal=a=b", "", []),
        ("replace -f -", _manifest(a="c"), ["configmap/c replaced"]),
        ("get cm c -o jsonpath='{.data.a}'", "", ["c"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("steps", WRITES.values(), ids=WRITES)
def test_it_changes(apart: Kubectl, steps: list[tuple[str, str, list[str]]]) -> None:
    for line, stdin, patterns in steps:
        _assert_shows(apart(line, stdin=stdin.replace("NAMESPACE", apart.namespace)), patterns)


def test_server_side_apply_is_refused_clearly(apart: Kubectl) -> None:
    output = apart("apply --server-side -f -", stdin=_manifest(a="b"), fails=True)

    assert "the sandbox does not serve server-side apply" in output


def test_a_namespace_is_created_and_deleted_with_what_it_holds(apart: Kubectl) -> None:
    apart("create deployment d --image=a:1")
    apart(f"delete namespace {apart.namespace} --timeout=20s")

    left = apart("get pods,deploy,rs")

    assert "No resources found" in left


def test_a_watch_shows_changes_as_they_come(apart: Kubectl) -> None:
    apart("create configmap first --from-literal=a=b")
    watch = subprocess.Popen(
        apart.command("get configmaps --no-headers -w --output-watch-events"),
        env=apart.environment,
        text=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert watch.stdout is not None
        seen = [watch.stdout.readline()]
        apart("create configmap second")
        apart("delete configmap first")
        seen += [watch.stdout.readline(), watch.stdout.readline()]
    finally:
        watch.kill()
        watch.communicate()

    events = [tuple(line.split()[:3]) for line in seen]
    assert events == [
        ("ADDED", "first", "1"),
        ("ADDED", "second", "0"),
        ("DELETED", "first", "1"),
    ]


def test_nodes_are_labelled_tainted_and_cordoned(fresh: Kubectl) -> None:
    fresh("label node node-1 disk=ssd")
    fresh("annotate node node-1 note=here")
    fresh("taint node node-1 a=b:NoSchedule c=d:NoExecute")
    fresh("taint node node-1 a-")
    fresh("cordon node-1")
    cordoned = fresh("get node node-1")
    node = fresh.json("get node node-1")
    fresh("uncordon node-1")
    ready = fresh("get node node-1")

    metadata, spec = node["metadata"], node["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    assert (metadata["labels"]["disk"], metadata["annotations"]["note"]) == ("ssd", "here")
    keys = {taint["key"] for taint in spec["taints"]}
    assert "c" in keys
    assert "a" not in keys
    assert "Ready,SchedulingDisabled" in cordoned
    assert "SchedulingDisabled" not in ready


def test_a_drain_evicts_what_may_go_and_says_what_may_not(fresh: Kubectl) -> None:
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}], "nodeName": "node-1"}
    fresh("run scratch --image=a:1 --overrides=" + shlex.quote(json.dumps({"spec": scratch})))
    fresh("wait --for=condition=ready pod/scratch --timeout=20s")

    unaware = fresh("drain node-1", fails=True)
    cautious = fresh("drain node-1 --ignore-daemonsets --force", fails=True)
    fresh("drain node-1 --ignore-daemonsets --force --delete-emptydir-data --timeout=30s")
    left = fresh("get pods --field-selector=spec.nodeName=node-1 -o name")

    assert "cannot delete DaemonSet-managed Pods" in unaware
    assert "cannot delete Pods with local storage" in cautious
    assert re.fullmatch(r"pod/agent-\w+\n", left)


def test_a_drain_minds_a_budget(fresh: Kubectl) -> None:
    fresh("delete pdb store")
    fresh("create pdb store --selector=app=store --min-available=100%")
    fresh("wait --for=jsonpath='{.status.currentHealthy}'=3 pdb/store --timeout=20s")
    node = fresh("get pods -l app=store -o jsonpath='{.items[0].spec.nodeName}'")

    output = fresh(f"drain {node} --ignore-daemonsets --timeout=1s", fails=True)
    pods = fresh("get pods -l app=store")

    assert "Cannot evict pod as it would violate the pod's disruption budget" in output
    assert pods.count("1/1     Running") == 3
