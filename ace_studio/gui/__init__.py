"""Views: everything that needs Qt. No torch, no engine."""
