"""Which name of a file gives the model, where nobody has said so."""

from collections.abc import Collection, Sequence

from ace_studio.records.messages import EntryPoint, EntryRole

USUAL_NAMES = ("make_model", "get_model", "build_model", "create_model", "load_model", "model")
"""Usual names of the function that makes the model, the likeliest first."""
_MAKER_NAMES = frozenset(
    f"{verb}{rest}"
    for verb in ("make", "build", "create", "get", "load")
    for rest in ("", "_model", "_net", "_network")
) | frozenset({"model", "net", "network"})
_OTHER_ROLES = frozenset(EntryRole) - {EntryRole.NONE, EntryRole.MODEL}


def likely_entries(entries: Sequence[EntryPoint], *, taken: Collection[str] = ()) -> list[str]:
    """The names that are as good as each other: one if it is plain which is meant, none if nothing fits.

    Functions with a usual name win, then functions that seem to make a module, then the one variable that holds one
    (its weights are those that the file gives it), then module classes that are no part of another one, then any
    function; all without required arguments.

    Args:
        entries: The callables and models of the file.
        taken: Names that have another use.
    """
    free = [
        one
        for one in entries
        if not (one.required_arguments or one.name.startswith("_") or one.name in taken or one.role in _OTHER_ROLES)
    ]
    functions = [one for one in free if one.kind == "function"]
    variables = [one.name for one in free if one.kind == "variable"]
    groups = (
        [one.name for one in functions if one.name in _MAKER_NAMES],
        [one.name for one in functions if one.role is EntryRole.MODEL],
        variables if len(variables) == 1 else [],
        [one.name for one in free if one.is_module],
        variables,
        [one.name for one in functions],
    )
    return next((group for group in groups if group), [])
