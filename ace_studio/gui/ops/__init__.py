"""What the window knows of every op: planned and actual precision, what became of it, colours, offers."""
