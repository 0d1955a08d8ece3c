"""Fine-tuning with parameters divided among processes: the losses of one process, and an export that Transformers and
PEFT load with the same logits.

usage: sharded.py ROUX FOLDER [--processes 2] [--steps 10] [--length 64] [--r 16]

FOLDER  a Transformers folder, such as SmolLM2-135M

The whole model and LoRA of all linear layers, each in float32 and bf16-mixed. Records hold ids drawn at random.
In float32 losses may be apart by what the order of sums leaves, 1e-5 of the loss; in bf16-mixed the sharded ones may be 1.5
times as far from the float32 curve as those of one process. Logits are those of
`roux predict` on one process in float32, to 1e-4 of the largest: the export holds what the training had gathered.
"""
import argparse
import json
import math
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

import torch
from make import difference
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

BATCH, RECORDS_COMPARED, LOGITS = 4, 4, 1e-4
MODES, LOSSES, FURTHER = ("32-true", "bf16-mixed"), 1e-5, 1.5
RECIPE = """
recipe_version: 1
init_from: {folder}
data: {{train: {{type: ids, path: ids.jsonl}}}}
loader: {{shuffle: false}}
logging_steps: 1
seed: 7
training: {{max_steps: {steps}, global_batch_size: {batch}}}
optimizer: {{type: adamw, lr: {rate}}}
"""
ADAPTERS = "adapters=[{{type: lora, r: {0}, lora_alpha: {1}, target_modules: all-linear}}]"


def roux(program, work, *words):
    done = subprocess.run([program, *map(str, words)], cwd=work, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"roux {' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def trained(program, work, name, processes, micro_batch, sets):
    """The losses of a run, and what it was given, for the commands that follow."""
    sets = [*sets, f"launch.num_processes={processes}", f"training.micro_batch_size={micro_batch}"]
    if processes > 1:
        sets.append("parallelism.shard=parameters")
    words = [word for one in sets for word in ("--set", one)]
    roux(program, work, "run", "recipe.yaml", "--quiet", "--set", f"run_name={name}", *words)
    (folder,) = work.glob(f"runs/{name}-*")
    with sqlite3.connect(f"file:{folder}/run.db?mode=ro", uri=True) as database:
        return [value for value, in database.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = 'loss' ORDER BY m.step")]


def exported_logits(work, folder, base, ids):
    if (folder / "adapter_config.json").exists():
        model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), folder)
    else:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor(ids)).logits


def compare(a, work, ids, mode, with_adapters, float32):
    """`float32`: the losses of one process in it are kept there, for the other mode."""
    name = f"{'lora' if with_adapters else 'whole'}-{mode.partition('-')[0]}"
    adapters = [ADAPTERS.format(a.r, 2 * a.r)] if with_adapters else []
    sets = [f"precision.mode={mode}", *adapters]
    # Products in bfloat16 are rounded otherwise with another number of rows: both take as many at a time.
    micro_batch = BATCH // a.processes
    one = trained(a.roux, work, f"{name}-one", 1, micro_batch, sets)
    many = trained(a.roux, work, f"{name}-sharded", a.processes, micro_batch, sets)
    if mode == MODES[0]:
        float32[with_adapters] = one
        apart, limit = max(abs(x - y) / x for x, y in zip(one, many)), LOSSES
        what = f"apart by {apart:.1e} of them (at most {limit:.0e})"
    else:
        far = [max(abs(x - y) for x, y in zip(losses, float32[with_adapters])) for losses in (one, many)]
        # Where a processor has no bfloat16, both may be the float32 curve itself.
        apart, limit = (far[1] / far[0] if far[0] else 1 if far[1] == 0 else math.inf), FURTHER
        what = f"{apart:.2f} times as far from the float32 curve (at most {limit})"
    roux(a.roux, work, "export", f"{name}-sharded", f"{name}-out")
    roux(a.roux, work, "predict", "first.yaml", *(word for one in adapters for word in ("--set", one)), "--checkpoint",
         next(work.glob(f"runs/{name}-sharded-*/checkpoints/step-*")), "--data", "train", "--return", "logits", "--output",
         f"{name}.safetensors")
    found = load_file(work / f"{name}.safetensors")
    found = torch.stack([found[str(i)] for i in range(RECORDS_COMPARED)])
    off = difference(found, exported_logits(work, work / f"{name}-out", a.folder, ids[:RECORDS_COMPARED]))
    good = len(one) == len(many) == a.steps and apart <= limit and off <= LOGITS
    print(f"{'whole model' if not with_adapters else 'LoRA'}, {mode}: losses {one[0]:.6f} to {one[-1]:.6f} on one process, "
          f"{many[0]:.6f} to {many[-1]:.6f} on {a.processes}, {what}; "
          f"logits of the export {off:.1e} apart (at most {LOGITS:.0e}): {'holds' if good else 'FAILED'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roux")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--r", type=int, default=16)
    a = parser.parse_args()
    a.folder = a.folder.resolve()
    disable_progress_bar()
    vocabulary = json.loads((a.folder / "config.json").read_text())["vocab_size"]
    drawn = random.Random(1)
    ids = [[drawn.randrange(vocabulary) for _ in range(a.length)] for _ in range(BATCH * a.steps)]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        recipe = RECIPE.format(folder=a.folder, steps=a.steps, batch=BATCH, rate=1.0e-4)
        (work / "recipe.yaml").write_text(recipe)
        (work / "first.yaml").write_text(recipe.replace("ids.jsonl", "first.jsonl"))
        for name, rows in (("ids", ids), ("first", ids[:RECORDS_COMPARED])):
            (work / f"{name}.jsonl").write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in rows))
        float32 = {}
        held = [compare(a, work, ids, mode, adapters, float32) for adapters in (False, True) for mode in MODES]
    return 0 if all(held) else 1


sys.exit(main())
