"""torchvision's operators where its compiled library does not fit the torch that is installed."""
