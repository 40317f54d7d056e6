"""An event-driven Kubernetes descheduler."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("reactive-descheduler")
except PackageNotFoundError:  # run from a checkout that was not installed
    __version__ = "0.0.0"
