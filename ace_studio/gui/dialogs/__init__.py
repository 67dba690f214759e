"""Dialogs. None is modal; each is loaded when it is first opened."""
