"""Folders of one job on a host, below the session's folder and the job's number."""

FILES = "files"
"""What was sent: the root of the bundle."""
OUTPUT = "output"
"""What the job writes."""
