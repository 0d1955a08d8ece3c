#!/usr/bin/env python3
"""Makes tiny models of Transformers with inputs and what Transformers computes from them.

usage: make.py [OUT]      writes OUT/CASE/ of every case, tests/parity/models without OUT
       make.py --check    computes them again and compares with tests/parity/models

The Python of tests/parity/setup runs it. A case is a folder of Transformers with two files more:

  config.json, model.safetensors   as save_pretrained writes them, or as older versions did where the case says so
  ids.jsonl             {"input_ids": [...]} a line: the two texts of `unpadded`, then the two of `padded`
  expected.safetensors  under unpadded/ (two texts of one length) and padded/ (of two, the shorter filled up on the right
                        with id 0, attention mask 0, label -100), float32, eager attention, no dropout:
      logits            [texts, positions, ids]; at filled positions there is whatever Transformers had there
      loss              [1], mean over the labels, which are the ids themselves: a position's logits foretell the next id
      grad/NAME         of the loss by each parameter, tied ones once
      after/NAME        the parameters after five steps of AdamW on the same batch; of unpadded only

The biases of GPT-2's keys change nothing: softmax takes away what all scores of a position share. Their gradients are
rounding, which AdamW makes steps of whole size, so the middle third of after/...c_attn.bias is no one's to foretell.
"""

import json
import math
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, GPT2Model, LlamaConfig, LlamaForCausalLM,
                          MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM)
from transformers.utils import logging

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE / "models"
VOCABULARY, LENGTH, SHORTER = 32, 14, 9
STEPS = 5
TOLERANCE = 1e-6           # of a tensor's largest entry, of what is read
COMPUTED_TOLERANCE = 1e-5  # and of what is computed: other instructions of a processor were seen to add up to 7.1e-6

GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 20, "n_positions": 16,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "summary_first_dropout": 0.0}
LLAMA = {"hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 32, "attention_dropout": 0.0}
# Two heads of eight: four frequencies of rotation.
WIDE_HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}


