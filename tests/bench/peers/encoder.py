"""Training of a BERT for classes of texts, or of a T5 for answers, on a CPU: samples/s and losses. One JSON line.

--model FOLDER: a Transformers folder; weights are float32, --dtype bf16 is autocast over them
--ids FILE: lines of {"input_ids": [...], "labels": CLASS or [...]}, read in their order, --batch of them a step, padded
            to the longest of a batch
--accelerate is the stock form, else a plain loop; --fused and --compile are stronger (compile needs a C++ compiler)
--new FOLDER: writes a model with random weights there instead, of the shape in --shape, names of BertConfig, or of
              T5Config with `d_model` among them
Needs transformers.
"""
import argparse
import json
import time

import torch
from transformers import (AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, BertConfig,
                          BertForSequenceClassification, T5Config, T5ForConditionalGeneration)

from common import emit, quiet, set_threads, summary


def batches(a):
    rows = [json.loads(line) for line in open(a.ids)]
    needed = a.batch * (a.warmup + a.steps)
    if len(rows) < needed:
        raise SystemExit(f"{a.ids}: {len(rows)} lines, and {needed} are needed")
    for start in range(0, needed, a.batch):
        some = rows[start:start + a.batch]
        length = max(len(row["input_ids"]) for row in some)
        ids = torch.zeros(a.batch, length, dtype=torch.int64)
        mask = torch.zeros(a.batch, length, dtype=torch.int64)
        for i, row in enumerate(some):
            ids[i, :len(row["input_ids"])] = torch.tensor(row["input_ids"])
            mask[i, :len(row["input_ids"])] = 1
        yield dict(input_ids=ids, attention_mask=mask, labels=labels_of(some))


def labels_of(rows):
    if isinstance(rows[0]["labels"], int):
        return torch.tensor([row["labels"] for row in rows])
    labels = torch.full((len(rows), max(len(row["labels"]) for row in rows)), -100)
    for i, row in enumerate(rows):
        labels[i, :len(row["labels"])] = torch.tensor(row["labels"])
    return labels


def new_model(shape):
    if "d_model" in shape:
        return T5ForConditionalGeneration(T5Config(**shape, decoder_start_token_id=0))
    return BertForSequenceClassification(BertConfig(**shape))


def train(a):
    half = a.dtype == "bf16"
    two = AutoConfig.from_pretrained(a.model).is_encoder_decoder
    kind = AutoModelForSeq2SeqLM if two else AutoModelForSequenceClassification
    model = kind.from_pretrained(a.model, dtype=torch.float32, attn_implementation="sdpa")
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, fused=a.fused or None)
    forward, backward = model, lambda loss: loss.backward()
    cast = torch.autocast("cpu", torch.bfloat16, enabled=half)
    if a.accelerate:
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True, mixed_precision="bf16" if half else "no")
        forward, optimizer = accelerator.prepare(model, optimizer)
        backward = accelerator.backward
        cast = torch.autocast("cpu", enabled=False)  # Accelerate brings its own
    elif a.compile:
        forward = torch.compile(model, dynamic=True)
    seconds, losses = [], []
    for batch in batches(a):
        start = time.perf_counter()
        with cast:
            loss = forward(**batch).loss
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    step_s = summary(seconds[a.warmup:])["median"]
    emit(workload="encoder", dtype=a.dtype, compiled=a.compile, fused_adamw=a.fused, threads=a.threads,
         parameters=sum(p.numel() for p in model.parameters()), first_step_s=seconds[0], step_s=step_s,
         samples_per_s=a.batch / step_s, first_loss=losses[0], last_loss=losses[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model")
    p.add_argument("--ids")
    p.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--lr", type=float, default=1e-5)
    for flag in ("fused", "compile", "accelerate"):
        p.add_argument("--" + flag, action="store_true")
    p.add_argument("--new", metavar="FOLDER")
    p.add_argument("--shape", type=json.loads, default={}, metavar="JSON")
    a = p.parse_args()
    quiet()
    set_threads(a.threads)
    if a.new:
        torch.manual_seed(0)
        new_model(a.shape).save_pretrained(a.new)
    else:
        train(a)


if __name__ == "__main__":
    main()
