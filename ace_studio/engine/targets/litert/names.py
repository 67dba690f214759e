"""Names in a LiteRT model: of its operators and types, and of its tensors, which name the ops that make them."""

import re
from functools import cache

_MARK = "ace_op."
_NAMED = re.compile(r"ace_op\.(\w+)")


def name_of(op_id: str) -> str:
    """The part of a tensor's name that says which op makes it."""
    return f"{_MARK}{op_id}"


def ids_in(name: str) -> list[str]:
    """The op ids in the name of a tensor of the model, each once."""
    return list(dict.fromkeys(_NAMED.findall(name)))


@cache
def kind_names() -> dict[int, str]:
    """Number of an operator in the format -> its name, such as ``CONV_2D``."""
    return _names_of("BuiltinOperator")


@cache
def type_names() -> dict[int, str]:
    """Number of a type in the format -> its name, such as ``FLOAT32``."""
    return _names_of("TensorType")


def _names_of(table: str) -> dict[int, str]:
    from ai_edge_litert import schema_py_generated

    return {number: name for name, number in vars(getattr(schema_py_generated, table)).items() if name[0] != "_"}
