"""A cluster read from a dump instead of an API server: what `kubectl get ... -o json|yaml` prints.

A dump is one object, a List of objects, a list of one kind (as the API server itself answers), or
several of these: JSON texts or YAML documents one after another.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson
import yaml

from reactive_descheduler.api.decoding import KINDS, Decoder, UnreadableError
from reactive_descheduler.api.errors import SnapshotError
from reactive_descheduler.api.meta import KubeObject
from reactive_descheduler.api.surroundings import PriorityClass
from reactive_descheduler.cache.lister import Lister
from reactive_descheduler.cache.measured import (
    NODE_METRICS,
    POD_METRICS,
    read_node_metrics,
    read_pod_metrics,
)
from reactive_descheduler.cache.store import Store
from reactive_descheduler.cache.usage import PodName, Sample, Usage

Manifest = Mapping[str, object]

_YamlLoader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _DumpLoader(_YamlLoader):  # type: ignore[misc,valid-type]  # chosen at run time
    """The fast loader, which leaves times as text: kubectl does not quote all of them."""


_DumpLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_SPACE = re.compile(r"\s*")


class Snapshot:
    """Objects of one moment, as a store, with what could not be used."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        self.store = Store()
        self.lister = Lister(self.store)
        self.counts: Counter[str] = Counter()
        """Objects taken in, by kind."""
        self.left_out: Counter[str] = Counter()
        """Objects of kinds that decide nothing, by kind."""
        self.usage = Usage()
        """What was measured."""
        self.unmeasured: list[str] = []
        """What could not be, and why."""
        for found in objects:
            self.add(found)

    def add(self, found: KubeObject) -> None:
        for change in self.store.put(found):
            self.counts[change.kind] += change.new is not None

    @property
    def priority_classes(self) -> dict[str, int]:
        """Values of the PriorityClasses by name; one that cannot be read is left out."""
        return {
            found.name: found.value
            for found in self.store.all("PriorityClass")
            if isinstance(found, PriorityClass) and not found.opaque
        }


def read_snapshot(text: bytes, *, source: str) -> Snapshot:
    """Read a dump.

    Raises:
        SnapshotError: it is neither JSON nor YAML, or something in it is no object with a name.
    """
    try:
        return snapshot_of(_manifests(_documents(_utf8(text), source), source), source=source)
    except RecursionError as error:
        raise _refused(source, "is nested too deeply") from error


def snapshot_of(manifests: Iterable[Manifest], *, source: str) -> Snapshot:
    """Take in objects that are data already; kinds that decide nothing are left out."""
    snapshot, decoder, measured = Snapshot(), Decoder(), _Measured()
    for number, manifest in enumerate(manifests, 1):
        kind = str(manifest.get("kind", ""))
        try:
            if kind in KINDS:
                snapshot.add(decoder.decode_object(kind, manifest))
            elif measured.take(kind, manifest):
                snapshot.counts[kind] += 1
            else:
                snapshot.left_out[kind] += 1
        except (UnreadableError, ValueError) as error:
            raise _refused(source, f"object {number}: {error}") from error
    measured.put(snapshot.usage)
    return snapshot


class _Measured:
    """What a dump holds of a metrics-server's answers. It counts as received when it was taken."""

    def __init__(self) -> None:
        self._nodes: dict[str, Sample] = {}
        self._pods: dict[PodName, Sample] = {}

    def take(self, kind: str, manifest: Manifest) -> bool:
        """Take in an object, unless it is none of these. Raises ValueError if it is unreadable."""
        if kind == NODE_METRICS:
            node, sample = read_node_metrics(manifest, None)
            self._nodes[node] = sample
        elif kind == POD_METRICS:
            pod, sample = read_pod_metrics(manifest, None)
            self._pods[pod] = sample
        return kind in (NODE_METRICS, POD_METRICS)

    def put(self, usage: Usage) -> None:
        usage.put_pods(self._pods)
        if self._nodes:
            usage.put_nodes(self._nodes, max(each.sampled for each in self._nodes.values()))


def _utf8(text: bytes) -> bytes:
    """Return the text without a byte order mark, and as UTF-8 where PowerShell wrote UTF-16."""
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = text.decode("utf-16", "replace").encode()
    return text.removeprefix(codecs.BOM_UTF8)


def _documents(text: bytes, source: str) -> Sequence[object]:
    if not text.strip():
        raise _refused(source, "is empty")
    try:
        if text.lstrip()[:1] in (b"{", b"["):
            return _json_documents(text)
        return list(yaml.load_all(text, _DumpLoader))
    except json.JSONDecodeError as error:
        raise _refused(source, f"is not JSON: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = f" on line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _refused(source, f"is not YAML{line}: {error.problem or 'unreadable'}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise _refused(source, f"is not YAML: {str(error).splitlines()[0]}") from error


def _json_documents(text: bytes) -> Sequence[object]:
    """Read one JSON text, or several one after another, as several `kubectl get` print them."""
    try:
        return [orjson.loads(text)]
    except orjson.JSONDecodeError:
        decoder, texts = json.JSONDecoder(), text.decode(errors="replace").strip()
    documents, at = [], 0
    while at < len(texts):
        document, end = decoder.raw_decode(texts, at)
        documents.append(document)
        between = _SPACE.match(texts, end)
        assert between is not None  # it matches nothing too
        at = between.end()
    return documents


def _manifests(documents: Iterable[object], source: str) -> Iterator[Manifest]:
    for document in documents:
        if document is None:
            continue
        if isinstance(document, list):
            yield from _manifests(document, source)
            continue
        if not isinstance(document, dict):
            raise _refused(source, f"holds {type(document).__name__}, not objects of Kubernetes")
        kind, items = document.get("kind"), document.get("items")
        if not isinstance(kind, str):
            raise _refused(source, "holds an object without a kind")
        if kind == "List" or (kind.endswith("List") and isinstance(items, list)):
            yield from _items(kind.removesuffix("List"), items, source)
        else:
            yield document


def _items(kind: str, items: object, source: str) -> Iterator[Manifest]:
    """Yield the items of a list; those of a list of one kind do not name it."""
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            raise _refused(source, f"a list in it holds {type(item).__name__}, not objects")
        yield from _manifests([{"kind": kind, **item}] if kind else [item], source)


def _refused(source: str, message: str) -> SnapshotError:
    error = SnapshotError(f"{source}: {message}")
    error.hint = "make one with: kubectl get nodes,pods,ns,pdb,pvc,pv,pc -A -o json"
    return error
