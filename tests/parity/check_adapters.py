"""Compares adapters that roux read and wrote with PEFT.

usage: check_adapters.py ADAPTER EXPORTED MERGED LOGITS

ADAPTER    folder of tests/parity/adapters that roux began from
EXPORTED   the same adapter as `roux export` wrote it: its tensors are equal, its configuration has the fields of the
           installed PEFT, which loads it
MERGED     as `roux merge-adapter` wrote it: the weights are those of PEFT's merge_and_unload
LOGITS     of `roux predict --return logits`, a tensor for each record: those of PEFT with EXPORTED
"""

import json
import pathlib
import sys

import torch
import transformers
from check import by_batch, without_labels
from make import difference, read_batches
from peft import LoraConfig, PeftModel
from safetensors.torch import load_file
from transformers.utils.logging import disable_progress_bar

LOGITS, WEIGHTS = 1e-5, 1e-6  # of the largest logit, and of a weight


def model_of(folder):
    kind = getattr(transformers, json.loads((pathlib.Path(folder) / "config.json").read_text())["architectures"][0])
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.config.use_cache = False
    return model


def check_tensors(adapter, exported):
    there, here = (load_file(folder / "adapter_model.safetensors") for folder in (adapter, exported))
    errors = [f"only one has {name}" for name in sorted(there.keys() ^ here.keys())]
    return errors + [f"{name} differs" for name in there.keys() & here.keys() if not torch.equal(there[name], here[name])]


def check_fields(exported):
    written = json.loads((exported / "adapter_config.json").read_text()).keys()
    return [f"field {name} of one only" for name in sorted(written ^ LoraConfig().to_dict().keys())]


def check_logits(model, logits, ids):
    errors, of_roux = [], by_batch(load_file(logits), ids)
    for name, batch in read_batches(ids):
        with torch.no_grad():
            wanted = model(**without_labels(model, batch)).logits
        off = difference(of_roux[f"{name}/logits"], wanted)
        if not off <= LOGITS:
            errors.append(f"logits of {name} differ by {off}")
    return errors


def check_weights(wanted, found):
    errors = []
    for name, weight in wanted.items():
        off = (weight - found[name]).abs().max().item()
        if not off <= WEIGHTS:
            errors.append(f"merged {name} differs by {off}")
    return errors


def main(adapter, exported, merged, logits):
    torch.set_num_threads(1)
    disable_progress_bar()
    adapter, exported = pathlib.Path(adapter), pathlib.Path(exported)
    config = json.loads((adapter / "adapter_config.json").read_text())
    base = pathlib.Path(__file__).parent / config["base_model_name_or_path"]
    errors = check_tensors(adapter, exported) + check_fields(exported)
    model = PeftModel.from_pretrained(model_of(base), exported).eval()
    errors += check_logits(model, logits, base / "ids.jsonl")
    errors += check_weights(model.merge_and_unload().state_dict(), model_of(merged).state_dict())
    print("\n".join(errors) or "passed")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
