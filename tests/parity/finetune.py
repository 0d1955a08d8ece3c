"""Fine-tuning on conversations in roux and in Transformers: the same losses, step by step, in float32.

usage: finetune.py ROUX FOLDER CONVERSATIONS.tsv [--steps 50] [--records 2000]

FOLDER             SmolLM2-135M with its tokenizer and chat template
CONVERSATIONS.tsv  the MRPC table: pairs of sentences, of which one paraphrases the other

The Python side is a plain loader: it renders each record with apply_chat_template, marks what the assistant says by its
mask, takes records in their order, pads to the longest of a micro-batch, and takes the mean over the target tokens of a
step. Its batches are compared with what `roux data show` prints, where that command is there. roux may hold at most
eight times the weights at any time: weights, gradients and two moments are four, and batches differ in length.
"""
import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH, MICRO, RATE = 16, 4, 2.0e-5
RECIPE = """
recipe_version: 1
init_from: {folder}
data: {{train: {{type: jsonl, path: {data}}}}}
loader: {{shuffle: false}}
logging_steps: 1
training: {{max_steps: {steps}, global_batch_size: {batch}, micro_batch_size: {micro}}}
optimizer: {{type: adamw, lr: {rate}}}
"""


def conversations(table, count):
    lines = Path(table).read_text().splitlines()[1:count + 1]
    for line in lines:
        same, _, _, first, second = line.split("\t")
        yield {"messages": [
            {"role": "user", "content": f"Do these say the same?\n1. {first}\n2. {second}"},
            {"role": "assistant", "content": "Yes, they do." if same == "1" else "No, they do not."}]}


def labelled(tokenizer, messages):
    """Ids of the whole, and labels of the answer with its end token: what follows the prompt for an answer."""
    whole = tokenizer.apply_chat_template(messages, tokenize=False)
    prompt = tokenizer.apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
    encoded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    end = whole.rindex("<|im_end|>") + len("<|im_end|>")
    ids = encoded["input_ids"]
    return ids, [i if len(prompt) <= begin and finish <= end else -100
                 for i, (begin, finish) in zip(ids, encoded["offset_mapping"])]


def micro_batch(rows):
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    labels = torch.full_like(ids, -100)
    for i, (row, targets) in enumerate(rows):
        ids[i, :len(row)] = torch.tensor(row)
        mask[i, :len(row)] = 1
        labels[i, :len(row)] = torch.tensor(targets)
    return ids, mask, labels


def peer_losses(folder, rows, steps):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for step in range(steps):
        window = rows[step * BATCH:(step + 1) * BATCH]
        targets = sum(label != -100 for _, labels in window for label in labels[1:])
        total = 0.0
        for start in range(0, BATCH, MICRO):
            ids, mask, labels = micro_batch(window[start:start + MICRO])
            logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
            loss = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1), reduction="sum") / targets
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
        print(f"transformers step {step + 1}: {total:.6f}", flush=True)
    return losses, 4 * sum(parameter.numel() for parameter in model.parameters())


def roux_losses(roux, work):
    done = subprocess.run([roux, "run", "recipe.yaml", "--quiet", "--new"], cwd=work, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    with sqlite3.connect(next(Path(work).glob("runs/*/run.db"))) as database:
        return [value for value, in database.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = 'loss' ORDER BY m.step")]


def shown_batches(roux, work, count):
    """Ids and targets as the training gets them."""
    done = subprocess.run([roux, "data", "show", "recipe.yaml", "--first", str(count), "--format", "json"], cwd=work,
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout)["samples"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roux")
    parser.add_argument("folder")
    parser.add_argument("conversations")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--records", type=int, default=2000)
    a = parser.parse_args()
    torch.set_num_threads(2)
    tokenizer = AutoTokenizer.from_pretrained(a.folder)
    with tempfile.TemporaryDirectory() as work:
        records = list(conversations(a.conversations, a.records))
        (Path(work) / "conversations.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        (Path(work) / "recipe.yaml").write_text(RECIPE.format(
            folder=Path(a.folder).resolve(), data="conversations.jsonl", steps=a.steps, batch=BATCH, micro=MICRO,
            rate=RATE))
        rows = [labelled(tokenizer, record["messages"]) for record in records]
        wrong = 0
        for (ids, labels), sample in zip(rows, shown_batches(a.roux, work, a.steps * BATCH)):
            targets = [-100 if target is None else target for target in sample["targets"]]
            wrong += sample["ids"] != ids or targets != labels[1:] + [-100]
        print(f"{a.steps * BATCH} records: {wrong} differ in ids or targets")
        ours = roux_losses(a.roux, work)
        held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        theirs, weights = peer_losses(a.folder, rows, a.steps)
    print(f"roux held {held / 1e9:.2f} GB at most, {held / weights:.1f} times the weights")
    apart = [abs(x - y) for x, y in zip(ours, theirs)]
    print(f"{len(ours)} steps: losses {ours[0]:.5f} to {ours[-1]:.5f}, apart by {max(apart):.2g} at most, "
          f"{apart[-1]:.2g} at the last")
    return 1 if wrong or len(ours) != len(theirs) or max(apart) > 1e-3 or held > 8 * weights else 0


sys.exit(main())
