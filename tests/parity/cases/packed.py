"""Writes models of models/ as Transformers saves them when bitsandbytes keeps their weights, packed/CASE/.

usage: packed.py [--check] [CASE...]

--check writes nothing, and compares what the committed folders compute with what they record.

Beside the folder that save_pretrained wrote, without what a tokenizer or generation needs:

  ids.jsonl             of the model
  expected.safetensors  logits  in a training, of the records without an attention_mask in ids.jsonl
                        loss    mean over the labels that are not -100
                        in_use  the logits outside of one, of 8 bits
"""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import torch
from cases.quantized import FP4, NF4, TWICE, mend_bitsandbytes
from make import MODELS, check_tensors, head_of, read_batches
from safetensors.torch import load_file, save_file
from transformers import BitsAndBytesConfig
from transformers.utils.logging import disable_progress_bar

PACKED = MODELS.parent / "packed"
CASES = {  # by name: the model, BitsAndBytesConfig's fields, and bytes of a shard
    "gpt2-fp4": ("gpt2-default", FP4 | {"bnb_4bit_quant_storage": torch.bfloat16}, "5GB"),
    "llama-int8": ("llama-biases", {"load_in_8bit": True}, "5GB"),
    "llama-nf4-twice": ("llama-grouped", TWICE, "5GB"),
    "phi3-nf4": ("phi3-default", NF4, "5GB"),
    "qwen2-nf4-shards": ("qwen2-default", NF4 | {"llm_int8_skip_modules": ["lm_head", "model.layers.1.mlp"]}, "12KB"),
}


def load(folder, name, **more):
    model = head_of(name).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **more)
    model.config.use_cache = False
    return model


def results_of(folder, name):
    model = load(folder, name)
    batch = dict(read_batches(MODELS / name / "ids.jsonl"))["unpadded"]
    with torch.no_grad():
        output = model.train()(**batch)
        results = {"logits": output.logits, "loss": output.loss}
        if model.config.quantization_config.load_in_8bit:
            results["in_use"] = model.eval()(**batch).logits
    return results


def write(case):
    name, fields, shard = CASES[case]
    folder = PACKED / case
    shutil.rmtree(folder, ignore_errors=True)
    load(MODELS / name, name, quantization_config=BitsAndBytesConfig(**fields)).save_pretrained(
        folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    shutil.copy(MODELS / name / "ids.jsonl", folder)
    save_file(results_of(folder, name), folder / "expected.safetensors")


def main(words):
    torch.set_num_threads(1)
    disable_progress_bar()
    mended = mend_bitsandbytes()  # as long as it lives
    os.chdir(MODELS.parent)
    errors = []
    for case in [word for word in words if word != "--check"] or sorted(CASES):
        if "--check" not in words:
            write(case)
        else:
            found, committed = results_of(PACKED / case, CASES[case][0]), load_file(PACKED / case / "expected.safetensors")
            errors += check_tensors(case, found, committed, 5e-5)
    print("\n".join(errors) or "passed")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
