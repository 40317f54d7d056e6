"""What the process itself is told: flags with upstream's names, each with an environment twin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reactive_descheduler.config.corrections import Corrections
from reactive_descheduler.config.feature_gates import FeatureGates


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of `run`. Defaults are upstream's (spec/evictor 4.9)."""

    policy_config_file: str
    kubeconfig: str | None = None
    """None: $KUBECONFIG, ~/.kube/config or the Pod's own service account, the first that exists."""
    dry_run: bool = False
    once: bool = False
    """One full pass, then exit."""
    descheduling_interval: timedelta | None = None
    """None: the daemon with the policy's own `resync`. 0: as `once`. Above: it sets `resync`."""
    feature_gates: FeatureGates = frozenset()
    corrections: Corrections | None = None
    """None: as the policy says."""
    bind_address: str = "0.0.0.0"
    secure_port: int = 10258
    """0: no server."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    disable_metrics: bool = False
    grace_period: float = 25.0
    """Seconds that requests in flight have after SIGTERM; under a Pod's usual 30."""

    @property
    def one_pass(self) -> bool:
        return self.once or self.descheduling_interval == timedelta(0)
