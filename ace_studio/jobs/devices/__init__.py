"""Measures saved artifacts on the devices of the user's list."""