def rope(kind, theta, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


def as_version_4(folder, **changes):
    """Rewrites config.json as versions before 5 wrote it; None takes a field away."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    changes = {"rope_parameters": None, "dtype": None, "layer_types": None, "torch_dtype": config["dtype"],
               "transformers_version": "4.46.3", **changes}
    for key, value in changes.items():
        config[key] = value
        if value is None and key != "rope_scaling":
            del config[key]
    path.write_text(json.dumps(dict(sorted(config.items())), indent=2) + "\n")


def into_two_shards(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    files = {name: f"model-0000{1 if at < len(names) // 2 else 2}-of-00002.safetensors" for at, name in enumerate(names)}
    for file in sorted(set(files.values())):
        save_file({name: weights[name] for name in names if files[name] == file}, folder / file, {"format": "pt"})
    size = sum(weight.numel() * weight.element_size() for weight in weights.values())
    index = {"metadata": {"total_size": size}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def version_4(folder):
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
    as_version_4(folder, rope_scaling=scaling, rope_theta=10.0)
    into_two_shards(folder)


def version_4_window_unused(folder):
    as_version_4(folder, rope_scaling=None, rope_theta=1000.0, use_sliding_window=False, sliding_window=5, max_window_layers=1)


def old_pytorch(folder):
    """One pickled file with the head and the masks in it, which versions before 4.31 saved too."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weights["lm_head.weight"] = weights["transformer.wte.weight"]
    for layer in range(GPT2["n_layer"]):
        mask = torch.tril(torch.ones(GPT2["n_positions"], GPT2["n_positions"], dtype=torch.uint8))
        weights[f"transformer.h.{layer}.attn.bias"] = mask[None, None]
        weights[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(dict(sorted(weights.items())), folder / "pytorch_model.bin")


# Name: class of the model, of its configuration, fields, what is done to the folder then.
CASES = {
    "gpt2": (GPT2LMHeadModel, GPT2Config, GPT2 | {"n_inner": None}, None),
    "gpt2_inner": (GPT2LMHeadModel, GPT2Config,
                   GPT2 | {"activation_function": "relu", "scale_attn_by_inverse_layer_idx": True}, None),
    "gpt2_gelu": (GPT2LMHeadModel, GPT2Config,
                  GPT2 | {"activation_function": "gelu", "scale_attn_weights": False, "layer_norm_epsilon": 1e-3}, None),
    "gpt2_bare": (GPT2Model, GPT2Config, GPT2, None),
    "gpt2_pt": (GPT2LMHeadModel, GPT2Config, GPT2, old_pytorch),
    "llama": (LlamaForCausalLM, LlamaConfig, LLAMA, None),
    "llama_mqa_tied": (LlamaForCausalLM, LlamaConfig,
                       LLAMA | {"num_key_value_heads": 1, "tie_word_embeddings": True}, None),
    "llama_biases": (LlamaForCausalLM, LlamaConfig, LLAMA | {"attention_bias": True, "mlp_bias": True}, None),
    "llama_head_dim": (LlamaForCausalLM, LlamaConfig, LLAMA | WIDE_HEADS | {"head_dim": 6}, None),
    "llama_gelu": (LlamaForCausalLM, LlamaConfig, LLAMA | {"hidden_act": "gelu", "rms_norm_eps": 1e-3}, None),
    "llama_linear": (LlamaForCausalLM, LlamaConfig, LLAMA | WIDE_HEADS | rope("linear", 100.0, factor=2.5), None),
    "llama_dynamic": (LlamaForCausalLM, LlamaConfig,
                      LLAMA | WIDE_HEADS | {"max_position_embeddings": 8} | rope("dynamic", 100.0, factor=2.0), None),
    "llama_yarn": (LlamaForCausalLM, LlamaConfig,
                   LLAMA | WIDE_HEADS | rope("yarn", 50.0, factor=4.0, original_max_position_embeddings=8,
                                             beta_fast=1.0, beta_slow=0.1), None),
    "llama_llama3": (LlamaForCausalLM, LlamaConfig,
                     LLAMA | WIDE_HEADS | {"max_position_embeddings": 512}
                     | rope("llama3", 50.0, factor=8.0, original_max_position_embeddings=64, low_freq_factor=1.0,
                            high_freq_factor=4.0), None),
    "llama_v4": (LlamaForCausalLM, LlamaConfig, LLAMA | WIDE_HEADS | {"dtype": "bfloat16"}, version_4),
    "mistral": (MistralForCausalLM, MistralConfig, LLAMA | {"sliding_window": 5}, None),
    "mistral_full": (MistralForCausalLM, MistralConfig, LLAMA | {"sliding_window": None}, None),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, LLAMA, None),
    "qwen2_window": (Qwen2ForCausalLM, Qwen2Config,
                     LLAMA | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}, None),
    "qwen2_tied": (Qwen2ForCausalLM, Qwen2Config, LLAMA | {"tie_word_embeddings": True}, version_4_window_unused),
    "qwen2_layer_types": (Qwen2ForCausalLM, Qwen2Config,
                          LLAMA | {"use_sliding_window": True, "sliding_window": 5,
                                   "layer_types": ["sliding_attention", "full_attention"]}, None),
}


def write_model(name, folder):
    kind, configuration, fields, change = CASES[name]
    torch.manual_seed(sum(name.encode()))
    model = kind(configuration(vocab_size=VOCABULARY, initializer_range=0.25, bos_token_id=1, eos_token_id=2, **fields))
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.normal_(0.0 if key.endswith("bias") else 1.0, 0.1)
    model.to(getattr(torch, fields.get("dtype", "float32"))).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if change:
        change(folder)


