"""ONNX Runtime: the target, and its profile mapped back to ops."""
