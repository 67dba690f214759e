"""What single values of a recipe may be, beyond their types: ranges and known words. `_RULES` has one row per value."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ace_studio.records.advice import AdviceQuantity
from ace_studio.records.hosts import HOST_WORD
from ace_studio.records.recipes.fault import Fault, listing_hint, nearest_hint, path_text
from ace_studio.records.recipes.plan import FLOATS, rule_problem
from ace_studio.records.recipes.recipe import ALL_CAPTURE_METHODS, METRIC_NAMES
from ace_studio.records.recipes.toml_lines import KeyPath
from ace_studio.records.targets import TARGET_ROWS
from ace_studio.records.tensors import DATA_SUFFIXES, ValueSource, bytes_per_element, read_values

_DTYPES = tuple(
    name
    for name in (
        "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
        "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
    )
    if bytes_per_element(name)
)  # fmt: skip
_REFERENCE = re.compile(r"(?:.+\.py:)?[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_CONTROL = re.compile(r"[^:\s]+(?::[^:\s]+)?")
_FILE_VALUE = re.compile(r".*[./\\].*", re.DOTALL)


@dataclass(frozen=True)
class _Rule:
    """A check of one value. ``problem`` returns what is wrong, or an empty text; it is called if the type is right."""

    pattern: KeyPath
    """``*`` stands for any key or index."""
    kind: type | tuple[type, ...]
    problem: Callable[[Any], str]
    remedy: Callable[[Any], str]


def _range_rule(table: str, key: str, *, is_good: Callable[[float], bool], wanted: str) -> _Rule:
    return _Rule(
        (table, key),
        (int, float),
        lambda value: "" if is_good(value) else f"is {value}, but it must be {wanted}",
        lambda _: f"give a value that is {wanted}",
    )


def _word_rule(pattern: KeyPath, noun: str, known: tuple[str, ...]) -> _Rule:
    return _Rule(
        pattern,
        str,
        lambda value: "" if value in known else f"'{value}' is not {noun}",
        lambda value: listing_hint(value, known),
    )


def _target_problem(name: str) -> str:
    return "" if name == "auto" or name in TARGET_ROWS else f"'{name}' is not a target"


def _reference_rule(table: str, key: str) -> _Rule:
    return _Rule(
        (table, key),
        str,
        lambda value: "" if not value or _REFERENCE.fullmatch(value) else f"'{value}' does not name a function",
        lambda _: "write the name of a function of the model's source, or 'file.py:name' for one in another file",
    )


def _list_rule(table: str, key: str, noun: str) -> _Rule:
    def problem(value: list[Any]) -> str:
        words = [word for word in value if isinstance(word, str)]
        twice = [word for word in words if words.count(word) > 1]
        if not value:
            return f"names no {noun}"
        return f"names '{twice[0]}' twice" if twice else ""

    return _Rule((table, key), list, problem, lambda _: f"name each {noun} once, at least one, or leave '{key}' out")


def is_data_reference(text: str) -> bool:
    """Whether a text names a function (``name``, ``file.py:name``) or a file of tensors."""
    return text.endswith(DATA_SUFFIXES) or _REFERENCE.fullmatch(text) is not None


def _shape_problem(shape: list[Any]) -> str:
    negative = [size for size in shape if isinstance(size, int) and size < 0]
    return f"has the size {negative[0]}, but a size cannot be negative" if negative else ""


def is_size_range(sizes: Sequence[Any]) -> bool:
    """Whether they are the smallest, the usual and the largest size."""
    return len(sizes) == 3 and all(isinstance(size, int) for size in sizes) and 1 <= sizes[0] <= sizes[1] <= sizes[2]


def _values_problem(value: str) -> str:
    try:
        source = read_values(value).source
    except ValueError as error:
        return str(error)
    if source is not ValueSource.FILE or (_FILE_VALUE.fullmatch(value) and value != "file"):
        return ""
    return f"'{value}' is neither a source of values nor a file"


def _source_of_data_rule(table: str, key: str) -> _Rule:
    """The rule of a value that names a function, a file of tensors or a folder of images."""
    return _Rule(
        (table, key),
        str,
        lambda value: (
            ""
            if not value or is_data_reference(value) or _FILE_VALUE.fullmatch(value)
            else f"'{value}' names neither a function nor data"
        ),
        lambda _: "write a function's name, a .npz, .safetensors or .pt file, or a folder of images as 'images/'",
    )


def _is_group(size: float) -> bool:
    return size == 0 or (size >= 16 and int(size) & (int(size) - 1) == 0)


_GROUPS = "0 (all weights of a channel) or a power of two from 16 on"


def _pattern_problem(value: str) -> str:
    kept, _, group = value.partition(":")
    if not (kept.isdecimal() and group.isdecimal()):
        return f"'{value}' is not a pattern N:M"
    return "" if 0 < int(kept) < int(group) <= 64 else f"'{value}': N must be at least 1 and below M, M at most 64"


def _ignore_problem(value: str) -> str:
    if problem := rule_problem(value):
        return problem
    kind = value.partition(":")[0]
    return (
        ""
        if kind in ("module", "type")
        else f"'{value}': pruning happens before ops are known, so only modules and types can be named"
    )


_DROP_RANGE = "at least 0 and below 1 (0.01 is one percent)"
_SOURCES = tuple(str(source) for source in ValueSource if source is not ValueSource.FILE)
_DEVICES = re.compile(r"auto|cpu|cuda(:\d+)?")
_RULES: tuple[_Rule, ...] = (
    _range_rule("goal", "max_drop", is_good=lambda drop: 0 <= drop < 1, wanted=_DROP_RANGE),
    _range_rule("goal", "max_size_mb", is_good=lambda size: size > 0, wanted="above 0"),
    _range_rule("goal", "max_latency_ratio", is_good=lambda ratio: ratio > 0, wanted="above 0 (0.5 is half the time)"),
    _range_rule("measure", "rounds", is_good=lambda rounds: rounds >= 1, wanted="at least 1"),
    _range_rule("measure", "threads", is_good=lambda threads: threads >= 1, wanted='at least 1, "all" or "best"'),
    _range_rule(
        "calibration", "percentile", is_good=lambda part: 50 < part <= 100, wanted="above 50 and at most 100 (99.99)"
    ),
    _Rule(
        ("calibration", "std", "*"),
        (int, float),
        lambda value: "" if value > 0 else f"is {value}, but images are divided by it",
        lambda _: "give values above 0",
    ),
    _list_rule("improve", "methods", "method"),
    _range_rule("calibration", "samples", is_good=lambda samples: samples >= 1, wanted="at least 1"),
    _range_rule("sensitivity", "probes", is_good=lambda count: 1 <= count <= 64, wanted="between 1 and 64"),
    _range_rule("sensitivity", "samples", is_good=lambda samples: samples >= 1, wanted="at least 1"),
    _word_rule(("plan", "rest"), "a float precision", tuple(map(str, FLOATS))),
    _range_rule("plan", "group_size", is_good=_is_group, wanted=_GROUPS),
    _range_rule("capture", "time_limit_s", is_good=lambda seconds: seconds > 0, wanted="above 0 seconds"),
    _reference_rule("model", "entry"),
    _source_of_data_rule("inputs", "tracing"),
    _source_of_data_rule("calibration", "inputs"),
    _reference_rule("evaluate", "function"),
    _word_rule(("advice_from", "quantity"), "a quantity of advice", ("", *map(str, AdviceQuantity))),
    _reference_rule("finetune", "data"),
    _reference_rule("finetune", "loss"),
    _range_rule("prune", "amount", is_good=lambda part: 0 < part < 1, wanted="above 0 and below 1 (0.5 is half)"),
    _range_rule("prune", "round_to", is_good=lambda size: size >= 1, wanted="at least 1"),
    _Rule(("prune", "pattern"), str, _pattern_problem, lambda _: "write for example '2:4' or '4:8'"),
    _Rule(("prune", "ignore", "*"), str, _ignore_problem, lambda _: "write for example 'module:head' or 'type:Linear'"),
    _range_rule("finetune", "epochs", is_good=lambda count: count >= 1, wanted="at least 1"),
    _range_rule("finetune", "learning_rate", is_good=lambda rate: rate > 0, wanted="above 0"),
    _range_rule("finetune", "held_out", is_good=lambda part: 0 < part < 1, wanted="above 0 and below 1"),
    _range_rule("finetune", "max_seconds", is_good=lambda seconds: seconds > 0, wanted="above 0 seconds"),
    _range_rule("improve", "max_seconds", is_good=lambda seconds: seconds > 0, wanted="above 0 seconds"),
    _range_rule("limits", "memory_mb", is_good=lambda most: most >= 0, wanted="at least 0 (0 is the default)"),
    _range_rule("limits", "step_s", is_good=lambda most: most >= 0, wanted="at least 0 (0 is the default)"),
    _range_rule("limits", "examples", is_good=lambda most: most >= 1, wanted="at least 1"),
    _Rule(
        ("engine", "host"),
        str,
        lambda host: "" if not host or HOST_WORD.fullmatch(host) else f"'{host}' is not the name of a host",
        lambda _: "write for example 'user@box'; a port and a key belong in ~/.ssh/config",
    ),
    _word_rule(("evaluate", "metric"), "a metric", METRIC_NAMES),
    _Rule(
        ("evaluate", "data"),
        str,
        lambda value: "" if not value or is_data_reference(value) else f"'{value}' is neither a function nor a file",
        lambda _: "write the name of a function, 'file.py:name', or a .npz, .safetensors or .pt file",
    ),
    _Rule(
        ("measure", "batches", "*"),
        int,
        lambda size: "" if size >= 1 else f"is {size}, but a batch holds at least 1",
        lambda _: "give sizes of 1 or more",
    ),
    _Rule(
        ("measure", "decode", "tokens"),
        int,
        lambda count: "" if count >= 2 else f"is {count}, but at least two tokens are needed for a time",
        lambda _: "give 2 or more; 32 to 128 are usual",
    ),
    _word_rule(("capture", "rungs", "*"), "a capture method", ALL_CAPTURE_METHODS),
    _Rule(("targets", "names", "*"), str, _target_problem, lambda name: listing_hint(name, ("auto", *TARGET_ROWS))),
    _list_rule("capture", "rungs", "capture method"),
    _list_rule("targets", "names", "target"),
    _word_rule(("inputs", "rows", "*", "*", "dtype"), "an element type", _DTYPES),
    _Rule(
        ("targets", "sizes", "*"),
        list,
        lambda sizes: "" if is_size_range(sizes) else "has not three sizes in rising order",
        lambda _: "give the smallest, the usual and the largest size, such as [1, 4, 8]",
    ),
    _Rule(("inputs", "rows", "*", "*", "shape"), list, _shape_problem, lambda _: "give sizes of 0 or more"),
    _Rule(
        ("inputs", "rows", "*", "*", "values"),
        str,
        _values_problem,
        lambda value: "write the file's path" if value == "file" else nearest_hint(value, _SOURCES) + ", or a file",
    ),
    _Rule(
        ("plan", "rules", "*", "match"),
        str,
        lambda value: rule_problem(value) or "",
        lambda _: "write for example 'module:layer1.*', 'op:aten.conv2d.default', 'type:Linear' or 'id:conv2d_3'",
    ),
    _Rule(
        ("plan", "rules", "*", "group_size"),
        int,
        lambda value: "" if _is_group(value) else f"is {value}, but it must be {_GROUPS}",
        lambda _: f"give a size that is {_GROUPS}",
    ),
    _Rule(
        ("capture", "controls", "*", "function"),
        str,
        lambda value: "" if _CONTROL.fullmatch(value) else f"'{value}' does not name a function",
        lambda _: "write 'module:name', for example 'model:get_magic_num'",
    ),
    _Rule(
        ("measure", "device"),
        str,
        lambda value: "" if _DEVICES.fullmatch(value) else f"'{value}' is not a device",
        lambda value: nearest_hint(value, ("auto", "cpu", "cuda")),
    ),
)


def value_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Values that break the rule in their row."""
    for rule in _RULES:
        for path, value in _matching(document, rule.pattern, ()):
            if not isinstance(value, rule.kind) or (isinstance(value, bool)):
                continue
            if problem := rule.problem(value):
                separator = " " if problem.startswith(("is ", "has ", "names ")) else ": "
                yield Fault(path, path_text(path) + separator + problem, remedy=rule.remedy(value))


def _matching(value: object, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    """Every value of the document whose path fits the pattern."""
    if not pattern:
        yield path, value
        return
    for key, item in _children(value):
        if pattern[0] in ("*", key):
            yield from _matching(item, pattern[1:], (*path, key))


def _children(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, dict):
        return list(value.items())
    return enumerate(value) if isinstance(value, list) else ()
