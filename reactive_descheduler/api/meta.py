"""Identity and ownership, as every Kubernetes object has them."""

from __future__ import annotations

from typing import Protocol

import msgspec

Ref = tuple[str, str, str]
"""Kind, namespace (empty for what is cluster-wide) and name of an object."""


class KubeObject(Protocol):
    """What the cache needs to know of any read view."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def opaque(self) -> str:
        """Why the object could not be read; empty when it could.

        An opaque object is kept, since leaving it out would be deciding by guess (design section 3,
        principle 8): Pods that have to do with it are refused.
        """


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One entry of `metadata.ownerReferences`."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = False
