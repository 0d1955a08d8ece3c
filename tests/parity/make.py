"""Writes tiny models of Transformers with inputs and results, models/CASE/: what roux has to agree with.

usage: make.py [--check] [CASE...]

--check writes nothing: it draws each model again, computes everything from the committed weights, and compares with
what is committed, to 1e-5 of a tensor's largest entry: another processor's sums end up to 5e-6 apart.

Each folder is one that Transformers loads, and beside that

  ids.jsonl             Records of the batch `unpadded`, then, with an attention_mask, those of the batch `padded`.
                        Without labels a record's labels are its ids.
  expected.safetensors  BATCH/logits       [B, T, V], padded positions too
                        BATCH/loss         mean over the labels that are not -100, each predicted one position before
                        BATCH/grad/NAME    gradient of that loss
                        BATCH/after/NAME   weights after 5 steps of AdamW on that batch; NaN where the gradient is but
                                           rounding, which AdamW turns into steps of any size

in float32, without dropout, with the names of the model for causal language modelling. rope.json holds frequencies.
"""

import copy
import json
import math
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.utils.logging import disable_progress_bar

MODELS = pathlib.Path(__file__).resolve().parent / "models"
LENGTH = 16
VOCABULARY = 40
STEPS = 5
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
PADDED = (LENGTH, 12, 14)  # a window of 6 leaves every padded position something to look at
PROMPT = 4  # positions without a label at the start of the last record
ROUNDING = 3e-6  # of the largest entry of all gradients

GPT2 = {"vocab_size": VOCABULARY, "n_positions": 20, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 24,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "bos_token_id": 1,
         "eos_token_id": 2}
THREE = {"num_hidden_layers": 3, "pad_token_id": None}
WIDE_HEADS = {**LLAMA, "num_attention_heads": 2, "num_key_value_heads": 1}  # 8 features: 4 frequencies


