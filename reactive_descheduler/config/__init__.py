"""What users write: the policy document, our settings in it, and errors that point into the file.

Imported by every layer above; imports only `api` and `kit`.
"""
