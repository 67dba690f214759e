"""ONNX files: the header, the graph as a table, and a module that ONNX Runtime computes."""
