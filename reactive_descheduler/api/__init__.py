"""Kubernetes vocabulary as data: read views, changes, keys, verdicts, and the scheduler's
predicates.

Nothing here knows where the objects come from or what is done with them.
"""
