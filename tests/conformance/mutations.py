"""Random cases that resemble those of the corpus: parts of some put into others.

Values are rarely made up: fields of objects, and arguments of plugins, come from other cases, so
that most policies are valid and most clusters make sense.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import cast

from tests.conformance.run import Case

Json = dict[str, object]
"""A JSON object: a case, a policy, a part of either."""
FieldPath = tuple[str, ...]

_POD_FIELDS: Sequence[FieldPath] = (
    *(("metadata", field) for field in ("labels", "annotations", "ownerReferences")),
    *(("metadata", field) for field in ("creationTimestamp", "deletionTimestamp", "namespace")),
    *(("spec", field) for field in ("tolerations", "affinity", "nodeSelector", "priority")),
    *(("spec", field) for field in ("topologySpreadConstraints", "priorityClassName")),
    *(("spec", field) for field in ("containers", "initContainers", "volumes", "overhead")),
    ("status",),
    *(("status", field) for field in ("phase", "conditions", "containerStatuses", "startTime")),
)
_NEVER_WITHOUT = {("metadata", "namespace"), ("spec", "containers"), ("status", "allocatable")}
_NODE_FIELDS: Sequence[FieldPath] = (
    *(("spec", field) for field in ("taints", "unschedulable")),
    ("metadata", "labels"),
    *(("status", field) for field in ("allocatable", "conditions")),
)
_KINDS, _NAME = ("Pod", "Node"), ("namespace", "name")
_HOSTNAME = "kubernetes.io/hostname"
_LIMITS = ("maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace", "maxNoOfPodsToEvictTotal")
_NODE_SELECTORS = (_HOSTNAME, f"{_HOSTNAME}!=n1", "pool=a", "zone in (a,b)", "!spot")
_EVICTOR = "DefaultEvictor"
_OF_A_POLICY = ("policy", "nodeMetrics", "podMetrics", "prometheusSamples", "featureGates")


class Mutations:
    """An endless source of cases; the same for the same seed."""

    def __init__(self, corpus: Iterable[Case], random: Random) -> None:
        self._random = random
        self._corpus = [cast("Json", case) for case in corpus]
        objects = [each for case in self._corpus for each in _objects(case)]
        self._of_kind = {
            kind: [each for each in objects if each["kind"] == kind] for kind in _KINDS
        }
        profiles = [each for case in self._corpus for each in _profiles(case)]
        self._profiles = [each for each in profiles if _dict(each, "plugins")]
        self._arguments: dict[str, list[Json]] = {}
        for profile in profiles:
            for config in _configs(profile):
                if arguments := _dict(config, "args"):
                    self._arguments.setdefault(str(config.get("name")), []).append(arguments)

    def __iter__(self) -> Iterator[Case]:
        while True:
            yield self._next()

    def _next(self) -> Case:
        random = self._random
        case = deepcopy(random.choice(self._corpus))
        if random.random() < 0.2:
            other = random.choice(self._corpus)
            case |= {field: deepcopy(other[field]) for field in _OF_A_POLICY if field in other}
        for _ in range(random.choice((1, 2, 3, 5, 8, 13))):
            change = self._change_cluster if random.random() < 0.7 else self._change_policy
            change(case)
        case["objects"] = list(_told_apart(_objects(case)))
        del case["expected"]
        return cast("Case", case)

    def _change_cluster(self, case: Json) -> None:
        random = self._random
        pods, nodes = _of_kind(case, "Pod"), _of_kind(case, "Node")
        objects = cast("list[Json]", case["objects"]) if _objects(case) else []
        chance = random.random()
        if not pods or not nodes:
            return
        if chance < 0.12:
            objects.remove(random.choice(pods))
        elif chance < 0.3:
            pod = deepcopy(random.choice(pods))
            pod_name = f"{_get(pod, ('metadata', 'name'))}-{random.randrange(10**6)}"
            _put(pod, ("metadata", "name"), pod_name)
            _put(pod, ("metadata", "uid"), f"uid-{pod_name}")
            objects.append(pod)
        elif chance < 0.42:
            node = random.choice(nodes)
            _put(random.choice(pods), ("spec", "nodeName"), _get(node, ("metadata", "name")))
        elif chance < 0.8:
            self._change_pods(pods)
        elif chance < 0.95:
            field, node = random.choice(_NODE_FIELDS), random.choice(nodes)
            self._take_over([node], field, self._of_kind["Node"], nodes)
            _name_node(node, str(_get(node, ("metadata", "name"))))
        else:
            node = deepcopy(random.choice(self._of_kind["Node"]))
            _name_node(node, f"node-{random.randrange(1000)}")
            objects.append(node)

    def _change_pods(self, pods: Sequence[Json]) -> None:
        """Give one Pod, or all of its owner, a field of another."""
        pod, field = self._random.choice(pods), self._random.choice(_POD_FIELDS)
        changed = [pod]
        if self._random.random() < 0.25:
            owners = ("metadata", "ownerReferences")
            changed = [each for each in pods if _get(each, owners) == _get(pod, owners)]
        self._take_over(changed, field, self._of_kind["Pod"], pods)

    def _take_over(
        self,
        changed: Iterable[Json],
        field: FieldPath,
        anywhere: Sequence[Json],
        here: Sequence[Json],
    ) -> None:
        value = _get(self._random.choice(self._random.choice((anywhere, here))), field)
        if value is not None or field not in _NEVER_WITHOUT:
            for each in changed:
                _put(each, field, deepcopy(value))

    def _change_policy(self, case: Json) -> None:
        random, policy = self._random, _dict(case, "policy")
        chance, profiles = random.random(), _profiles(case)
        if chance < 0.12:
            limit = random.choice(_LIMITS)
            if policy.pop(limit, None) is None:
                policy[limit] = random.choice((0, 1, 2, 3, 5))
        elif chance < 0.16:
            policy["nodeSelector"] = random.choice(_NODE_SELECTORS)
        elif profiles and chance < 0.26:
            self._add_strategies(policy, random.choice(profiles))
        elif profiles:
            self._change_arguments(random.choice(profiles))

    def _add_strategies(self, policy: Json, profile: Json) -> None:
        """Add a profile of another case, or only its strategies to one that is there."""
        other = deepcopy(self._random.choice(self._profiles))
        profiles = cast("list[Json]", policy["profiles"])
        if self._random.random() < 0.5:
            profiles.append(other | {"name": f"other-{len(profiles)}"})
            return
        known = {config.get("name") for config in _configs(profile)}
        added = [config for config in _configs(other) if config.get("name") not in known]
        profile["pluginConfig"] = [*_configs(profile), *added]
        for point in ("deschedule", "balance"):
            enabled = _enabled(profile, point) + _enabled(other, point)
            if enabled:
                _put(profile, ("plugins", point, "enabled"), list(dict.fromkeys(enabled)))

    def _change_arguments(self, profile: Json) -> None:
        random, configs = self._random, _configs(profile)
        if random.random() < 0.3 and _EVICTOR not in [each.get("name") for each in configs]:
            configs = [*configs, {"name": _EVICTOR, "args": {}}]
            profile["pluginConfig"] = configs
        if not configs:
            return
        config = random.choice(configs)
        arguments = _dict(config, "args")
        known = self._arguments.get(str(config.get("name")), [])
        chance = random.random()
        if chance < 0.55 and known:
            field, value = random.choice([*random.choice(known).items()])
            arguments[field] = deepcopy(value)
        elif chance < 0.7 and arguments:
            del arguments[random.choice(list(arguments))]
        elif chance < 0.9 and arguments:
            field = random.choice(list(arguments))
            arguments[field] = self._changed(arguments[field])
        elif known:
            arguments = deepcopy(random.choice(known))
        config["args"] = arguments

    def _changed(self, value: object) -> object:
        random = self._random
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return random.choice((value + 1, value - 1, value * 2, 0, 1, 50, 100))
        if isinstance(value, list) and value:
            place = random.randrange(len(value))
            put_in = random.choice(([], [self._changed(value[place])], [value[place]] * 2))
            return [*value[:place], *put_in, *value[place + 1 :]]
        if isinstance(value, dict) and value:
            field = random.choice(list(value))
            rest = {key: each for key, each in value.items() if key != field}
            return rest if random.random() < 0.25 else rest | {field: self._changed(value[field])}
        return value


def _objects(case: Json) -> list[Json]:
    return cast("list[Json]", case.get("objects") or [])


def _of_kind(case: Json, kind: str) -> list[Json]:
    return [each for each in _objects(case) if each["kind"] == kind]


def _told_apart(objects: Iterable[Json]) -> Iterator[Json]:
    """Yield the first object of each name; no two have one UID."""
    names, uids = set[str](), set[object]()
    for each in objects:
        name = json.dumps([each["kind"], *(_get(each, ("metadata", k)) for k in _NAME)])
        uid = _get(each, ("metadata", "uid"))
        if name not in names:
            if uid is not None and uid in uids:
                _put(each, ("metadata", "uid"), f"{uid}-{len(uids)}")
            names.add(name)
            uids.add(uid)
            yield each


def _profiles(case: Json) -> list[Json]:
    return [each for each in _list(_dict(case, "policy"), "profiles") if isinstance(each, dict)]


def _configs(profile: Json) -> list[Json]:
    return [each for each in _list(profile, "pluginConfig") if isinstance(each, dict)]


def _enabled(profile: Json, point: str) -> list[object]:
    return _list(_dict(_dict(profile, "plugins"), point), "enabled")


def _name_node(node: Json, name: str) -> None:
    _put(node, ("metadata", "name"), name)
    if labels := _dict(_dict(node, "metadata"), "labels"):
        labels[_HOSTNAME] = name


def _dict(json_object: Json, field: str) -> Json:
    value = json_object.get(field)
    return value if isinstance(value, dict) else {}


def _list(json_object: Json, field: str) -> list[object]:
    value = json_object.get(field)
    return value if isinstance(value, list) else []


def _get(json_object: Json, path: FieldPath) -> object:
    value: object = json_object
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def _put(json_object: Json, path: FieldPath, value: object) -> None:
    """Set a field, or take it away if the value is None."""
    *way, last = path
    for field in way:
        inner = json_object.get(field)
        if not isinstance(inner, dict):
            inner = json_object[field] = {}
        json_object = inner
    if value is None:
        json_object.pop(last, None)
    else:
        json_object[last] = value
