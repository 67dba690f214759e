"""A beside B: two runs, plans, captures or files, and what differs between them, as pure functions."""
