"""Facts about every op: planned and actual precision, fate, colours, possible precisions."""
