"""Families of models, their ready recipes in ``resources/recipes``, and which family a captured graph belongs to."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from ace_studio.records import ops
from ace_studio.records.by_identity import kept_by_identity
from ace_studio.records.graph import GraphTable, OpKind, sizes_of
from ace_studio.records.places import resource_folder

_JOINS = frozenset({"cat", "concat", "Concat"})
_CACHE_WRITES = _JOINS | {"index_put", "index_put_", "index_copy", "slice_scatter", "select_scatter", "ScatterND"}
_UPSAMPLING = ("conv_transpose", "ConvTranspose", "upsample", "interpolate", "Resize")
_NORMS = frozenset({"norm", "linalg_vector_norm", "LpNormalization", "ReduceL2"})
_COMPARISONS = frozenset({"le", "lt", "ge", "gt"})
_HOPS = 4
"""Ops that may stand between two that belong together: a crop, a padding, an activation."""


class GraphTraits:
    """What tells families of models apart: operators, inputs, outputs, and a few connections."""

    def __init__(self, graph: GraphTable) -> None:
        self._graph = graph
        names = {op: ops.operator_name(op) for op in set(graph.op)}
        self._names = [names[op] for op in graph.op]
        self.names = Counter(map(self._names.__getitem__, graph.op_rows()))
        self._sources: dict[int, list[int]] = defaultdict(list)
        for source, target in zip(graph.edge_source, graph.edge_target, strict=True):
            self._sources[target].append(source)
        inputs = [row for row, kind in enumerate(graph.kind) if kind is OpKind.INPUT]
        self._float_inputs = {row for row in inputs if "float" in graph.dtype[row]}
        self.has_tokens = any(graph.dtype[row].startswith(("int", "uint")) and graph.shape[row] for row in inputs)
        self.input_ranks = [self._rank(row) for row in self._float_inputs]
        outputs = [row for row, kind in enumerate(graph.kind) if kind is OpKind.OUTPUT]
        self._results = list(dict.fromkeys(source for row in outputs for source in self._sources[row]))
        self.output_ranks = [self._rank(row) for row in self._results]
        self.has_convolutions = self._has(ops.CONVOLUTIONS)
        self.has_recurrence = self._has(ops.RECURRENT_CELLS | ops.RECURRENT_LAYERS)
        is_softmax = any("softmax" in name.lower() for name in self.names)
        written_out = is_softmax and sum(self.names[name] for name in ops.BATCHED_PRODUCTS) > 1
        self.has_attention = self._has(ops.ATTENTION) or written_out
        tables = enumerate(zip(self._names, graph.weight_bytes, strict=True))
        lookups = {row for row, (name, weights) in tables if name in ops.TABLE_LOOKUPS and weights > 0}
        reductions = (row for row, name in enumerate(self._names) if name in {"sum", "mean", "amax"})
        reduced = sum(not lookups.isdisjoint(self._sources[row]) for row in reductions)
        self.bags = reduced + sum(count for name, count in self.names.items() if "embedding_bag" in name)
        self.lookups = len(lookups) - reduced

    def _has(self, names: Iterable[str]) -> bool:
        return any(name in self.names for name in names)

    def _rank(self, row: int) -> int:
        return len(sizes_of(self._graph.shape[row]))

    def _is_near(self, row: int, is_wanted: Callable[[int], bool], hops: int = _HOPS) -> bool:
        """Whether a row, or one that it follows from within some hops, is wanted."""
        if is_wanted(row) or not hops:
            return is_wanted(row)
        return any(self._is_near(one, is_wanted, hops - 1) for one in self._sources[row])

    @property
    def takes_image(self) -> bool:
        """Whether the one input of floats is [batch, channels, height, width]."""
        return self.input_ranks == [4] and not self.has_tokens

    @cached_property
    def has_cache(self) -> bool:
        """Whether an input of floats is extended or written to, as the cache of a decoder or of a stream is."""
        writes = (row for row, name in enumerate(self._names) if name in _CACHE_WRITES)
        return any(source in self._float_inputs for row in writes for source in self._sources[row])

    @property
    def is_causal(self) -> bool:
        """Whether an attention hides the tokens that follow."""
        if any("is_causal = True" in text for text in self._graph.attributes) or self._has(("tril", "triu", "Trilu")):
            return True
        compared = [self._sources[row] for row, name in enumerate(self._names) if name in _COMPARISONS]
        return any(
            len(sources) > 1 and all(self._is_near(row, lambda one: self._names[one] == "arange") for row in sources)
            for sources in compared
        )

    @property
    def goes_up(self) -> bool:
        """Whether something is enlarged."""
        return any(name.startswith(_UPSAMPLING) for name in self.names)

    @property
    def joins_on_the_way_up(self) -> bool:
        """Whether what was enlarged is concatenated with something."""
        joins = [row for row, name in enumerate(self._names) if name in _JOINS]
        return any(self._is_near(row, lambda one: self._names[one].startswith(_UPSAMPLING)) for row in joins)

    @property
    def ends_in_join(self) -> bool:
        """Whether the one output is a concatenation, but for changes of its shape."""
        return len(self._results) == 1 and self._is_near(self._results[0], lambda row: self._names[row] in _JOINS)

    @property
    def changes_channels(self) -> bool:
        """Whether the first output has other channels than the image that goes in."""
        first, last = (sizes_of(self._graph.shape[row]) for row in (*self._float_inputs, self._results[0]))
        return first[1] != last[1]

    @property
    def is_larger_than_input(self) -> bool:
        """Whether the first output is wider than the image that goes in, as of an upscaler."""
        first, last = (sizes_of(self._graph.shape[row])[-1] for row in (*self._float_inputs, self._results[0]))
        return (first.isdigit() and last.isdigit() and int(last) > int(first)) or f"*{first}" in last

    @property
    def is_pooled(self) -> bool:
        """Whether the output is a mean or has a norm, behind the last weights."""
        weighted = [row for row, op in enumerate(self._graph.op) if ops.is_weighted(op)]
        behind = self._names[max(weighted, default=-1) + 1 :]
        return any(name in _NORMS or name in {"mean", "sum", "ReduceMean", "ReduceSum"} for name in behind)

    @property
    def reduces_places(self) -> bool:
        """Whether something is pooled or flattened."""
        pools = any(ops.family_of(name) is ops.OpFamily.REDUCTION for name in self.names)
        return pools or self._has(("flatten", "view", "reshape", "Flatten", "Reshape"))


@dataclass(frozen=True)
class ModelFamily:
    """A kind of model that people know, with a ready recipe."""

    name: str
    """Of its file in ``resources/recipes``, without the suffix."""
    label: str
    """What such a model is called."""
    fits: Callable[[GraphTraits], bool]
    """Whether a graph belongs to it; of those that fit the first row counts."""

    def recipe_text(self) -> str:
        """The ready recipe, with comments and with usual names where the user fills in a model and its data."""
        return (resource_folder() / "recipes" / f"{self.name}.toml").read_text(encoding="utf-8")


def _is_recommender(it: GraphTraits) -> bool:
    is_plain = not (it.has_attention or it.has_convolutions or it.has_recurrence)
    return is_plain and it.bags + it.lookups > 1 and (bool(it.input_ranks) or it.bags > 1)


def _is_decoder_step(it: GraphTraits) -> bool:
    return it.has_attention and it.lookups > 0 and it.has_tokens and it.has_cache


def _is_streaming(it: GraphTraits) -> bool:
    has_state = len(it.input_ranks) > 1 and len(it.output_ranks) > 1 and not it.has_tokens
    of_signal = it.has_convolutions and it.has_cache and max(it.input_ranks) <= 3
    return has_state and not it.has_attention and (it.has_recurrence or of_signal)


def _is_recurrent(it: GraphTraits) -> bool:
    return it.has_recurrence and not it.has_attention


def _reads_text(it: GraphTraits) -> bool:
    return it.has_attention and it.lookups > 0 and it.has_tokens and not it.input_ranks and not it.is_causal


def _is_embedding_model(it: GraphTraits) -> bool:
    return _reads_text(it) and it.output_ranks == [2] and it.is_pooled


def _is_detector(it: GraphTraits) -> bool:
    many = len(it.output_ranks) > 1 and all(rank == 3 for rank in it.output_ranks)
    one = it.output_ranks == [3] and it.ends_in_join and not it.has_attention
    return it.takes_image and it.has_convolutions and ("nms" in it.names or many or one)


def _is_unet(it: GraphTraits) -> bool:
    keeps_rank = len(it.output_ranks) == 1 and it.output_ranks[0] in it.input_ranks
    return it.has_convolutions and keeps_rank and it.output_ranks[0] > 2 and it.joins_on_the_way_up


def _is_segmenter(it: GraphTraits) -> bool:
    is_dense = it.takes_image and it.has_convolutions and it.output_ranks == [4] and it.goes_up
    return is_dense and it.changes_channels and not it.is_larger_than_input


def _is_vision_transformer(it: GraphTraits) -> bool:
    return it.takes_image and it.has_attention and max(it.output_ranks, default=4) < 4


def _is_speech_encoder(it: GraphTraits) -> bool:
    hears = bool(it.input_ranks) and max(it.input_ranks) in (2, 3) and not it.lookups
    return it.has_attention and it.has_convolutions and hears


def _is_convolutional_classifier(it: GraphTraits) -> bool:
    is_plain = not (it.has_attention or it.has_recurrence or it.lookups)
    is_one = len(it.input_ranks) == 1 and it.input_ranks[0] > 2 and it.output_ranks == [2]
    return it.has_convolutions and is_plain and is_one and it.reduces_places


FAMILIES = (
    ModelFamily(name="recommender", label="recommender with tables", fits=_is_recommender),
    ModelFamily(name="decoder-step", label="step of a decoder", fits=_is_decoder_step),
    ModelFamily(name="streaming", label="streaming model", fits=_is_streaming),
    ModelFamily(name="recurrent", label="recurrent network", fits=_is_recurrent),
    ModelFamily(name="embedding-model", label="embedding model", fits=_is_embedding_model),
    ModelFamily(name="text-encoder", label="text encoder", fits=_reads_text),
    ModelFamily(name="detector", label="detector", fits=_is_detector),
    ModelFamily(name="unet", label="U-Net", fits=_is_unet),
    ModelFamily(name="segmenter", label="segmenter", fits=_is_segmenter),
    ModelFamily(name="vision-transformer", label="vision transformer", fits=_is_vision_transformer),
    ModelFamily(name="speech-encoder", label="speech encoder", fits=_is_speech_encoder),
    ModelFamily(name="convolutional-classifier", label="convolutional classifier", fits=_is_convolutional_classifier),
)
"""The particular ones before those that would fit the same graph."""


@kept_by_identity
def family_of_graph(graph: GraphTable) -> ModelFamily | None:
    """The family that a captured graph belongs to; None if there is none."""
    traits = GraphTraits(graph)
    return next((family for family in FAMILIES if family.fits(traits)), None)
