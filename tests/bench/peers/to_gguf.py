"""Writes a Llama of a Transformers folder as GGUF in bfloat16: to_gguf.py FOLDER FILE.gguf. Needs gguf and torch.

Names and the order of rows are llama.cpp's: it turns neighbouring features of a head by their position, where
Transformers turns its two halves.
"""
import json
import sys
from pathlib import Path

import gguf
import torch
from safetensors.torch import load_file


def interleaved(weight, heads):
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_tokenizer(writer, folder, config):
    read = json.loads((folder / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in read["added_tokens"]}
    texts = {i: text for text, i in {**read["model"]["vocab"], **added}.items()}
    size = config["vocab_size"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([texts.get(i, f"[unused {i}]") for i in range(size)])
    writer.add_token_types([gguf.TokenType.CONTROL if texts.get(i) in added else gguf.TokenType.NORMAL
                            for i in range(size)])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in read["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


def write_config(writer, config):
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_rope_dimension_count(head)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)


def write_weights(writer, folder, config):
    weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights.update(load_file(file))

    def low(name, weight):
        data = weight.to(torch.bfloat16).contiguous().view(torch.uint8).numpy()
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType.BF16)

    low("token_embd.weight", weights["model.embed_tokens.weight"])
    if not config["tie_word_embeddings"]:
        low("output.weight", weights["lm_head.weight"])
    writer.add_tensor("output_norm.weight", weights["model.norm.weight"].float().numpy())
    for i in range(config["num_hidden_layers"]):
        theirs, ours = f"model.layers.{i}.", f"blk.{i}."
        for norm, name in (("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm")):
            writer.add_tensor(f"{ours}{norm}.weight", weights[f"{theirs}{name}.weight"].float().numpy())
        for part, heads in (("q", config["num_attention_heads"]), ("k", config["num_key_value_heads"])):
            low(f"{ours}attn_{part}.weight", interleaved(weights[f"{theirs}self_attn.{part}_proj.weight"], heads))
        low(f"{ours}attn_v.weight", weights[f"{theirs}self_attn.v_proj.weight"])
        low(f"{ours}attn_output.weight", weights[f"{theirs}self_attn.o_proj.weight"])
        for part in ("gate", "up", "down"):
            low(f"{ours}ffn_{part}.weight", weights[f"{theirs}mlp.{part}_proj.weight"])


def main():
    folder, file = Path(sys.argv[1]), sys.argv[2]
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name(folder.name)
    write_config(writer, config)
    write_tokenizer(writer, folder, config)
    write_weights(writer, folder, config)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
