"""Where the inputs of a model come from: rows of the shape table, data files, caught calls, the user's functions."""
