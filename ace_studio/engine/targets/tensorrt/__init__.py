"""TensorRT: the target and the ONNX model that it reads."""
