"""Pruning: weights or channels are removed from a copy of the module, before its graph is captured."""

from ace_studio.engine.prune.prune import Pruned, PruneJob, prune_module
