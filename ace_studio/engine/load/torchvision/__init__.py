"""Replaces torchvision's operators where its compiled library does not load with the installed torch."""
