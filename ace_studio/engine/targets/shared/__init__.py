"""What several targets use: calling conventions, kernels mapped back to ops, support tables."""
