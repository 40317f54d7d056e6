"""Requests that are refused, and the Status documents that say why, word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.client import ApiRefused
from reactive_descheduler.sandbox.documents import JsonObject, mapping, objects, text

if TYPE_CHECKING:
    from tests.contract.world import World

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(60)]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BUSY = "the object has been modified; please apply your changes to the latest version and try again"
NOT_SERVED = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
LIST = 'ListOptions.meta.k8s.io "" is invalid: '
MATCH = "resourceVersionMatch"


@dataclass(frozen=True)
class Refused:
    """A request in a namespace that has the ConfigMap `a`, and what it is told.

    NS stands for the namespace; a path without a slash at its start is below it. `details` are
    compared without causes; `causes` are the reasons and fields of the first of each field.
    """

    method: str
    path: str
    code: int
    reason: str
    message: str
    details: JsonObject | None = None
    causes: tuple[tuple[str, str], ...] = ()
    body: object = None
    query: dict[str, str] | None = None
    content_type: str = "application/json"
    accept: str = "application/json"


def _config_map(name: str = "a", **metadata: object) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def _listed(field: str, reason: str, why: str, *, watch: bool = False, **query: str) -> Refused:
    return Refused(
        "GET",
        "configmaps",
        422,
        "Invalid",
        f"{LIST}{field}: {why}",
        {"group": "meta.k8s.io", "kind": "ListOptions"},
        ((reason, field),),
        query={**query, "watch": "true"} if watch else query,
    )


ABOUT_A: JsonObject = {"name": "a", "kind": "configmaps"}
ABOUT_B: JsonObject = {"name": "b", "kind": "configmaps"}
KIND_A: JsonObject = {"name": "a", "kind": "ConfigMap"}
FORBIDDEN, UNSUPPORTED = "FieldValueForbidden", "FieldValueNotSupported"

REFUSALS = {
    "missing": Refused(
        "GET", "configmaps/b", 404, "NotFound", 'configmaps "b" not found', ABOUT_B
    ),
    "missing-to-delete": Refused(
        "DELETE", "configmaps/b", 404, "NotFound", 'configmaps "b" not found', ABOUT_B
    ),
    "missing-to-update": Refused(
        "PUT", "configmaps/b", 404, "NotFound", 'configmaps "b" not found', ABOUT_B,
        body=_config_map("b"),
    ),
    "missing-to-patch": Refused(
        "PATCH", "configmaps/b", 404, "NotFound", 'configmaps "b" not found', ABOUT_B,
        body={}, content_type=MERGE,
    ),
    "missing-in-a-group": Refused(
        "GET", "/apis/policy/v1/namespaces/NS/poddisruptionbudgets/b", 404, "NotFound",
        'poddisruptionbudgets.policy "b" not found',
        {"name": "b", "group": "policy", "kind": "poddisruptionbudgets"},
    ),
    "missing-to-evict": Refused(
        "POST", "pods/b/eviction", 404, "NotFound", 'pods "b" not found',
        {"name": "b", "kind": "pods"},
        body={"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}},
    ),
    "namespace-missing": Refused(
        "POST", "/api/v1/namespaces/none-such/configmaps", 404, "NotFound",
        'namespaces "none-such" not found', {"name": "none-such", "kind": "namespaces"},
        body=_config_map(),
    ),
    "unknown-resource": Refused("GET", "/api/v1/nothings", 404, "NotFound", NOT_SERVED, {}),
    "unknown-subresource": Refused("GET", "configmaps/a/none", 404, "NotFound", NOT_SERVED, {}),
    "not-on-an-object": Refused(
        "POST", "configmaps/a", 405, "MethodNotAllowed", NOT_ALLOWED, {}, body=_config_map()
    ),
    "not-on-a-collection": Refused(
        "PUT", "configmaps", 405, "MethodNotAllowed", NOT_ALLOWED, {}, body=_config_map()
    ),
    "there-already": Refused(
        "POST", "configmaps", 409, "AlreadyExists", 'configmaps "a" already exists', ABOUT_A,
        body=_config_map(),
    ),
    "with-a-version": Refused(
        "POST", "configmaps", 500, "", "resourceVersion should not be set on objects to be created",
        body=_config_map("b", resourceVersion="1"),
    ),
    "without-a-name": Refused(
        "POST", "configmaps", 422, "Invalid",
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        {"kind": "ConfigMap"}, (("FieldValueRequired", "metadata.name"),),
        body={"apiVersion": "v1", "kind": "ConfigMap"},
    ),
    "update-without-a-name": Refused(
        "PUT", "configmaps/a", 400, "BadRequest",
        "the name of the object (a based on URL) was undeterminable: name must be provided",
        body={"apiVersion": "v1", "kind": "ConfigMap"},
    ),
    "update-of-another-name": Refused(
        "PUT", "configmaps/a", 400, "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)", body=_config_map("b"),
    ),
    "update-in-another-namespace": Refused(
        "PUT", "configmaps/a", 400, "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        body=_config_map(namespace="default"),
    ),
    "update-from-an-old-version": Refused(
        "PUT", "configmaps/a", 409, "Conflict",
        f'Operation cannot be fulfilled on configmaps "a": {BUSY}', ABOUT_A,
        body=_config_map(resourceVersion="1"),
    ),
    "update-from-no-version": Refused(
        "PUT", "configmaps/a", 500, "", 'strconv.ParseUint: parsing "abc": invalid syntax',
        body=_config_map(resourceVersion="abc"),
    ),
    "merge-patch-of-an-old-version": Refused(
        "PATCH", "configmaps/a", 409, "Conflict",
        f'Operation cannot be fulfilled on configmaps "a": {BUSY}', ABOUT_A,
        body={"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}}, content_type=MERGE,
    ),
    "strategic-patch-of-an-old-version": Refused(
        "PATCH", "configmaps/a", 409, "Conflict",
        f'Operation cannot be fulfilled on configmaps "a": {BUSY}', ABOUT_A,
        body={"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}}, content_type=STRATEGIC,
    ),
    "json-patch-to-an-old-version": Refused(
        "PATCH", "configmaps/a", 409, "Conflict",
        f'Operation cannot be fulfilled on configmaps "a": {BUSY}', ABOUT_A,
        body=[{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
        content_type=JSON_PATCH,
    ),
    "json-patch-whose-test-fails": Refused(
        "PATCH", "configmaps/a", 422, "Invalid",
        "the server rejected our request due to an error in our request", {},
        body=[{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}],
        content_type=JSON_PATCH,
    ),
    "json-patch-that-removes-nothing": Refused(
        "PATCH", "configmaps/a", 422, "Invalid",
        "the server rejected our request due to an error in our request", {},
        body=[{"op": "remove", "path": "/data/none"}], content_type=JSON_PATCH,
    ),
    "patch-of-a-uid": Refused(
        "PATCH", "configmaps/a", 422, "Invalid",
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "1": field is immutable', KIND_A,
        (("FieldValueInvalid", "metadata.uid"),),
        body={"metadata": {"uid": "1"}}, content_type=MERGE,
    ),
    "patch-of-a-name": Refused(
        "PATCH", "configmaps/a", 400, "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
        body={"metadata": {"name": "b"}}, content_type=MERGE,
    ),
    "patch-in-no-known-way": Refused(
        "PATCH", "configmaps/a", 415, "UnsupportedMediaType", "415: Unsupported Media Type", {},
        body={}, content_type="application/json",
    ),
    "patch-that-is-forced": Refused(
        "PATCH", "configmaps/a", 422, "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
        "non-apply patch",
        {"group": "meta.k8s.io", "kind": "PatchOptions"}, ((FORBIDDEN, "force"),),
        body={}, content_type=MERGE, query={"force": "true"},
    ),
    "dry-run-of-no-kind": Refused(
        "PATCH", "configmaps/a", 422, "Invalid",
        'PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported '
        'values: "All"',
        {"group": "meta.k8s.io", "kind": "PatchOptions"}, ((UNSUPPORTED, "dryRun"),),
        body={}, content_type=MERGE, query={"dryRun": "Some"},
    ),
    "deletion-in-no-known-way": Refused(
        "DELETE", "configmaps/a", 422, "Invalid",
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "X": '
        'supported values: "Foreground", "Background", "Orphan", "nil"',
        {"group": "meta.k8s.io", "kind": "DeleteOptions"}, ((UNSUPPORTED, "propagationPolicy"),),
        body={"propagationPolicy": "X"},
    ),
    "match-without-version": _listed(
        MATCH, FORBIDDEN, f"Forbidden: {MATCH} is forbidden unless resourceVersion is provided",
        resourceVersionMatch="Exact",
    ),
    "exactly-any-version": _listed(
        MATCH, FORBIDDEN, f'Forbidden: {MATCH} "exact" is forbidden for resourceVersion "0"',
        resourceVersion="0", resourceVersionMatch="Exact",
    ),
    "unknown-match": _listed(
        MATCH, UNSUPPORTED,
        'Unsupported value: "No": supported values: "Exact", "NotOlderThan", ""',
        resourceVersion="1", resourceVersionMatch="No",
    ),
    "list-of-initial-events": _listed(
        "sendInitialEvents", FORBIDDEN, "Forbidden: sendInitialEvents is forbidden for list",
        sendInitialEvents="true",
    ),
    "watch-with-a-match": _listed(
        MATCH, FORBIDDEN,
        f"Forbidden: {MATCH} is forbidden for watch unless sendInitialEvents is provided",
        watch=True, resourceVersionMatch="NotOlderThan",
    ),
    "watch-of-initial-events-without-match": _listed(
        MATCH, FORBIDDEN,
        f"Forbidden: sendInitialEvents requires setting {MATCH} to NotOlderThan",
        watch=True, sendInitialEvents="true",
    ),
    "watch-that-continues": _listed(
        MATCH, FORBIDDEN, f"Forbidden: {MATCH} is forbidden when continue is provided",
        watch=True, **{"continue": "x"},
    ),
    "list-from-no-version": Refused(
        "GET", "configmaps", 400, "BadRequest",
        'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: '
        'parsing "abc": invalid syntax',
        query={"resourceVersion": "abc"},
    ),
    "watch-from-no-version": Refused(
        "GET", "configmaps", 500, "",
        'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
        query={"resourceVersion": "abc", "watch": "true"},
    ),
    "no-limit": Refused(
        "GET", "configmaps", 400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax',
        query={"limit": "x"},
    ),
    "table-of-no-kind": Refused(
        "GET", "configmaps", 400, "BadRequest",
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bad": must be '
        "'Metadata', 'Object', 'None', or empty",
        query={"includeObject": "Bad"}, accept=TABLE,
    ),
    "pod-without-containers": Refused(
        "POST", "pods", 422, "Invalid", 'Pod "x" is invalid: spec.containers: Required value',
        {"name": "x", "kind": "Pod"}, (("FieldValueRequired", "spec.containers"),),
        body={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}},
    ),
    "pod-without-an-image": Refused(
        "POST", "pods", 422, "Invalid",
        'Pod "x" is invalid: spec.containers[0].image: Required value',
        {"name": "x", "kind": "Pod"}, (("FieldValueRequired", "spec.containers[0].image"),),
        body={
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
            "spec": {"containers": [{"name": "a"}]},
        },
    ),
    "event-of-another-namespace": Refused(
        "POST", "events", 422, "Invalid",
        'Event "x" is invalid: involvedObject.namespace: Invalid value: "other": does not match '
        "event.namespace",
        {"name": "x", "kind": "Event"}, (("FieldValueInvalid", "involvedObject.namespace"),),
        body={
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "other"},
        },
    ),
    "newer-event-without-a-time": Refused(
        "POST", "/apis/events.k8s.io/v1/namespaces/NS/events", 422, "Invalid",
        'Event "x" is invalid: eventTime: Required value', {"name": "x", "kind": "Event"},
        (("FieldValueRequired", "eventTime"),),
        body={
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "x"},
            "regarding": {"kind": "Pod", "name": "p", "namespace": "NS"}, "reason": "R",
            "type": "Normal",
        },
    ),
    "lease-that-never-holds": Refused(
        "POST", "/apis/coordination.k8s.io/v1/namespaces/NS/leases", 422, "Invalid",
        'Lease.coordination.k8s.io "x" is invalid: spec.leaseDurationSeconds: Invalid value: 0: '
        "must be greater than 0",
        {"name": "x", "group": "coordination.k8s.io", "kind": "Lease"},
        (("FieldValueInvalid", "spec.leaseDurationSeconds"),),
        body={
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"},
            "spec": {"leaseDurationSeconds": 0},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_says_why(world: World, case: Refused) -> None:
    await world.client.create(_config_map(namespace=world.namespace))
    below = f"/api/v1/namespaces/{world.namespace}/"
    path = case.path.replace("NS", world.namespace)

    with pytest.raises(ApiRefused) as refused:
        await world.client.request(
            case.method,
            path if path.startswith("/") else below + path,
            body=_placed(case.body, world.namespace),
            query=case.query,
            content_type=case.content_type,
            accept=case.accept,
        )

    status = refused.value.status
    details = {k: v for k, v in mapping(status, "details").items() if k != "causes"}
    assert (refused.value.code, status.get("code")) == (case.code, case.code)
    assert (text(status, "reason"), text(status, "message")) == (case.reason, case.message)
    assert status["metadata"] == {}
    assert details == (case.details or {})
    assert ("details" in status) is (case.details is not None)
    causes = {text(c, "field"): text(c, "reason") for c in objects(status, "details", "causes")}
    assert causes == {field: reason for reason, field in case.causes}


def _placed(body: object, namespace: str) -> object:
    """The body, with NS replaced by the namespace."""
    if isinstance(body, dict):
        return {key: _placed(value, namespace) for key, value in body.items()}
    return namespace if body == "NS" else body
