"""ExecuTorch: the target and its quantization for XNNPACK."""
