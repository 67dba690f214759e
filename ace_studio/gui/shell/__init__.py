"""The application shell: the window, its actions, bars, palette and panels table."""
