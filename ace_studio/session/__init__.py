"""State: the document, its only owner, history and settings. No Qt, no torch."""
