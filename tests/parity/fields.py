"""Compares components/model/types/*.json with the configuration classes of the installed Transformers.

usage: fields.py

Every field of a class has to stand in its table, and nothing else but what files of older versions hold. What roux
reads has to have the default of the class, and takes null where the class does.
"""

import dataclasses
import inspect
import json
import pathlib
import sys

from transformers import CONFIG_MAPPING, GenerationConfig

NAMES = pathlib.Path(__file__).resolve().parents[2] / "components" / "model" / "types"
COMMON = json.loads((NAMES / "common.json").read_text())

# What the classes of versions 4.30 to 4.57 have beside.
VERSION_4 = {
    "add_cross_attention", "cross_attention_hidden_size", "decoder_start_token_id", "finetuning_task", "is_decoder",
    "prefix", "pruned_heads", "sep_token_id", "task_specific_params", "tf_legacy_loss", "tie_encoder_decoder",
    "tokenizer_class", "torch_dtype", "torchscript", "use_bfloat16", "_attn_implementation_autoset", "_commit_hash",
}
# What version 5 takes from a file without a field of the class.
KEYWORDS = {
    "attn_implementation", "auto_map", "classifier_dropout", "experts_implementation", "hidden_dropout", "is_causal",
    "name_or_path", "num_labels", "per_layer_config", "quantization_config", "tie_last_hidden_states",
    "token_classification_bias",
}
# What published files hold that no class knows.
STRAY = {"_model_name_or_path", "gradient_checkpointing", "transformers.js_config", "unk_token_id"}
ROPE = {"original_max_position_embeddings", "partial_rotary_factor", "rope_scaling", "rope_theta"}
OWN = {
    "gpt2": {"n_ctx", "output_past", "predict_special_tokens"},
    "llama": ROPE | {"is_llama_config", "layer_types", "max_sequence_length", "rope_interleaved"},
    "mistral": ROPE | {"layer_types"},
    "qwen2": ROPE | {"head_dim", "use_mrope"},
    "qwen3": ROPE,
    "mixtral": ROPE | {"layer_types"},
    "qwen3_moe": ROPE | {"head_dim", "layer_types", "max_window_layers"},
    "olmo2": ROPE | {"head_dim"},
    "granite": ROPE | {"head_dim", "layer_types"},
    "smollm3": ROPE | {"head_dim", "max_window_layers", "pretraining_tp"},
    "phi3": ROPE | {"attention_bias", "full_attn_mod", "head_dim", "interpolate_factor", "lm_head_bias", "mlp_bias"},
    "gemma": ROPE | {"hidden_activation"},
    "gemma2": ROPE | {"cache_implementation", "hidden_act"},
    "gemma3_text": ROPE | {"cache_implementation", "hidden_act", "rope_local_base_freq", "sliding_window_pattern"},
    "bert": {"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
             "pooler_size_per_head", "pooler_type", "position_embedding_type"},
    "roberta": {"position_embedding_type"},
    "distilbert": {"tie_weights_"},
    "t5": {"bos_token_id", "dense_act_fn", "is_gated_act", "n_positions", "output_past", "scale_decoder_outputs"},
    "modernbert": ROPE - {"rope_theta"} | {"global_attn_every_n_layers", "global_rope_theta", "layer_norm_eps",
                                           "local_rope_theta", "position_embedding_type", "reference_compile",
                                           "repad_logits_with_grad"},
}
# Null is a value of the class, but its model cannot train with it.
NO_NULL = {("llama", "attention_dropout"), ("gemma2", "attention_dropout"), ("gemma3_text", "attention_dropout"),
           ("roberta", "pad_token_id")}


def check(model_type):
    table = json.loads((NAMES / f"{model_type}.json").read_text())
    fields, kind = {**COMMON["fields"], **table["fields"]}, CONFIG_MAPPING[model_type]
    parameters = set(inspect.signature(kind.__init__).parameters) - {"self", "args", "kwargs"}
    needed = set(kind().to_dict()) | parameters
    allowed = needed | VERSION_4 | KEYWORDS | STRAY | OWN[model_type]
    allowed |= set(GenerationConfig._get_default_generation_params())
    metadata = [name for name in COMMON["metadata"] if "*" not in name]  # the others are patterns
    also = {name for field in fields.values() for name in field.get("also", [])}
    stated = set(fields) | set(metadata) | (also & needed)
    allowed = {name for name in allowed if not name.startswith("_") or name in stated}  # the pattern `_*` has those
    errors = [f"{name} is missing" for name in sorted(allowed - stated)]
    errors += [f"{name} is superfluous" for name in sorted(stated - allowed)]
    errors += [f"{name} stands in fields and in metadata" for name in sorted(set(fields) & set(metadata))]
    errors += [f"{name} is no other name of a field" for name in sorted(also - needed - set(kind.attribute_map))]

    declared = {field.name: field for field in dataclasses.fields(kind)}
    for name, field in fields.items():
        if name not in declared:
            continue
        default, nullable = declared[name].default, "None" in str(declared[name].type)
        if field["use"] == "only" and field["value"] != default:
            errors.append(f"{name}: the only value {field['value']} is not the default {default}")
        if field["use"] == "read":
            if field["default"] != default:
                errors.append(f"{name}: default {field['default']}, in the class {default}")
            if ("null" in field["type"]) != (nullable and (model_type, name) not in NO_NULL):
                errors.append(f"{name}: null {'is' if nullable else 'is not'} a value of the class")
    return [f"{model_type}: {error}" for error in errors]


def main():
    errors = [error for path in sorted(NAMES.glob("*.json"))
              if path.stem != "common" for error in check(path.stem)]
    print("\n".join(errors) or "done")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
