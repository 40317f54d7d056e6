"""Asyncio primitives that know no Kubernetes."""
