"""The verbs of a session, grouped by what they change."""