def rope(kind, theta=100.0, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


# A folder's name is the model_type up to the first dash. A new one goes to the end: seeds follow from the order.
CASES = {
    "gpt2-default": {**GPT2, "n_inner": None},
    "gpt2-relu-inverse-layer": {**GPT2, "activation_function": "relu", "scale_attn_by_inverse_layer_idx": True},
    "gpt2-gelu-unscaled": {**GPT2, "activation_function": "gelu", "scale_attn_weights": False,
                           "layer_norm_epsilon": 1e-3},
    "gpt2-untied": {**GPT2, "tie_word_embeddings": False},
    "gpt2-bare": GPT2,
    "llama-grouped": LLAMA,
    "llama-multi-query-tied": {**LLAMA, "num_key_value_heads": 1, "tie_word_embeddings": True},
    "llama-biases": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "llama-head-dim": {**LLAMA, "head_dim": 6, "rms_norm_eps": 1e-3},
    "llama-gelu": {**LLAMA, "hidden_act": "gelu"},
    "llama-pad-token": {**LLAMA, "pad_token_id": 3},  # the text holds it, too
    "llama-linear": {**WIDE_HEADS, **rope("linear", factor=4.0)},
    "llama-dynamic": {**WIDE_HEADS, "max_position_embeddings": 10, **rope("dynamic", factor=3.0)},
    "llama-yarn": {**WIDE_HEADS, **rope("yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=2.0,
                                        beta_slow=0.25)},
    "llama-llama3": {**WIDE_HEADS, **rope("llama3", factor=4.0, original_max_position_embeddings=24,
                                          low_freq_factor=1.0, high_freq_factor=2.0)},
    "llama-version4-sharded": {**WIDE_HEADS, "torch_dtype": "bfloat16", "rope_theta": 500.0,
                               "rope_scaling": {"type": "linear", "factor": 2.0}},
    "mistral-window": {**LLAMA, "sliding_window": 6},
    "mistral-full": {**LLAMA, "sliding_window": None, "head_dim": 6},
    "qwen2-default": LLAMA,
    "qwen2-window": {**LLAMA, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
    "qwen2-layer-types": {**LLAMA, "use_sliding_window": True, "sliding_window": 6,
                          "layer_types": ["sliding_attention", "full_attention"]},
    "qwen2-tied": {**LLAMA, "tie_word_embeddings": True},
    "qwen3-default": {**LLAMA, "head_dim": 6},
    "qwen3-window": {**LLAMA, "head_dim": 4, "attention_bias": True, "use_sliding_window": True, "sliding_window": 6,
                     "max_window_layers": 1, "tie_word_embeddings": True},
    "olmo2-default": {**LLAMA, "pad_token_id": None},
    "granite-default": {**LLAMA, "attention_bias": True, "mlp_bias": True, "embedding_multiplier": 3.0,
                        "attention_multiplier": 0.3, "residual_multiplier": 0.4, "logits_scaling": 2.5},
    "smollm3-default": {**LLAMA, **THREE, "no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": 6},
    "smollm3-listed": {**LLAMA, **THREE, "no_rope_layers": [0, 1, 1], "attention_bias": True, "mlp_bias": True},
    "phi3-default": {**LLAMA, "pad_token_id": None, "sliding_window": 6},
    "phi3-longrope": {**WIDE_HEADS, "pad_token_id": None, "original_max_position_embeddings": 10,
                      **rope("longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0])},
    "phi3-part": {**WIDE_HEADS, "pad_token_id": None, "partial_rotary_factor": 0.5},
    "gemma-default": {**LLAMA, "head_dim": 6, "pad_token_id": None},
    "gemma2-default": {**LLAMA, **THREE, "head_dim": 6, "query_pre_attn_scalar": 5, "sliding_window": 6,
                       "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0},
    "gemma3_text-default": {**LLAMA, **THREE, "head_dim": 6, "query_pre_attn_scalar": 5, "sliding_window": 6,
                            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                            "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0,
                                                                   "rope_theta": 200.0},
                                                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}},
    "smollm3-types": {**LLAMA, "pad_token_id": None, "sliding_window": 6,
                      "layer_types": ["sliding_attention", "full_attention"]},
    "gemma3_text-capped": {**LLAMA, "head_dim": 6, "pad_token_id": None, "query_pre_attn_scalar": 5,
                           "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"],
                           "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
}


# Fields, and the length of a text. Each gives frequencies and the factor of cosine and sine, rope.json.
THETA = 10000.0
YARN = {"factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {"factor": 32.0, "original_max_position_embeddings": 8192, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
ROPES = [
    (rope("default", THETA), 32),
    (rope("linear", THETA, factor=2.5), 32),
    *((rope("dynamic", THETA, factor=2.0), length) for length in (64, 256, 257, 1000)),
    (rope("yarn", THETA, **YARN), 32),
    (rope("yarn", THETA, **YARN, beta_fast=8.0, beta_slow=2.0), 32),
    (rope("yarn", THETA, **YARN, attention_factor=0.75), 32),
    (rope("yarn", THETA, **YARN, mscale=1.0, mscale_all_dim=0.5), 32),
    (rope("yarn", THETA, **YARN, mscale=1.0), 32),
    (rope("yarn", THETA, **YARN, truncate=False), 32),
    (rope("yarn", THETA, factor=4.0), 32),
    (rope("llama3", 500000.0, **LLAMA3), 32),
    (rope("llama3", 500.0, **LLAMA3), 32),
    ({"rope_theta": 1000.0, "rope_scaling": {"type": "linear", "factor": 3.0}}, 32),
    ({"rope_theta": 1000.0, "rope_scaling": {"rope_type": "yarn", "type": "linear", "factor": 3.0}}, 32),
    ({"rope_theta": 1000.0, "rope_parameters": {"rope_theta": 2000.0}}, 32),
    ({"rope_theta": 1000.0, "rope_scaling": None}, 32),
]


def frequencies():
    """Of heads with 32 features, and at most 256 positions."""
    results = []
    for fields, length in ROPES:
        shape = {"hidden_size": 64, "num_attention_heads": 2, "max_position_embeddings": 256}
        config = AutoConfig.for_model("llama", **shape, **copy.deepcopy(fields))
        embedding = LlamaRotaryEmbedding(config)
        embedding(torch.zeros(1), torch.arange(length)[None])
        results.append({"fields": {"head_dim": 32, "max_position_embeddings": 256, **fields}, "length": length,
                        "attention_factor": embedding.attention_scaling, "frequencies": embedding.inv_freq.tolist()})
    return results


def check_frequencies(found, committed):
    if [(each["fields"], each["length"]) for each in found] != [(each["fields"], each["length"]) for each in committed]:
        return ["rope.json: other cases"]
    pairs = [([one["attention_factor"], *one["frequencies"]], [two["attention_factor"], *two["frequencies"]])
             for one, two in zip(found, committed, strict=True)]
    near = [all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(*pair, strict=True)) for pair in pairs]
    return [f"rope.json: {case['fields']} differs" for case, same in zip(found, near, strict=True) if not same]


def seed_of(case):
    cases = list(CASES)
    first = sorted(cases[:22])  # that there were before
    return first.index(case) if case in first else cases.index(case)


def draw_weights(model, seed):
    """Weights that are far from those of an untrained model: every term shows in the results."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(0.0, 0.25, generator=generator)
            if weight.dim() == 1 and name.endswith("weight"):
                weight.add_(1.0)


def records(config, seed):
    generator = torch.Generator().manual_seed(seed + 1000)
    padding = config.pad_token_id or 0
    result = []
    for length in (LENGTH, LENGTH, *PADDED):
        ids = torch.randint(VOCABULARY, (length,), generator=generator).tolist()
        if config.pad_token_id is not None:
            ids[5] = config.pad_token_id
        result.append({"input_ids": ids})
    for number, record in enumerate(result[2:]):
        ids = record["input_ids"]
        missing = LENGTH - len(ids)
        labels = [-100] * PROMPT + ids[PROMPT:] if number == len(PADDED) - 1 else ids
        record["attention_mask"] = [1] * len(ids) + [0] * missing
        record["labels"] = labels + [-100] * missing
        record["input_ids"] = ids + [padding] * missing
    return result


def write_model(case, folder):
    seed = seed_of(case)
    fields = CASES[case]
    config = AutoConfig.for_model(case.split("-")[0], **copy.deepcopy(fields))  # it writes into what it is given
    kind = AutoModel if case == "gpt2-bare" else AutoModelForCausalLM
    model = kind.from_config(config, dtype=torch.float32)
    draw_weights(model, seed)
    if case == "llama-version4-sharded":
        model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="8KB")
        older = {**fields, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
                 "initializer_range": 0.02, "pretraining_tp": 1, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
                 "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "use_cache": True,
                 "transformers_version": "4.46.3"}
        (folder / "config.json").write_text(json.dumps(older, indent=2, sort_keys=True) + "\n")
    else:
        model.save_pretrained(folder)
    lines = [json.dumps(record) for record in records(config, seed)]
    (folder / "ids.jsonl").write_text("\n".join(lines) + "\n")


def read_batches(ids):
    lines = [json.loads(line) for line in ids.read_text().splitlines()]
    for name, chosen in [("unpadded", [r for r in lines if "attention_mask" not in r]),
                         ("padded", [r for r in lines if "attention_mask" in r])]:
        if not chosen:
            continue
        batch = {"input_ids": torch.tensor([r["input_ids"] for r in chosen]),
                 "labels": torch.tensor([r.get("labels", r["input_ids"]) for r in chosen])}
        if name == "padded":
            batch["attention_mask"] = torch.tensor([r["attention_mask"] for r in chosen])
        yield name, batch


def expected_results(folder, attention="eager"):
    results = {}
    for name, batch in read_batches(folder / "ids.jsonl"):
        # A model each: the dynamic kind of rope remembers the longest text.
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).train()
        optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
        for step in range(STEPS):
            output = model(**batch, use_cache=False)
            optimizer.zero_grad()
            output.loss.backward()
            if step == 0:
                results[f"{name}/logits"] = output.logits.detach()
                results[f"{name}/loss"] = output.loss.detach()
                gradients = {key: weight.grad.clone() for key, weight in model.named_parameters()}
            optimizer.step()
        bound = ROUNDING * max(gradient.abs().max() for gradient in gradients.values())
        for key, weight in model.named_parameters():
            gradient = gradients[key]
            results[f"{name}/grad/{key}"] = gradient
            rounding = (gradient != 0) & (gradient.abs() < bound)
            results[f"{name}/after/{key}"] = weight.detach().masked_fill(rounding, math.nan)
    return results


def difference(found, committed):
    """Of the largest entry. NaN stands for what is not compared."""
    if found.shape != committed.shape or found.dtype != committed.dtype:
        return math.inf
    compared = ~(found.isnan() | committed.isnan())
    if not compared.any():
        return 0.0
    found, committed = found[compared].double(), committed[compared].double()
    return ((found - committed).abs().max() / committed.abs().max().clamp(min=1e-30)).item()


def check_tensors(what, found, committed, bound=1e-5):
    if found.keys() != committed.keys():
        return [f"{what}: other names: {sorted(found.keys() ^ committed.keys())}"]
    differences = {key: difference(found[key], committed[key]) for key in found}
    return [f"{what}: {key} differs by {value:.1e}" for key, value in differences.items() if not value <= bound]


def check(case, folder):
    errors = []
    with tempfile.TemporaryDirectory() as again:
        again = pathlib.Path(again)
        write_model(case, again)
        names = {path.name for path in again.iterdir()}
        committed = {path.name for path in folder.iterdir()} - {"expected.safetensors"}
        errors += [f"{case}: not both made and committed: {name}" for name in sorted(names ^ committed)]
        for name in sorted(names & committed):
            if name.endswith(".safetensors"):
                errors += check_tensors(f"{case}/{name}", load_file(again / name), load_file(folder / name))
            elif (again / name).read_text() != (folder / name).read_text():
                errors.append(f"{case}/{name} differs")
    return errors + check_tensors(case, expected_results(folder), load_file(folder / "expected.safetensors"))


def main(words):
    torch.set_num_threads(1)
    disable_progress_bar()
    errors = []
    rope_file = MODELS.parent / "rope.json"
    if "--check" in words:
        errors += check_frequencies(frequencies(), json.loads(rope_file.read_text()))
    else:
        rope_file.write_text("[\n" + ",\n".join(json.dumps(each) for each in frequencies()) + "\n]\n")
    for case in [word for word in words if word != "--check"] or CASES:
        folder = MODELS / case
        if "--check" in words:
            errors += check(case, folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_model(case, folder)
            save_file(expected_results(folder), folder / "expected.safetensors")
    print("\n".join(errors) or "done")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
