"""Small language models with random weights, made on the fly: a dozen words, a layer or two."""

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from dpassay.text.models.language_models import PromptedModel

SPECIAL = ["<pad>", "<end>", "<start>", "<unknown>", "<mask>"]
WORDS = ["show", "me", "flights", "from", "boston", "to", "rome", "in", "the", "morning", "please"]
PAD, END, START, UNKNOWN, MASK = range(5)


def tokenizer(words: list[str] | None = None) -> Any:
    listed = [*SPECIAL, *(WORDS if words is None else words)]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(listed)}, unk_token="<unknown>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="<end>",
        bos_token="<start>",
        unk_token="<unknown>",
        mask_token="<mask>",
        cls_token="<start>",
        sep_token="<end>",
    )


def _ready(network: Any, reader: Any) -> PromptedModel:
    """Weights three times as large as usual: logits that differ visibly from text to text."""
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(3)
    return PromptedModel.of(network, reader, name="tiny")


def causal(words: list[str] | None = None, seed: int = 0) -> PromptedModel:
    torch.manual_seed(seed)
    reader = tokenizer(words)
    config = transformers.GPT2Config(
        vocab_size=len(reader), n_positions=64, n_embd=16, n_layer=2, n_head=2, eos_token_id=END, bos_token_id=START
    )
    return _ready(transformers.GPT2LMHeadModel(config), reader)


def llama(seed: int = 0) -> PromptedModel:
    torch.manual_seed(seed)
    reader = tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(reader),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        eos_token_id=END,
        bos_token_id=START,
        pad_token_id=PAD,
    )
    return _ready(transformers.LlamaForCausalLM(config), reader)


def masked(seed: int = 0) -> PromptedModel:
    torch.manual_seed(seed)
    reader = tokenizer()
    config = transformers.BertConfig(
        vocab_size=len(reader),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        pad_token_id=PAD,
    )
    return _ready(transformers.BertForMaskedLM(config), reader)


def encoder_decoder(seed: int = 0) -> PromptedModel:
    torch.manual_seed(seed)
    reader = tokenizer()
    config = transformers.BartConfig(
        vocab_size=len(reader),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=64,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
    )
    return _ready(transformers.BartForConditionalGeneration(config), reader)


def saved(model: PromptedModel, folder: Path) -> str:
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return str(folder)
