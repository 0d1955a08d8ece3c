"""Records what Accelerate 1.15 and Transformers 5.24 say of the sizes of models, topic model_sizes.

    $(tests/parity/setup) tests/golden/vectors/model_sizes.py > tests/golden/vectors/model_sizes.json

Classes are made on the meta device, with their tied weights; `config` is their config.json.
"""

import json

import torch
import transformers
from accelerate.commands.estimate import estimate_training_usage
from accelerate.utils import calculate_maximum_sizes

SMALL = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 211}
NO_SPECIAL = {name + "_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")}
GROUPED = SMALL | {"num_key_value_heads": 2}
CASES = [
    ("gpt2", "GPT2LMHeadModel", {}),
    ("gpt2-xl", "GPT2LMHeadModel", {"n_embd": 1600, "n_layer": 48, "n_head": 25}),
    ("gpt2-small", "GPT2LMHeadModel", {"n_embd": 40, "n_layer": 2, "n_head": 4, "vocab_size": 90, "n_positions": 64}),
    ("llama-7b", "LlamaForCausalLM", {}),
    ("llama-small-tied", "LlamaForCausalLM", GROUPED | {"tie_word_embeddings": True}),
    ("llama-base", "LlamaModel", GROUPED),
    ("llama-classes", "LlamaForSequenceClassification", GROUPED | {"num_labels": 5}),
    ("smollm2-135m", "LlamaForCausalLM", {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
                                          "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152,
                                          "tie_word_embeddings": True}),
    ("mistral-7b", "MistralForCausalLM", {}),
    ("mixtral-small", "MixtralForCausalLM", GROUPED | {"num_local_experts": 4}),
    ("qwen2-0.5b", "Qwen2ForCausalLM", {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
                                        "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
                                        "tie_word_embeddings": True}),
    ("qwen3-small", "Qwen3ForCausalLM", GROUPED | {"head_dim": 16}),
    ("qwen3-moe-small", "Qwen3MoeForCausalLM", GROUPED | {"head_dim": 16, "num_experts": 6, "num_experts_per_tok": 2,
                                                          "moe_intermediate_size": 24}),
    ("gemma-small", "GemmaForCausalLM", GROUPED | {"head_dim": 16}),
    ("gemma2-2b", "Gemma2ForCausalLM", {}),
    ("gemma3-small", "Gemma3ForCausalLM", GROUPED | {"head_dim": 16}),
    ("phi3-mini", "Phi3ForCausalLM", {}),
    ("olmo2-small", "Olmo2ForCausalLM", GROUPED),
    ("granite-small", "GraniteForCausalLM", GROUPED),
    ("smollm3-small", "SmolLM3ForCausalLM", GROUPED | {"pad_token_id": 0}),
    ("bert-base", "BertForMaskedLM", {}),
    ("bert-base-model", "BertModel", {}),
    ("bert-small-model", "BertModel", SMALL),
    ("bert-classes", "BertForSequenceClassification", SMALL | {"num_labels": 3}),
    ("bert-tags", "BertForTokenClassification", SMALL | {"num_labels": 7}),
    ("bert-questions", "BertForQuestionAnswering", SMALL),
    ("bert-choices", "BertForMultipleChoice", SMALL),
    ("roberta-base", "RobertaForMaskedLM", {"vocab_size": 50265, "max_position_embeddings": 514}),
    ("roberta-small-model", "RobertaModel", SMALL),
    ("distilbert", "DistilBertForMaskedLM", {}),
    ("distilbert-small", "DistilBertForSequenceClassification",
     {"dim": 32, "hidden_dim": 96, "n_layers": 2, "n_heads": 4, "vocab_size": 60, "max_position_embeddings": 64}),
    ("modernbert-base", "ModernBertForMaskedLM", {}),
    ("modernbert-small", "ModernBertForSequenceClassification", SMALL | NO_SPECIAL),
    ("t5-small", "T5ForConditionalGeneration", {}),
    ("t5-gated", "T5ForConditionalGeneration", {"d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 2,
                                                "num_decoder_layers": 3, "num_heads": 4, "vocab_size": 211,
                                                "feed_forward_proj": "gated-gelu"}),
]


def config_of(name, changes):
    config = getattr(transformers, name).config_class(**changes)
    config.architectures = [name]
    return config


def case_of(name, architecture, changes):
    config = config_of(architecture, changes)
    with torch.device("meta"):  # init_empty_weights() loses what is tied until tie_weights()
        model = getattr(transformers, architecture)._from_config(config, dtype=torch.float32)
    total, (largest, layers) = calculate_maximum_sizes(model)
    written = config.to_diff_dict() | {"architectures": [architecture]}
    return {"kind": "layers", "name": name, "input": {"config": written},
            "expected": {"total": total, "largest_layer": largest, "layers": len(layers), "first": layers[0],
                         "training": estimate_training_usage(total, "float32")["step"],
                         "parameters": sum(p.numel() for p in model.parameters())}}


def main():
    transformers.logging.set_verbosity_error()
    cases = [case_of(*case) for case in CASES]
    print(json.dumps({
        "topic": "model_sizes", "source": "accelerate 1.15.0, transformers 5.24.0, torch 2.11.0, on the meta device",
        "fields": {"kind=layers": "config.json -> accelerate.utils.calculate_maximum_sizes of the class: total and "
                                  "largest layer in bytes of float32, how many layers are as large, the first of them; "
                                  "training with Adam; parameters, each once",
                   "tolerance": "0.1 %"},
        "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
