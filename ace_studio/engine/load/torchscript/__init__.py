"""TorchScript programs, translated to Python source that can be captured."""
