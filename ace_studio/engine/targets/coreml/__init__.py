"""Core ML: converts the captured graph to a package for Apple's devices, and runs it where there is a Mac."""
