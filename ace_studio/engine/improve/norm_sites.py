"""Norms whose results only linear layers read: places where a scale can move from activations into weights."""

from dataclasses import dataclass

import torch
from torch import Tensor, fx

from ace_studio.engine.improve.job import Site, WeightEditor
from ace_studio.engine.ops.families import IDENTITIES, LINEAR_OPS

_PLACES = {"aten.layer_norm.default": (2, 3), "aten.rms_norm.default": (2,), "aten.native_layer_norm.default": (2, 3)}
"""Places of a norm's stored scale and shift."""


@dataclass(frozen=True)
class NormSite:
    """One norm and the layers that read it."""

    source: fx.Node
    """Gives the normed value, [..., C]."""
    parameters: tuple[str, ...]
    """Names of what the result is linear in: scale, and shift if there is one."""
    readers: tuple[Site, ...]

    def divide(self, editor: WeightEditor, factor: Tensor) -> None:
        """Divide the normed value by the factor [C] and multiply the readers' weights with it."""
        for name in self.parameters:
            editor.set(name, editor.tensor(name) / factor)
        for reader in self.readers:
            editor.scale_inputs(reader, factor)

    def input_size(self, editor: WeightEditor) -> Tensor:
        """Largest magnitude of the readers' weights per input, [C]."""
        return torch.stack([editor.rows(reader).abs().amax(0) for reader in self.readers]).amax(0)


def find_norm_sites(editor: WeightEditor) -> list[NormSite]:
    """Every norm all of whose readers are linear layers with weights of their own, in graph order."""
    by_node = {site.node: site for site in editor.sites if str(site.node.target) in LINEAR_OPS}
    found = []
    for node in editor.graph_module.graph.nodes:
        parameters = _parameters(editor, node)
        readers = _readers(node)
        if parameters and readers and all(reader in by_node for reader in readers):
            found.append(NormSite(node, parameters, tuple(by_node[reader] for reader in readers)))
    return found


def _parameters(editor: WeightEditor, node: fx.Node) -> tuple[str, ...]:
    """Names of a norm's scale and shift; empty if they are not all stored."""
    if node.op != "call_function":
        return ()
    if str(node.target) == "aten.mul.Tensor":  # the end of a norm written as single ops
        names = [editor.stored(argument) for argument in node.args]
        stored = [name for name in names if name and editor.tensor(name).dim() == 1]
        return tuple(stored) if len(stored) == 1 else ()
    places = _PLACES.get(str(node.target), ())
    given = [node.args[place] for place in places if len(node.args) > place and node.args[place] is not None]
    stored = [editor.stored(argument) for argument in given]
    has_scale = bool(places) and len(node.args) > places[0] and node.args[places[0]] is not None
    return tuple(stored) if has_scale and all(stored) and editor.tensor(stored[0]).dim() == 1 else ()


def _readers(node: fx.Node) -> list[fx.Node]:
    """The readers of a value, looked for through identities."""
    found = []
    for user in node.users:
        found += _readers(user) if str(user.target) in IDENTITIES else [user]
    return found
