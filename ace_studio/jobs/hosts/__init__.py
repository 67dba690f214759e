"""The engine on another machine: what is there, and the connection to it by the system's ssh."""
