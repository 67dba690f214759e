"""Views: everything that needs Qt. No torch, no engine."""

# Before Qt: once PySide6 is there, it reads the source of every module that is imported, a twentieth of the start.
from ace_studio.session import session as _session
