"""Numbers and states as text for the window."""
