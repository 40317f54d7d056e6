"""An embedded cluster: API server, controllers and kubelet, for tests, demo and simulation.

It shares no code with what it tests.
"""
