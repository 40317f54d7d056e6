"""RemoveDuplicates: arguments | who crowds where | the level that there is room for | strategy."""

from __future__ import annotations

from .arguments import DuplicatesArguments
from .strategy import RemoveDuplicates

__all__ = ["DuplicatesArguments", "RemoveDuplicates"]
