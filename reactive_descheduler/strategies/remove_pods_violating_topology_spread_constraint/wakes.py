"""What makes an uneven constraint worth another look, wherever it happens."""

from __future__ import annotations

from reactive_descheduler.api.changes import Action
from reactive_descheduler.framework.fitting import NODE_FIT

ANY_NODE = Action.NODE_ADDED | Action.NODE_REMOVED | NODE_FIT
"""On any node: it is a target, is none any more, or takes other Pods."""
