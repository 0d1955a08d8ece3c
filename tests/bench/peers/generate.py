"""Generation by a Transformers model on a CPU: tokens/s. One JSON line.

--model FOLDER: a Transformers folder; --dtype: of its weights
--ids FILE: one JSON list of prompts, each a list of ids, all of one length; they are one batch
--new N: tokens to generate for each, greedily and past any end token; 0: only the prompt is computed
--read-gb N: only the rate at which two threads read N GB of memory, in GB/s
Needs transformers.
"""
import argparse
import json
import time

from common import emit, quiet, set_threads


def read_rate(gigabytes, threads):
    import torch
    set_threads(threads)
    room = torch.ones(int(gigabytes * 2 ** 30) // 4, dtype=torch.int32)
    room.max()
    start = time.perf_counter()
    for _ in range(3):
        room.max()  # reads each word once and does little else
    return 3 * room.numel() * 4 / (time.perf_counter() - start) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--ids")
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--read-gb", type=float)
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    if a.read_gb:
        return emit(workload="read", tokens_per_s=read_rate(a.read_gb, a.threads))  # GB/s, a side as the others
    quiet()
    import torch
    from transformers import AutoModelForCausalLM
    set_threads(a.threads)
    model = AutoModelForCausalLM.from_pretrained(a.model, dtype=getattr(torch, a.dtype), attn_implementation="sdpa")
    model.eval()
    ids = torch.tensor(json.load(open(a.ids)))

    def seconds(new):
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=new,
                           max_new_tokens=new, pad_token_id=0)
        return time.perf_counter() - start

    seconds(2)
    prefill = seconds(1)
    found = dict(workload="generate", dtype=a.dtype, threads=a.threads, prefill_tokens_per_s=ids.numel() / prefill)
    if a.new:
        found["tokens_per_s"] = ids.size(0) * (a.new - 1) / (seconds(a.new) - prefill)
    emit(**found)


main()
