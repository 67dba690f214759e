"""The Python and the shell line that do what the window would do."""
