"""An event-driven Kubernetes descheduler."""
