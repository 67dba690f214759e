"""Paths of the files that ship with the program, in a checkout and in an installed wheel."""

from pathlib import Path

APP_NAME = "ace-studio"
"""Of the folders that the system gives a program."""


def resource_folder() -> Path:
    """The folder ``resources``: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "resources"
    return inside if inside.is_dir() else package.parent / "resources"


def is_shipped(path: Path | str) -> bool:
    """Whether a path lies in the installed program, where nothing of the user's belongs."""
    return Path(path).is_relative_to(resource_folder())


def example_recipe() -> Path:
    """The recipe of the shipped example."""
    return resource_folder() / "examples" / "digits" / "recipe.toml"
