"""Writes adapters of PEFT for models of models/, with results, adapters/CASE/: what roux has to agree with.

usage: make_adapters.py [--check] [CASE...]

--check writes nothing: it computes everything again from the committed
adapters, and compares as make.py does, to 5e-5: the norms of DoRA left
gradients 1.6e-5 apart on two processors.

Each folder is one that PEFT loads, adapter_config.json and adapter_model.safetensors,
and of a case of BESIDE those of its other adapters in folders below. Beside that

  expected.safetensors  logits      of the records without an attention_mask in the model's ids.jsonl
                        loss        as the class has it: of a language model mean over the labels that are not -100
                        grad/NAME   gradient of that loss, of each trained parameter as PEFT names it
                        after/NAME  those after 5 steps of AdamW

and of the cases of PREFERENCES

  preferences.safetensors  sequences   [2 B, T] ids, a chosen and a rejected completion by turns; -1 behind them
                           loss        mean of the sigmoid loss of DPO over the pairs, with PROMPT and BETA
                           rewards     [B, 2] of the chosen and the rejected completion
                           reference   [B, 2] log-probabilities of the model without its adapter
                           grad/NAME   gradient of that loss, as above

and of the cases of QUANTIZED

  quantized.safetensors  the same as expected.safetensors, on weights that bitsandbytes keeps in 4 bits;
                         quantized8.safetensors in 8, with `in_use`, the logits outside of a training

in float32. The configuration's base_model_name_or_path is the folder of the model, from here.
"""

import math
import os
import pathlib
import sys

import torch
from cases.quantized import QUANTIZED, mend_bitsandbytes
from make import ADAMW, MODELS, ROUNDING, STEPS, check_tensors, has_encoder, head_of, read_batches
from make_dpo import sequence_logps
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import BitsAndBytesConfig
from transformers.utils.logging import disable_progress_bar

