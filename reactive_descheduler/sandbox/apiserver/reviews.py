"""Questions about rights and about the caller: there is one user, who may do everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver.resources import REVIEWS

if TYPE_CHECKING:
    from reactive_descheduler.sandbox.documents import JsonObject

_STATUSES: dict[str, JsonObject] = {
    "SelfSubjectReview": {
        "userInfo": {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]}
    },
    "SelfSubjectAccessReview": {"allowed": True},
    "SelfSubjectRulesReview": {
        "incomplete": False,
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    },
}
_BY_PATH = {review.path(): review for review in REVIEWS}


def is_review(path: str) -> bool:
    return path in _BY_PATH


def answer(path: str, question: JsonObject) -> JsonObject:
    """The question, with what is true as its status."""
    review = _BY_PATH[path]
    answered: JsonObject = {"kind": review.kind, "apiVersion": review.api_version}
    answered["metadata"] = question.get("metadata", {})
    if "spec" in question:
        answered["spec"] = question["spec"]
    return answered | {"status": _STATUSES[review.kind]}
