"""Training a little after compression: towards the original, by a loss of the user's, or with int8's rounding."""

from ace_studio.engine.finetune.train import FinetuneJob, finetune_module
