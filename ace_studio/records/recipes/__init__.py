"""The recipe: its records, the checks of its values, and the TOML file."""
