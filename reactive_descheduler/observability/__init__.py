"""What people and machines see of the program: metrics, hooks on decisions, logs.

Knows the vocabulary of `api` and `kit` and nothing above; whoever has something to tell is handed
these objects.
"""
