"""The event bus, the reconcile loop and the full pass: which keys are looked at, and when."""
