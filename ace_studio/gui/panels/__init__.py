"""Panels: each shows one aspect of the document. Panels never talk to each other."""
