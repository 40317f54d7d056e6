"""LowNodeUtilization and HighNodeUtilization: Pods are moved by how much of the nodes is used."""

from __future__ import annotations

from .arguments import HighNodeUtilizationArguments, LowNodeUtilizationArguments
from .high import HighNodeUtilization
from .low import LowNodeUtilization

__all__ = [
    "HighNodeUtilization",
    "HighNodeUtilizationArguments",
    "LowNodeUtilization",
    "LowNodeUtilizationArguments",
]
