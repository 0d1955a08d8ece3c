"""Folders over which roux wrote in many orders: Transformers and PEFT read from each what was written last.

usage: folders.py ROUX [--json FILE]

Models of gpt2 and llama and adapters of both are trained for two steps. Each order of `export`, `export --merge`,
`merge-adapter`, `merge-weights` and of runs that a resume ends with another `checkpoint.export` writes into one folder,
with --force. After each write the logits are those of `roux predict`, to 1e-5 of the largest, and the folder holds the
files of a fresh one of that kind and no other. Before the last write of an order a process that makes it is killed, at
a moment of its own for each order: the folder is the one before or the new one.
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import torch
from check import by_batch
from make import difference, read_batches
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

HERE = pathlib.Path(__file__).resolve().parent
LOGITS = 1e-5  # of the largest
MODELS = {"gpt2": HERE / "models/gpt2-default", "llama": HERE / "models/llama-grouped"}
RECIPE = """
run_name: {name}
init_from: {model}
data: {{train: {{type: ids, path: {model}/ids.jsonl}}}}
optimizer: {{type: adamw, lr: 0.01}}
training: {{max_steps: 2, micro_batch_size: 5}}
"""
LORA = "adapters: [{{type: lora, r: 4, target_modules: all-linear}}]\n"
# What is written, by a letter: the kind of weights and the words of the command before --force. OUT is the folder.
WRITES = {
    "G": ("gpt2", "model", "export gpt2 OUT"),
    "g": ("gpt2", "model", "export gpt2 OUT --max-shard-size 20KB"),
    "A": ("gpt2-lora", "adapter", "export gpt2-lora OUT"),
    "M": ("gpt2-lora", "model", "export gpt2-lora OUT --merge"),
    "P": ("gpt2-lora", "model", "merge-adapter gpt2-adapter OUT"),
    "L": ("llama", "model", "export llama OUT --max-shard-size 10KB"),
    "B": ("llama-lora", "adapter", "export llama-lora OUT"),
    "N": ("llama-lora", "model", "export llama-lora OUT --merge"),
    "Q": ("llama-lora", "model", "merge-adapter llama-adapter OUT --dtype float32"),
    "W": ("llama", "weights", "merge-weights llama OUT"),
}
ORDERS = ["AM", "MA", "AP", "PA", "GA", "AG", "gG", "Gg", "LG", "GL", "BM", "AN", "gQ", "LA", "WG", "LW", "AMA", "MAP",
          "gALM", "BNLWA"]
RESUMED = [("gpt2-lora", "transformers", "merged"), ("gpt2-lora", "merged", "transformers"),
           ("llama-lora", "transformers", "merged")]


def call(program, work, *words, expected=0):
    done = subprocess.run([program, *map(str, words)], cwd=work, capture_output=True, text=True)
    if done.returncode != expected:
        raise SystemExit(f"roux {' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr


def last_of(work, name):
    return max(work.glob(f"runs/{name}-[0-9]*/checkpoints/step-*"))


def contents(folder):
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(folder.rglob("*")) if file.is_file()}


def logits_off(folder, kind, run, work):
    """Of what the folder's own library reads from it, from those that roux predicts with the run."""
    model = MODELS[run.split("-")[0]]
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    if kind == "adapter":
        read = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model, **options), folder)
    else:
        read, told = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **options)
        assert not any(told.values()), f"{folder}: {told}"
        assert not getattr(read, "_hf_peft_config_loaded", False), f"{folder}: an adapter is applied"
    ids, off = model / "ids.jsonl", 0.0
    of_roux = by_batch(load_file(work / f"{run}.logits.safetensors"), ids)
    for name, batch in read_batches(ids):
        del batch["labels"]
        with torch.no_grad():
            off = max(off, difference(of_roux[f"{name}/logits"].float(), read.eval()(**batch, use_cache=False).logits))
    return off


def check(folder, letter, work):
    run, kind, _ = WRITES[letter]
    fresh = contents(work / f"fresh-{letter}")
    assert contents(folder) == fresh, f"{folder} after {letter}: {sorted(contents(folder))}, not {sorted(fresh)}"
    return 0.0 if kind == "weights" else logits_off(folder, kind, run, work)


def words_of(letter, out):
    return [out if word == "OUT" else word for word in WRITES[letter][2].split()]


