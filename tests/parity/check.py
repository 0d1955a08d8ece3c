"""Loads a folder that roux exported into Transformers, and compares the logits.

usage: check.py FOLDER LOGITS [IDS]

LOGITS is a safetensors file of roux with `unpadded/logits` and `padded/logits`, those of the records without and with
an attention_mask in IDS (FOLDER/ids.jsonl). Where there is no such file, it gets the logits of Transformers.
"""

import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

from make import difference, read_batches

ALLOWED = 1e-5  # of the largest logit


def main(folder, logits, ids=None):
    disable_progress_bar()
    folder, logits = pathlib.Path(folder), pathlib.Path(logits)
    model, loading = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                          output_loading_info=True)
    errors = [f"{what}: {names}" for what, names in loading.items() if names]
    found = {}
    with torch.no_grad():
        for name, batch in read_batches(pathlib.Path(ids) if ids else folder / "ids.jsonl"):
            del batch["labels"]
            found[f"{name}/logits"] = model.eval()(**batch, use_cache=False).logits
    if not logits.exists():
        save_file(found, logits)
    of_roux = load_file(logits)
    if not found.keys() <= of_roux.keys():
        errors.append(f"{logits} lacks {sorted(found.keys() - of_roux.keys())}")
    for name in found.keys() & of_roux.keys():
        value = difference(of_roux[name].float(), found[name])
        print(f"{name}: {value:.1e} of the largest logit apart")
        if not value <= ALLOWED:
            errors.append(f"{name} is more than {ALLOWED} apart")
    print("\n".join(errors) or "done")
    return 1 if errors else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
