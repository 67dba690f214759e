"""The border between the two processes: the worker, its client, and the channel that carries their messages."""
