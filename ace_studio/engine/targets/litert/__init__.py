"""LiteRT (TensorFlow Lite): the target, its files and their quantization."""
