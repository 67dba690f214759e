"""Trying fixes for graph breaks: each in a copy of the source, captured and compared with eager."""
