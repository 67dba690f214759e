"""Widgets that several panels use, and the base class of panels."""
