"""Networks of transformers, built from tiny configurations."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.load.torchvision.ops import make_importable
from tests.benchmarks.zoo.row import Row, Sizes, features, generator, ids, square, text, tokens
from tests.benchmarks.zoo.torchvision_rows import BATCHES

FAMILY = "transformers"
TEXT: tuple[tuple[Sizes, ...], Sizes] = (((2, 16), (3, 24)), (4, 20))
_WIDTH: dict[str, Any] = {"vocab_size": 100, "hidden_size": 32}
_ENCODER: dict[str, Any] = {
    **_WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64,
}  # fmt: skip
_DECODER: dict[str, Any] = {**_ENCODER, "num_key_value_heads": 1, "use_cache": False}


def _hugging_face(config: str, model: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        make_importable()  # image models of transformers import it
        library = importlib.import_module("transformers")
        return getattr(library, model)(getattr(library, config)(**options))

    return build


def _encoder_decoder(batch: int, length: int) -> dict[str, Tensor]:
    return {**text(batch, length), "decoder_input_ids": tokens(batch, length // 2)}


def _spectrum(batch: int, length: int) -> dict[str, Tensor]:
    frames = torch.randn(batch, 16, 64, generator=generator(batch))
    return {"input_features": frames, "decoder_input_ids": tokens(batch, length)}


def _image_and_text(batch: int, length: int) -> dict[str, Tensor]:
    return {**text(batch, length), "pixel_values": square(batch, 32)[0]}


ROWS = (
    Row("bert", FAMILY, _hugging_face("BertConfig", "BertModel", **_ENCODER), text, *TEXT),
    Row("roberta", FAMILY, _hugging_face("RobertaConfig", "RobertaModel", **_ENCODER), text, *TEXT),
    Row("distilbert", FAMILY, _hugging_face(
        "DistilBertConfig", "DistilBertModel", vocab_size=100, dim=32, n_layers=2, n_heads=2, hidden_dim=64,
    ), text, *TEXT),
    Row("albert", FAMILY, _hugging_face("AlbertConfig", "AlbertModel", embedding_size=16, **_ENCODER), text, *TEXT),
    Row("electra", FAMILY, _hugging_face(
        "ElectraConfig", "ElectraForSequenceClassification", embedding_size=16, **_ENCODER,
    ), text, *TEXT),
    Row("deberta_v2", FAMILY, _hugging_face(
        "DebertaV2Config", "DebertaV2Model", relative_attention=True, pos_att_type=["p2c", "c2p"],
        position_buckets=8, **_ENCODER,
    ), text, *TEXT),
    Row("longformer", FAMILY, _hugging_face(
        "LongformerConfig", "LongformerModel", attention_window=[4, 4], **_ENCODER,
    ), text, *TEXT, cost=2),
    Row("gpt2", FAMILY, _hugging_face(
        "GPT2Config", "GPT2LMHeadModel", vocab_size=100, n_embd=32, n_layer=2, n_head=2, n_positions=64,
        use_cache=False,
    ), ids, *TEXT),
    Row("opt", FAMILY, _hugging_face(
        "OPTConfig", "OPTForCausalLM", vocab_size=100, hidden_size=32, ffn_dim=64, num_hidden_layers=2,
        num_attention_heads=2, word_embed_proj_dim=32, max_position_embeddings=64, use_cache=False,
    ), text, *TEXT),
    Row("llama", FAMILY, _hugging_face("LlamaConfig", "LlamaForCausalLM", **_DECODER), ids, *TEXT),
    Row("mistral", FAMILY, _hugging_face(
        "MistralConfig", "MistralForCausalLM", sliding_window=8, **_DECODER,
    ), ids, *TEXT),
    Row("qwen2", FAMILY, _hugging_face("Qwen2Config", "Qwen2ForCausalLM", **_DECODER), text, *TEXT),
    Row("mixtral", FAMILY, _hugging_face(
        "MixtralConfig", "MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2, **_DECODER,
    ), ids, *TEXT, cost=2),
    Row("mamba", FAMILY, _hugging_face(
        "MambaConfig", "MambaForCausalLM", state_size=4, num_hidden_layers=2, use_cache=False, **_WIDTH,
    ), ids, *TEXT, cost=2),
    Row("t5", FAMILY, _hugging_face(
        "T5Config", "T5ForConditionalGeneration", vocab_size=100, d_model=32, d_kv=16, d_ff=64, num_layers=2,
        num_heads=2, use_cache=False,
    ), _encoder_decoder, ((2, 16), (3, 24)), (4, 20), cost=2),
    Row("bart", FAMILY, _hugging_face(
        "BartConfig", "BartModel", vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_position_embeddings=64, use_cache=False,
    ), _encoder_decoder, ((2, 16), (3, 24)), (4, 20), cost=2),
    Row("whisper", FAMILY, _hugging_face(
        "WhisperConfig", "WhisperModel", vocab_size=100, num_mel_bins=16, d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
        max_source_positions=32, max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, use_cache=False,
    ), _spectrum, *TEXT, cost=2),
    Row("wav2vec2", FAMILY, _hugging_face(
        "Wav2Vec2Config", "Wav2Vec2Model", hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, conv_dim=(16, 16, 16), conv_kernel=(10, 3, 3), conv_stride=(5, 2, 2),
        num_feat_extract_layers=3, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
    ), features, ((2, 800), (3, 1200)), (4, 1000), cost=2),
    Row("hf_vit", FAMILY, _hugging_face(
        "ViTConfig", "ViTModel", image_size=64, patch_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64,
    ), square, *BATCHES),
    Row("clip", FAMILY, _hugging_face(
        "CLIPConfig", "CLIPModel", projection_dim=16,
        text_config={**_ENCODER, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
        vision_config={"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
                       "num_attention_heads": 2, "intermediate_size": 64},
    ), _image_and_text, *TEXT, cost=2),
    Row("segformer", FAMILY, _hugging_face(
        "SegformerConfig", "SegformerForSemanticSegmentation", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16, num_labels=5,
    ), square, ((2, 64), (3, 96)), (4, 128), cost=2),
)  # fmt: skip