def killed(program, work, out, letter, part):
    """A process that is killed after that part of the time that it takes."""
    words = [program, *map(str, words_of(letter, out)), "--force"]
    began = time.monotonic()
    spare = work / "spare"
    call(program, work, *words_of(letter, spare))
    took = time.monotonic() - began
    shutil.rmtree(spare)
    process = subprocess.Popen(words, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(took * part)
    process.kill()
    process.wait()


def prepare(program, work):
    for family, model in MODELS.items():
        for name, more in ((family, ""), (f"{family}-lora", LORA)):
            (work / f"{name}.yaml").write_text((RECIPE + more).format(name=name, model=model))
            call(program, work, "run", f"{name}.yaml", "--quiet")
            call(program, work, "predict", f"{name}.yaml", "--checkpoint", last_of(work, name), "--data", "train",
                 "--return", "logits", "--output", f"{name}.logits.safetensors")
        call(program, work, "export", f"{family}-lora", f"{family}-adapter")
    for letter in WRITES:
        call(program, work, *words_of(letter, f"fresh-{letter}"))


def run_orders(program, work):
    rows = []
    for number, order in enumerate(ORDERS):
        out, row = work / "out", {"order": order, "logits_off": []}
        for place, letter in enumerate(order):
            if 0 < place == len(order) - 1:
                before = contents(out)
                killed(program, work, out, letter, (number + 1) / (len(ORDERS) + 1))
                is_old = contents(out) == before
                assert is_old or contents(out) == contents(work / f"fresh-{letter}"), f"{order}: killed between"
                row["killed"] = "old" if is_old else "new"
            call(program, work, *words_of(letter, out), *(["--force"] if place else []))
            row["logits_off"].append(check(out, letter, work))
        assert max(row["logits_off"]) <= LOGITS, row
        assert not list(work.glob(".out*")) and not list(work.glob("out.*")), f"{order}: a draft is left"
        (out / "README.md").write_text("mine")
        there = contents(out)
        for other in "GAW":
            call(program, work, *words_of(other, out), "--force", expected=2)
            assert contents(out) == there, f"{order}: touched"
        shutil.rmtree(out)
        rows.append(row)
    return rows


def run_resumed(program, work):
    rows = []
    for number, (run, first, second) in enumerate(RESUMED):
        name, steps = f"resumed-{number}", 2
        call(program, work, "run", f"{run}.yaml", "--quiet", "--new", "--set", f"run_name={name}", "--set",
             f"checkpoint.export={first}")
        (folder,) = work.glob(f"runs/{name}-*/export")
        row = {"resumed": run, "export": [first, second], "logits_off": []}
        for export in (first, second):
            if steps > 2:
                call(program, work, "resume", name, "--checkpoint", "last", "--quiet", "--set",
                     f"checkpoint.export={export}", "--set", f"training.max_steps={steps}")
            call(program, work, "predict", f"{run}.yaml", "--checkpoint", last_of(work, name), "--data", "train",
                 "--return", "logits", "--output", f"{run}-{name}.logits.safetensors")
            kind = "model" if export == "merged" else "adapter"
            letter = next(one for one, (of, what, _) in WRITES.items() if (of, what) == (run, kind))
            assert contents(folder).keys() == contents(work / f"fresh-{letter}").keys(), f"{name}: {contents(folder)}"
            row["logits_off"].append(logits_off(folder, kind, f"{run}-{name}", work))
            steps += 2
        assert max(row["logits_off"]) <= LOGITS, row
        rows.append(row)
    return rows


def machine(program):
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    about = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.partition(":")[2].strip() for line in about if line.startswith("model name")), "")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return {"commit": commit.strip(), "processor": processor, "program": version.strip()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roux")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    disable_progress_bar()
    program = str(pathlib.Path(arguments.roux).resolve())
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prepare(program, work)
        rows = run_orders(program, work) + run_resumed(program, work)
    if arguments.json:
        text = ",\n  ".join(json.dumps(row) for row in rows)
        head = json.dumps(machine(program))[1:-1]
        pathlib.Path(arguments.json).write_text(f'{{{head},\n "orders": [\n  {text}]}}\n')
    print(f"{len(rows)} orders passed")


if __name__ == "__main__":
    sys.exit(main())
