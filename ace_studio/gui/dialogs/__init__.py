"""Dialogs: none of them stops anybody; each is loaded when it is wanted."""
