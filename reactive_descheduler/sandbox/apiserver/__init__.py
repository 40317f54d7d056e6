"""An API server in this process, speaking the parts of the Kubernetes API that are needed here."""
