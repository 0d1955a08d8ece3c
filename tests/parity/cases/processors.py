"""Records what Transformers' processors of logits make of some logits, for tests/components/generation.

usage: processors.py [OUTPUT]

OUTPUT is tests/components/generation/recorded/processors.json when not given. The processors are those that `generate()`
itself would build (GenerationMixin._get_logits_processor), so their order is the library's. Of all pairs of a row and a
combination of settings the ids that stay are recorded, of every fifth pair also their probabilities.

Which of several equal logits top_p leaves out depends on torch.sort, which on a CPU is stable or not by the processor's
instructions. Here it is asked to be stable, and torch.topk, by which min_p keeps several, takes the first of equal ones.
"""

import functools
import json
import pathlib
import random
import sys
import types
import warnings

import torch
import transformers
from transformers import GenerationConfig, GenerationMixin

HERE = pathlib.Path(__file__).resolve().parents[3] / "tests/components/generation/recorded/processors.json"
VOCABULARY, ROWS, UNIT = 256, 50, 1024
EVERY = 5  # pair with probabilities
DIGITS = 1_000_000

COMBINATIONS = [
    {"temperature": 0.7, "top_k": 50},
    {"temperature": 0.7, "top_p": 0.9},
    {"temperature": 1.5, "min_p": 0.05},
    {"temperature": 0.01, "top_k": 5},
    {"temperature": 0.01, "top_p": 0.5},
    {"temperature": 100.0, "top_p": 0.9},
    {"temperature": 100.0, "top_k": 7},
    {"temperature": 50.0, "min_p": 0.9},
    {"top_k": 40, "top_p": 0.95},
    {"top_k": 1, "top_p": 0.1},
    {"top_k": 3, "min_p": 0.2},
    {"top_k": 300, "top_p": 0.3},
    {"top_p": 0.8, "min_p": 0.1},
    {"top_p": 0.001, "min_p": 0.5},
    {"top_p": 0.999, "min_p": 0.001},
    {"repetition_penalty": 1.3, "top_k": 20},
    {"repetition_penalty": 1.3, "top_p": 0.7},
    {"repetition_penalty": 0.8, "min_p": 0.1},
    {"repetition_penalty": 2.0, "temperature": 0.6},
    {"temperature": 0.7, "top_k": 50, "top_p": 0.9},
    {"temperature": 1.2, "top_k": 10, "min_p": 0.05},
    {"temperature": 2.0, "top_p": 0.5, "min_p": 0.01},
    {"top_k": 25, "top_p": 0.6, "min_p": 0.02},
    {"repetition_penalty": 1.1, "temperature": 0.3, "top_k": 8},
    {"repetition_penalty": 1.1, "temperature": 3.0, "top_p": 0.85},
    {"repetition_penalty": 1.5, "top_k": 30, "top_p": 0.9},
    {"temperature": 0.9, "top_k": 60, "top_p": 0.95, "min_p": 0.03},
    {"repetition_penalty": 1.2, "temperature": 0.8, "top_k": 40, "top_p": 0.9},
    {"repetition_penalty": 1.05, "temperature": 0.6, "top_p": 0.95, "min_p": 0.02},
    {"repetition_penalty": 1.15, "temperature": 1.7, "top_k": 100, "top_p": 0.99, "min_p": 0.01},
    # With beams more tokens than the most probable one stay: the number of end tokens and one.
    {"min_kept": 3, "top_k": 2},
    {"min_kept": 2, "top_p": 0.001, "temperature": 0.5},
    {"min_kept": 5, "min_p": 0.9},
    {"min_kept": 4, "top_k": 1, "top_p": 0.1, "min_p": 0.5},
]


def make_row(index, rng):
    """Multiples of 1 / UNIT: smooth, peaked, flat, with ties, all equal."""
    spread = [2.0, 4.0, 8.0, 0.3, 20.0][index % 5]
    values = [rng.gauss(-1.0, spread) for _ in range(VOCABULARY)]
    if index % 7 == 3:  # many ties
        values = [round(value) for value in values]
    if index == 20:
        values = [0.5] * VOCABULARY
    if index == 21:
        values = [3.0 if i % 64 == 5 else -2.0 for i in range(VOCABULARY)]
    if index % 10 == 8:
        values[rng.randrange(VOCABULARY)] = 40.0
    return [round(value * UNIT) for value in values]


def first_of_equal(values, k, dim=-1):
    """torch.topk."""
    found = torch.sort(values, dim=dim, descending=True)
    return torch.return_types.topk((found.values.narrow(dim, 0, k), found.indices.narrow(dim, 0, k)))


def processors(combination, length):
    settings = {"top_k": 0} | combination
    kept = settings.pop("min_kept", None)
    config = GenerationConfig(do_sample=True, num_beams=1 if kept is None else 4, **settings)
    if kept is not None:
        config._eos_token_tensor = torch.arange(kept - 1)
    model = types.SimpleNamespace(config=types.SimpleNamespace(is_encoder_decoder=False))
    model._merge_criteria_processor_list = lambda made, given: made
    return GenerationMixin._get_logits_processor(model, config, input_ids_seq_length=length, device="cpu")


def main():
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    warnings.simplefilter("ignore")
    torch.sort = functools.partial(torch.sort, stable=True)
    torch.topk = first_of_equal
    rng = random.Random(20)
    rows = [make_row(index, rng) for index in range(ROWS)]
    seen = [[rng.randrange(VOCABULARY) for _ in range(30)] + [7, 7, 7] for _ in range(ROWS)]
    kept, probabilities = [], []
    for number, combination in enumerate(COMBINATIONS):
        made = processors(combination, len(seen[0]))
        for index, row in enumerate(rows):
            logits = torch.tensor([row], dtype=torch.float32) / UNIT
            scores = made(torch.tensor([seen[index]]), logits)[0]
            stay = torch.isfinite(scores)
            mask = sum(1 << i for i in range(VOCABULARY) if stay[i])
            kept.append(f"{mask:x}")
            if (number + index) % EVERY == 0:
                softmax = scores.double().softmax(0)
                probabilities.append([round(float(softmax[i]) * DIGITS) for i in range(VOCABULARY) if stay[i]])
    lines = [f' "transformers": "{transformers.__version__}", "unit": {UNIT}, "every": {EVERY}, "digits": {DIGITS}']
    for name, values in (("combinations", COMBINATIONS), ("rows", rows), ("seen", seen), ("kept", kept),
                         ("probabilities", probabilities)):
        body = ",\n".join("  " + json.dumps(value, separators=(",", ":")) for value in values)
        lines.append(f' "{name}": [\n{body}\n ]')
    output.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{output}: {len(kept)} pairs, {len(probabilities)} with probabilities")


main()
