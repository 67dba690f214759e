"""What is kept on the user's side: history, trust, settings, undo and autosave."""
