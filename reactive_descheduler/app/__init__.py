"""The composition root: every object is made here, by explicit arguments, and wired here."""