ADAPTERS = MODELS.parent / "adapters"
CASES = {
    "gpt2-default": ("gpt2-default", {"r": 4, "lora_alpha": 8}),
    "gpt2-all-linear-biases": ("gpt2-untied", {"r": 4, "target_modules": "all-linear", "bias": "all"}),
    "gpt2-dora": ("gpt2-default", {"r": 4, "target_modules": "all-linear", "use_dora": True, "bias": "lora_only"}),
    "gpt2-lora-biases": ("gpt2-default", {"r": 4, "target_modules": ["c_attn", "mlp.c_proj"], "bias": "lora_only"}),
    "llama-default": ("llama-grouped", {"r": 4, "lora_alpha": 16}),
    "llama-all-linear-rslora": ("llama-biases", {"r": 4, "target_modules": "all-linear", "use_rslora": True}),
    "gpt2-modules": ("gpt2-untied", {"r": 4, "modules_to_save": ["lm_head", "ln_2", "mlp.c_fc"]}),
    "llama-modules": ("llama-grouped", {"r": 4, "target_modules": ["q_proj"],
                                        "modules_to_save": ["lm_head", "norm", "embed_tokens"]}),
    "llama-dora": ("llama-grouped", {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj", "down_proj"],
                                     "use_dora": True}),
    "llama-expression": ("llama-grouped", {"r": 2, "target_modules": r".*\.(k_proj|up_proj|down_proj)",
                                           "exclude_modules": ["layers.1.mlp.up_proj"]}),
    "qwen2-dora": ("qwen2-default", {"r": 4, "target_modules": "all-linear", "use_dora": True, "use_rslora": True}),
    "qwen2-one-layer": ("qwen2-default", {"r": 4, "target_modules": ["q_proj", "v_proj", "o_proj", "gate_proj"],
                                          "layers_to_transform": [1]}),
    "qwen2-several": ("qwen2-default", {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj", "up_proj"]}),
    "qwen3-default": ("qwen3-default", {"r": 4}),
    "olmo2-all-linear": ("olmo2-default", {"r": 4, "target_modules": "all-linear"}),
    "granite-all-linear": ("granite-default", {"r": 4, "target_modules": "all-linear"}),
    "smollm3-all-linear": ("smollm3-default", {"r": 4, "target_modules": "all-linear"}),
    "phi3-all-linear": ("phi3-longrope", {"r": 4, "target_modules": "all-linear"}),
    "gemma-modules": ("gemma-default", {"r": 4, "modules_to_save": ["norm"]}),
    "gemma2-dora": ("gemma2-default", {"r": 4, "target_modules": "all-linear", "use_dora": True}),
    "gemma3-default": ("gemma3_text-default", {"r": 4}),
    "llama-head": ("llama-texts", {"r": 4, "lora_alpha": 16}),
    "bert-head": ("bert-texts", {"r": 4}),
    "bert-tags": ("bert-tags", {"r": 4, "target_modules": ["query", "intermediate.dense"]}),
    "roberta-head": ("roberta-texts", {"r": 4}),
    "distilbert-head": ("distilbert-texts", {"r": 4, "target_modules": ["q_lin", "v_lin", "lin1"]}),
    "modernbert-tags": ("modernbert-tags", {"r": 4, "target_modules": ["Wqkv", "mlp.Wo"]}),
    "t5-default": ("t5-default", {"r": 4}),
    "t5-all-linear": ("t5-gated", {"r": 4, "target_modules": "all-linear"}),
    "mixtral-attention": ("mixtral-balanced", {"r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}),
    "qwen3_moe-attention": ("qwen3_moe-sparse", {"r": 4, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
                                                 "use_dora": True}),
    "mixtral-router": ("mixtral-default", {"r": 4, "target_modules": ["q_proj"], "modules_to_save": ["gate"]}),
}
TASKS = {"texts": "SEQ_CLS", "tags": "TOKEN_CLS"}  # by the head of the model's case
BESIDE = {  # more adapters of a case, each in a folder of its name
    "qwen2-several": {"style": {"r": 2, "lora_alpha": 3, "target_modules": ["v_proj", "o_proj", "up_proj"]}},
}
PREFERENCES = ("gpt2-all-linear-biases", "llama-default", "qwen2-one-layer")
PROMPT = 4
BETA = 0.25


def seed_of(case):
    cases = list(CASES)
    first = sorted(cases[:13])  # that there were before; a new one goes to the end
    return first.index(case) if case in first else cases.index(case)


def base_model(name, quantized=None):
    more = {}
    if quantized is not None:
        more["quantization_config"] = BitsAndBytesConfig(**quantized)
    model = head_of(name).from_pretrained(f"models/{name}", dtype=torch.float32, attn_implementation="eager", **more)
    model.config.use_cache = False
    return model


def write_adapter(case, folder):
    base, fields = CASES[case]
    task = "SEQ_2_SEQ_LM" if has_encoder(base) else TASKS.get(base.split("-")[1], "CAUSAL_LM")
    model = get_peft_model(base_model(base), LoraConfig(task_type=task, **fields))
    for name, fields in BESIDE.get(case, {}).items():
        model.add_adapter(name, LoraConfig(task_type=task, **fields))
    generator = torch.Generator().manual_seed(seed_of(case))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_magnitude" in name:
                weight.mul_(torch.empty_like(weight).uniform_(0.5, 1.5, generator=generator))
            elif "lora_" in name:
                weight.normal_(0.0, 0.25, generator=generator)
            elif "modules_to_save" in name and task in TASKS.values():
                weight.normal_(0.0, 0.1, generator=generator)  # another head than the base's
    model.save_pretrained(folder)
    for readme in folder.rglob("README.md"):
        readme.unlink()


def expected_results(case, folder, quantized=None):
    base, _ = CASES[case]
    model = PeftModel.from_pretrained(base_model(base, quantized), folder, is_trainable=True).train()
    in_use = {}
    if quantized and "load_in_8bit" in quantized:
        with torch.no_grad():
            in_use["in_use"] = model.eval()(**dict(read_batches(MODELS / base / "ids.jsonl"))["unpadded"]).logits
        model.train()
    for name in BESIDE.get(case, {}):
        model.load_adapter(folder / name, name, is_trainable=True)
    if case in BESIDE:
        model.base_model.set_adapter(["default", *BESIDE[case]])
    batch = dict(read_batches(MODELS / base / "ids.jsonl"))["unpadded"]
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    optimizer = torch.optim.AdamW(trained.values(), **ADAMW)
    results = {}
    for step in range(STEPS):
        output = model(**batch)
        optimizer.zero_grad()
        output.loss.backward()
        if step == 0:
            results = {"logits": output.logits.detach(), "loss": output.loss.detach()}
            results |= {f"grad/{name}": weight.grad.clone() for name, weight in trained.items()}
        optimizer.step()
    return results | in_use | {f"after/{name}": weight.detach().clone() for name, weight in trained.items()}


def completion_logps(model, ids):
    logits = model(input_ids=ids.unsqueeze(0)).logits[0]
    return sequence_logps(logits, torch.eye(logits.shape[-1]), ids, PROMPT).sum()


def preference_results(case, folder):
    base, _ = CASES[case]
    model = PeftModel.from_pretrained(base_model(base), folder, is_trainable=True).train()
    one, other, *_ = dict(read_batches(MODELS / base / "ids.jsonl"))["unpadded"]["input_ids"]
    sequences = []
    for chosen, rejected in ((one, other), (other[:PROMPT + 1], one[:-2])):
        sequences += [chosen, torch.cat([chosen[:PROMPT], rejected[PROMPT:]])]
    logps = torch.stack([completion_logps(model, ids) for ids in sequences]).view(-1, 2)
    with torch.no_grad(), model.disable_adapter():
        reference = torch.stack([completion_logps(model, ids) for ids in sequences]).view(-1, 2)
    chosen, rejected = (BETA * (logps - reference)).unbind(1)
    losses = -torch.nn.functional.logsigmoid(chosen - rejected)
    chosen, rejected = chosen.detach(), rejected.detach()
    losses.mean().backward()
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    padded = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=-1)
    return {"sequences": padded, "loss": losses.mean().detach(), "rewards": torch.stack([chosen, rejected], 1).detach(),
            "reference": reference, **{f"grad/{name}": weight.grad for name, weight in trained.items()}}


def files_of(case, folder):
    """What is computed, by the name of its file."""
    files = {"expected.safetensors": expected_results(case, folder)}
    for name, fields in QUANTIZED.get(case, {}).items():
        files[f"{name}.safetensors"] = expected_results(case, folder, fields)
    if case in PREFERENCES:
        files["preferences.safetensors"] = preference_results(case, folder)
    return files


def without_rounding(results):
    """AdamW turns a gradient that is but rounding into steps of any size: what they lead to is not compared."""
    gradients = {key: value for key, value in results.items() if key.startswith("grad/")}
    bound = ROUNDING * max(value.abs().max() for value in gradients.values())
    for key, gradient in gradients.items():
        after = key.replace("grad/", "after/", 1)
        if after in results:
            rounding = (gradient != 0) & (gradient.abs() < bound)
            results[after] = results[after].masked_fill(rounding, math.nan)
    return results


def main(words):
    torch.set_num_threads(1)
    disable_progress_bar()
    mended = mend_bitsandbytes()  # as long as it lives
    os.chdir(MODELS.parent)
    errors = []
    for case in [word for word in words if word != "--check"] or sorted(CASES):
        folder = ADAPTERS / case
        if "--check" not in words:
            folder.mkdir(parents=True, exist_ok=True)
            write_adapter(case, folder)
            for name, results in files_of(case, folder).items():
                save_file(results, folder / name)
        else:
            for name, results in files_of(case, folder).items():
                errors += check_tensors(f"{case}/{name}", without_rounding(results), load_file(folder / name), 5e-5)
    print("\n".join(errors) or "passed")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
