"""Colours, stylesheet and icons."""
