#!/usr/bin/env python3
"""Compares the logits that roux computed with those of the folder that it exported, read by Transformers.

usage: check.py FOLDER IDS.jsonl LOGITS.safetensors

Each record of the ids file, {"input_ids": [...]}, goes through the model alone, in float32. LOGITS.safetensors holds
`logits`, [records, positions, ids], or else a tensor for each record in the order of the numbers in their names, [positions,
ids] or [1, positions, ids]; positions beyond a record's ids are not looked at. Run by the Python of tests/parity/setup;
exits 1 when one differs by more than 1e-5 of the record's largest logit.
"""

import copy
import json
import pathlib
import re
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

TOLERANCE = 1e-5


def numbers_first(name):
    """Sorts record.2 before record.10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def logits_of(path):
    tensors = load_file(path)
    together = tensors.get("logits")
    if together is not None:
        return list(together if together.dim() == 3 else together[None])
    return [tensors[name][0] if tensors[name].dim() == 3 else tensors[name] for name in sorted(tensors, key=numbers_first)]


def difference(ours, theirs):
    """Of two [positions, ids], as a part of the largest logit; text where they cannot be compared."""
    if ours.dim() != 2 or ours.shape[0] < theirs.shape[0] or ours.shape[1] != theirs.shape[1]:
        return f"logits of shape {tuple(ours.shape)} for {tuple(theirs.shape)}"
    distance = (ours[:theirs.shape[0]].double() - theirs.double()).abs().max().item()
    part = distance / theirs.abs().max().item()
    return None if part <= TOLERANCE else f"differs by {part:.1e} of the largest logit"  # NaN differs


def main(words):
    if len(words) != 3:
        print("usage: check.py FOLDER IDS.jsonl LOGITS.safetensors", file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    folder, ids, logits = map(pathlib.Path, words)
    model, loading = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                          output_loading_info=True)
    wrong = [f"{kind.replace('_', ' ')}: {', '.join(map(str, sorted(names)))}" for kind, names in loading.items() if names]
    records = [json.loads(line)["input_ids"] for line in ids.read_text().splitlines() if line.strip()]
    ours = logits_of(logits)
    if len(ours) != len(records):
        wrong.append(f"logits of {len(ours)} records, ids of {len(records)}")
    for at, (record, mine) in enumerate(zip(records, ours)):
        with torch.no_grad():  # a copy: dynamic scaling remembers the longest text
            theirs = copy.deepcopy(model).eval()(input_ids=torch.tensor([record]), use_cache=False).logits[0]
        text = difference(mine, theirs)
        wrong += [f"record {at}: {text}"] if text else []
    for text in wrong:
        print(text)
    print(f"{len(records)} records, {len(wrong)} differences")
    return 1 if wrong or not records else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
