"""The three kinds of patch, beyond what the contract suite asks both servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reactive_descheduler.sandbox.apiserver.patches import apply_patch
from reactive_descheduler.sandbox.apiserver.status import ApiError

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.documents import JsonObject

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"


@pytest.mark.parametrize(
    ("document", "patch", "patched"),
    [
        pytest.param({"a": 1}, {"b": {"c": None, "d": 2}}, {"a": 1, "b": {"d": 2}}, id="nulls"),
        pytest.param({"a": {"b": 1}}, {"a": None}, {}, id="removes"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-are-replaced"),
        pytest.param({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}, id="scalar-to-object"),
    ],
)
def test_merge_patch(document: JsonObject, patch: JsonObject, patched: JsonObject) -> None:
    assert apply_patch(document, patch, MERGE) == patched


@pytest.mark.parametrize(
    ("document", "patch", "patched"),
    [
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
            {"containers": [{"name": "a", "image": "y"}, {"name": "c"}]},
            {"containers": [{"name": "a", "image": "y"}, {"name": "b"}, {"name": "c"}]},
            id="containers-by-name",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
            id="delete-a-member",
        ),
        pytest.param(
            {"conditions": [{"type": "A", "status": "True"}]},
            {"conditions": [{"$patch": "replace"}, {"type": "B"}]},
            {"conditions": [{"type": "B"}]},
            id="replace-a-list",
        ),
        pytest.param(
            {"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="replace"
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="empty"),
        pytest.param(
            {"a": {"b": 1, "c": 2}},
            {"a": {"$retainKeys": ["c"], "c": 3}},
            {"a": {"c": 3}},
            id="retain-keys",
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
            {"finalizers": ["b", "c"]},
            id="primitive-sets",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
            id="element-order",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="tolerations-are-replaced",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "a"}]},
            {"ports": [{"containerPort": 80, "name": "b"}]},
            {"ports": [{"containerPort": 80, "name": "b"}]},
            id="container-ports",
        ),
    ],
)
def test_strategic_merge_patch(
    document: JsonObject, patch: JsonObject, patched: JsonObject
) -> None:
    assert apply_patch(document, patch, STRATEGIC) == patched


@pytest.mark.parametrize(
    ("patch", "patched"),
    [
        pytest.param([{"op": "add", "path": "/l/1", "value": 9}], {"l": [1, 9, 2]}, id="insert"),
        pytest.param([{"op": "add", "path": "/l/-", "value": 9}], {"l": [1, 2, 9]}, id="append"),
        pytest.param([{"op": "remove", "path": "/l/0"}], {"l": [2]}, id="remove"),
        pytest.param([{"op": "replace", "path": "/l", "value": 3}], {"l": 3}, id="replace"),
        pytest.param([{"op": "move", "from": "/l", "path": "/m"}], {"m": [1, 2]}, id="move"),
        pytest.param(
            [{"op": "copy", "from": "/l/0", "path": "/m"}], {"l": [1, 2], "m": 1}, id="copy"
        ),
        pytest.param(
            [{"op": "add", "path": "/a~1b~0", "value": 1}], {"l": [1, 2], "a/b~": 1}, id="escaped"
        ),
        pytest.param([{"op": "replace", "path": "", "value": {"a": 1}}], {"a": 1}, id="whole"),
    ],
)
def test_json_patch(patch: list[JsonObject], patched: JsonObject) -> None:
    assert apply_patch({"l": [1, 2]}, patch, JSON) == patched


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        pytest.param({"op": "add"}, 400, id="no-list"),
        pytest.param([{"op": "remove", "path": "/missing"}], 422, id="missing"),
        pytest.param([{"op": "add", "path": "/l/9", "value": 1}], 422, id="out-of-bounds"),
        pytest.param([{"op": "add", "path": "/l/x", "value": 1}], 422, id="no-index"),
        pytest.param([{"op": "dance", "path": "/l"}], 422, id="unknown-operation"),
        pytest.param([{"path": "/l"}], 422, id="no-operation"),
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(patch: object, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        apply_patch({"l": [1, 2]}, patch, JSON)

    assert caught.value.code == code
