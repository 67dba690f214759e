"""Quantization inside torch: ranges, grids, casts, the rewritten graph, and how close its outputs stay."""
