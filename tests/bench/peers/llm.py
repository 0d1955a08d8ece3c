"""Training of a Transformers model on a CPU: tokens/s and losses. One JSON line.

--model FOLDER: a Transformers folder; weights are float32, --dtype bf16 is autocast over them
--ids FILE: lines of {"input_ids": [...]}, all of one length, read in their order, --batch of them a step
--accelerate is the stock form, else a plain loop; --fused and --compile are stronger (compile needs a C++ compiler)
--lora R trains adapters of PEFT beside the frozen model, of rank R: all linear layers but the head
--nf4: bitsandbytes keeps these layers in 4 bits, and computes in --dtype
--new FOLDER: writes a Llama with random weights there instead, of the shape in --shape, names of LlamaConfig
Needs transformers.
"""
import argparse
import json
import threading
import time

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from common import emit, quiet, set_threads, summary


def batches(a):
    rows = [json.loads(line)["input_ids"] for line in open(a.ids)]
    needed = a.batch * (a.warmup + a.steps)
    if len(rows) < needed:
        raise SystemExit(f"{a.ids}: {len(rows)} lines, and {needed} are needed")
    return torch.tensor(rows[:needed]).view(-1, a.batch, len(rows[0]))


def watch_anonymous():
    """A function that gives the largest RssAnon seen so far, in MB: memory that is no mapped file."""
    peak = [0]

    def read():
        with open("/proc/self/status") as status:
            peak[0] = max([peak[0], *(int(row.split()[1]) for row in status if row.startswith("RssAnon"))])

    def watch():
        while True:
            read()
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()
    return lambda: (read(), peak[0] / 1024)[1]


def train(a):
    half = a.dtype == "bf16"
    packed = {}
    if a.nf4:
        from transformers import BitsAndBytesConfig
        packed = {"quantization_config": BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16 if half else torch.float32)}
    model = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32, attn_implementation="sdpa", **packed)
    model.config.use_cache = False  # a training that keeps keys and values would only be slower
    if a.lora:
        from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
        if a.nf4:  # float32 for the rest; recomputing would only make it slower
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=a.lora, lora_alpha=2 * a.lora,
                                                 target_modules="all-linear"))
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=a.lr, fused=a.fused or None)
    forward, backward = model, lambda loss: loss.backward()
    cast = torch.autocast("cpu", torch.bfloat16, enabled=half)
    if a.accelerate:
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True, mixed_precision="bf16" if half else "no",
                                  dynamo_backend="inductor" if a.compile else "no")
        forward, optimizer = accelerator.prepare(model, optimizer)
        backward = accelerator.backward
        cast = torch.autocast("cpu", enabled=False)  # Accelerate brings its own
    elif a.compile:
        forward = torch.compile(model)
    anonymous = watch_anonymous()
    seconds, losses = [], []
    for ids in batches(a):
        start = time.perf_counter()
        with cast:
            loss = forward(input_ids=ids, labels=ids).loss
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    step_s = summary(seconds[a.warmup:])["median"]
    emit(workload="llm", dtype=a.dtype, compiled=a.compile, fused_adamw=a.fused, threads=a.threads,
         parameters=sum(p.numel() for p in model.parameters()), first_step_s=seconds[0], step_s=step_s,
         peak_anonymous_mb=anonymous(), tokens_per_s=ids.numel() / step_s, first_loss=losses[0], last_loss=losses[-1])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model")
    p.add_argument("--ids")
    p.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--warmup", type=int, default=1)
    p.add_argument("--lr", type=float, default=1e-5)
    for flag in ("fused", "compile", "accelerate", "nf4"):
        p.add_argument("--" + flag, action="store_true")
    p.add_argument("--lora", type=int, metavar="R")
    p.add_argument("--new", metavar="FOLDER")
    p.add_argument("--shape", type=json.loads, default={}, metavar="JSON")
    a = p.parse_args()
    quiet()
    set_threads(a.threads)
    if a.new:
        torch.manual_seed(0)
        LlamaForCausalLM(LlamaConfig(**a.shape)).save_pretrained(a.new)
    else:
        train(a)


if __name__ == "__main__":
    main()
