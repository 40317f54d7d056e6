"""The scheduler's predicates as far as upstream checks them, each a pure function."""
