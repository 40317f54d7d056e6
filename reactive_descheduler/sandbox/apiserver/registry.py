"""The verbs on stored objects, without HTTP."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.apiserver import pods
from reactive_descheduler.sandbox.apiserver.admission import (
    check_identity,
    prepare_create,
    prepare_update,
)
from reactive_descheduler.sandbox.apiserver.patches import apply_patch
from reactive_descheduler.sandbox.apiserver.resources import (
    BUDGETS,
    JOBS,
    LEASES,
    NAMESPACES,
    PODS,
    RESOURCES,
)
from reactive_descheduler.sandbox.apiserver.status import (
    ApiError,
    already_exists,
    conflict,
    invalid,
    needs_version,
    not_found,
    precondition_failed,
)
from reactive_descheduler.sandbox.apiserver.store import Store, Stored
from reactive_descheduler.sandbox.apiserver.workload_admission import label_job
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    attach,
    integer,
    is_terminating,
    lookup,
    mapping,
    strings,
    text,
    timestamp,
    uid_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from reactive_descheduler.sandbox.apiserver.resources import Resource
    from reactive_descheduler.sandbox.apiserver.store import ObjectKey

# What Kubernetes draws generated names from: no vowels, nothing that looks like another sign.
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Registry:
    """Create, read, update, patch and delete, with the API server's rules."""

    def __init__(self, *, now: Callable[[], float], random: Random, history: int = 4_000) -> None:
        self.store = Store(RESOURCES, history=history)
        self.now = now
        self._random = random
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.create(NAMESPACES, "", {"metadata": {"name": name}})

    def get(self, resource: Resource, key: ObjectKey) -> Stored:
        """Raises ApiError 404 if there is none."""
        stored = self.store.of(resource).objects.get(key)
        if stored is None:
            raise not_found(resource, key[1])
        return stored

    def create(
        self, resource: Resource, namespace: str, document: JsonObject, *, dry_run: bool = False
    ) -> Stored:
        """Store a new object; `generateName` gets five random signs.

        Raises ApiError 409 if it exists, and what the checks raise.
        """
        check_identity(resource, namespace, "", document)
        metadata = attach(document, "metadata")
        if not metadata.get("name") and (prefix := text(metadata, "generateName")):
            metadata["name"] = prefix + self.random_name(5)
        prepare_create(self.store, resource, document)
        key = (namespace if resource.namespaced else "", text(metadata, "name"))
        if key in self.store.of(resource).objects:
            raise already_exists(resource, key[1])
        metadata["uid"] = self.random_uid()
        metadata["creationTimestamp"] = timestamp(self.now())
        if resource is JOBS:
            label_job(document)
        return self._put(resource, document, dry_run)

    def update(
        self,
        resource: Resource,
        key: ObjectKey,
        document: JsonObject,
        *,
        status_only: bool = False,
        dry_run: bool = False,
    ) -> Stored:
        """Replace an object, or its status.

        Raises ApiError 404 if there is none, 409 if the document carries another version or uid.
        """
        check_identity(resource, *key, document)
        if resource is LEASES and key not in self.store.of(resource).objects:
            return self.create(resource, key[0], document, dry_run=dry_run)
        old = self.get(resource, key)
        _check_version(resource, old, document)
        prepare_update(resource, old.document, document, status_only)
        attach(document, "metadata")["resourceVersion"] = str(old.version)
        if _same(old.document, document):
            return old
        if is_terminating(document) and self._may_go(document):
            return self._remove(resource, key, dry_run)
        return self._put(resource, document, dry_run)

    def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        patch: object,
        *,
        content_type: str,
        status_only: bool = False,
        dry_run: bool = False,
    ) -> Stored:
        """Apply one of the three kinds of patch; a resourceVersion in it is a precondition."""
        old = self.get(resource, key)
        patched = apply_patch(old.copy(), patch, content_type)
        given = uid_of(patched)
        if given != uid_of(old.document):
            why = f'Invalid value: "{given}": field is immutable'
            raise invalid(resource, key[1], "metadata.uid", why)
        if not lookup(patched, "metadata", "resourceVersion"):
            attach(patched, "metadata")["resourceVersion"] = str(old.version)
        return self.update(resource, key, patched, status_only=status_only, dry_run=dry_run)

    def delete(
        self, resource: Resource, key: ObjectKey, options: JsonObject, *, dry_run: bool = False
    ) -> tuple[Stored, bool]:
        """Delete an object, or begin to: bound Pods and objects with finalizers stay terminating.

        Gives the object as it is now, and whether it is gone.
        Raises ApiError 404 if there is none, 409 if a precondition fails.
        """
        stored = self.get(resource, key)
        self.check_preconditions(resource, stored, mapping(options, "preconditions"))
        grace = pods.grace_period(stored.document, options) if resource is PODS else 0
        held = grace > 0 or bool(strings(stored.document, "metadata", "finalizers"))
        if held and is_terminating(stored.document) and not pods.shortens(stored.document, grace):
            return stored, False
        if held or resource is PODS:
            # Even a Pod that goes at once is seen terminating first.
            stored = self._mark_deleted(resource, stored, grace, dry_run)
        if held:
            return stored, False
        if resource is NAMESPACES and not dry_run:
            self._empty_namespace(key[1])
        return self._remove(resource, key, dry_run), True

    def check_preconditions(
        self, resource: Resource, stored: Stored, preconditions: JsonObject
    ) -> None:
        """Raises ApiError 409 if the object has another uid or resourceVersion."""
        metadata = mapping(stored.document, "metadata")
        for field, label, fate in (
            ("uid", "UID", "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "modified"),
        ):
            wanted = text(preconditions, field)
            if wanted and wanted != metadata[field]:
                why = (
                    f"the {label} in the precondition ({wanted}) does not match the {label} in "
                    f"record ({metadata[field]}). The object might have been {fate}"
                )
                raise precondition_failed(resource, stored.key[1], why)

    def random_name(self, length: int) -> str:
        return "".join(self._random.choices(_NAME_ALPHABET, k=length))

    def random_uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _mark_deleted(
        self, resource: Resource, stored: Stored, grace: int, dry_run: bool
    ) -> Stored:
        document = stored.copy()
        metadata = attach(document, "metadata")
        metadata["deletionTimestamp"] = timestamp(self.now() + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if resource.has_generation:
            metadata["generation"] = integer(metadata, "generation") + 1
        return self._put(resource, document, dry_run)

    def _put(self, resource: Resource, document: JsonObject, dry_run: bool) -> Stored:
        if dry_run:
            return self.store.preview(resource, document)
        return self.store.put(resource, document)

    def _remove(self, resource: Resource, key: ObjectKey, dry_run: bool) -> Stored:
        return self.get(resource, key) if dry_run else self.store.remove(resource, key)

    @staticmethod
    def _may_go(document: JsonObject) -> bool:
        """Whether a terminating object has nothing left that holds it."""
        waits = lookup(document, "metadata", "deletionGracePeriodSeconds")
        return not strings(document, "metadata", "finalizers") and waits in (None, 0)

    def _empty_namespace(self, namespace: str) -> None:
        """Real clusters have a controller for this; here it is one step with the deletion."""
        for resource in RESOURCES:
            if resource.namespaced:
                for key in [k for k in self.store.of(resource).objects if k[0] == namespace]:
                    self.store.remove(resource, key)


def _check_version(resource: Resource, old: Stored, document: JsonObject) -> None:
    """Version and uid of an update are preconditions; some kinds insist on a version.

    Raises ApiError 409 if one does not hold, 422 and 500 for a version that is missing or none.
    """
    given, name = text(document, "metadata", "resourceVersion"), old.key[1]
    if not given and resource in (LEASES, BUDGETS):
        raise needs_version(resource, name)
    if given and not given.isdigit():
        message = f'strconv.ParseUint: parsing "{given}": invalid syntax'
        raise ApiError(500, message, reason="")
    if given not in ("", "0", str(old.version)):
        why = "the object has been modified; please apply your changes to the latest version "
        raise conflict(resource, name, why + "and try again")
    if uid_of(document) not in ("", uid_of(old.document)):
        why = (
            f"Precondition failed: UID in precondition: {uid_of(document)}, "
            f"UID in object meta: {uid_of(old.document)}"
        )
        raise conflict(resource, name, why)


def _same(old: JsonObject, new: JsonObject) -> bool:
    """A write that changes nothing makes no new version."""
    ignored = ("kind", "apiVersion")
    return {k: v for k, v in old.items() if k not in ignored} == {
        k: v for k, v in new.items() if k not in ignored
    }
