"""Small trained models that no other file here uses, with real data that installed packages bring along."""
