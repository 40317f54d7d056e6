"""The in-memory picture of the cluster: reflectors fill it, informers publish changes, listers read
it."""
