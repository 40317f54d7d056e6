"""What the process serves over HTTP: health, metrics, status.

Handed everything by the composition root as callables; it knows nothing of the cache or the
controller.
"""
