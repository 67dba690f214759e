"""Sweeps: many runs from recipes and axes, on this machine or on a Dask cluster, and one comparison of them all."""
