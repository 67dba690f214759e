"""Translates TorchScript programs to Python source that can be captured."""