def write_ids(name, folder):
    random = torch.Generator().manual_seed(sum(name.encode()) + 1)
    lengths = (LENGTH, LENGTH, LENGTH, SHORTER)
    texts = [torch.randint(1, VOCABULARY, (length,), generator=random).tolist() for length in lengths]
    (folder / "ids.jsonl").write_text("".join(json.dumps({"input_ids": text}) + "\n" for text in texts))


def batches_of(folder):
    texts = [json.loads(line)["input_ids"] for line in (folder / "ids.jsonl").read_text().splitlines()]
    for name, rows in (("unpadded", texts[:2]), ("padded", texts[2:])):
        length = max(len(row) for row in rows)
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
        ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
        yield name, {"input_ids": ids, "attention_mask": mask, "labels": torch.where(mask == 1, ids, -100)}


def expected_of(folder, dtype=torch.float32):
    expected = {}
    for name, batch in batches_of(folder):
        # Anew for each batch: dynamic scaling remembers the longest text.
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
        for step in range(STEPS if name == "unpadded" else 1):
            optimizer.zero_grad()
            output = model(**batch, use_cache=False)
            output.loss.backward()
            if step == 0:
                expected[f"{name}/logits"] = output.logits.detach()
                expected[f"{name}/loss"] = output.loss.detach().reshape(1)
                expected |= {f"{name}/grad/{key}": weight.grad.clone() for key, weight in model.named_parameters()}
            optimizer.step()
        if name == "unpadded":
            expected |= {f"{name}/after/{key}": weight.detach() for key, weight in model.named_parameters()}
    return {key: tensor.contiguous() for key, tensor in expected.items()}


def write(out):
    for name in CASES:
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_model(name, folder)
        write_ids(name, folder)
        save_file(expected_of(folder), folder / "expected.safetensors")


def tensors_of(path):
    return load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)


def differences(ours, theirs):
    """Texts that say where two folders of a case differ."""
    names = sorted({path.name for folder in (ours, theirs) for path in folder.iterdir()})
    for name in names:
        if not (ours / name).exists() or not (theirs / name).exists():
            yield f"{name}: in one of the two only"
        elif name.endswith((".json", ".jsonl")):
            if (ours / name).read_text() != (theirs / name).read_text():
                yield f"{name}: another text"
        else:
            yield from (f"{name}: {text}" for text in tensor_differences(tensors_of(ours / name), tensors_of(theirs / name)))


def tensor_differences(ours, theirs):
    for key in sorted(ours.keys() | theirs.keys()):
        if key not in ours or key not in theirs or ours[key].shape != theirs[key].shape:
            yield f"{key}: missing or of another shape"
            continue
        distance = (ours[key].double() - theirs[key].double()).abs()
        if "/after/" in key and key.endswith(".c_attn.bias"):
            distance[distance.numel() // 3:distance.numel() * 2 // 3] = 0.0
        largest = theirs[key].double().abs().max().item()
        tolerance = COMPUTED_TOLERANCE if key.startswith(("unpadded/", "padded/")) else TOLERANCE
        if not distance.max().item() <= tolerance * largest:
            yield f"{key}: differs by {distance.max().item() / (largest or math.inf):.1e} of its largest entry"


def check():
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        write(pathlib.Path(place))
        wrong += [f"{path.name}: no such case" for path in MODELS.iterdir() if path.name not in CASES]
        for name in CASES:
            if (MODELS / name).is_dir():
                wrong += [f"{name}/{text}" for text in differences(MODELS / name, pathlib.Path(place) / name)]
            else:
                wrong.append(f"{name}: missing")
    for text in wrong:
        print(text)
    print(f"{len(CASES)} cases, {len(wrong)} differences")
    return 1 if wrong else 0


def main(words):
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if words == ["--check"]:
        return check()
    if len(words) > 1 or any(word.startswith("-") for word in words):
        print("usage: make.py [OUT | --check]", file=sys.stderr)
        return 2
    write(pathlib.Path(words[0]) if words else MODELS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
