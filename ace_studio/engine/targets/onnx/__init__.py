"""The captured graph as an ONNX model: exported, quantized, and with its fused operators."""
