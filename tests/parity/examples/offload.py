"""A model of twice the memory that a control group allows: texts from the disk, their speed, and a LoRA.

usage: examples/offload.py ROUX TOKENIZER [--layers 24] [--width 1536] [--tokens 12] [--json FILE]

TOKENIZER  a folder with a tokenizer.json whose vocabulary has at most 49,152 ids, such as SmolLM2's
Needs numpy, and a control group of version 1 or 2 that this program may make, without swap: run it as root.

A Llama with random weights in bfloat16 is written, in which the group's memory is half. In it `placement: {}` has to give
the tokens that it gives without a limit; the second half of the tokens, over the first, may take fewer than 100 major
faults and as many bytes of the disk as are not in memory, to 5 %, and may be no slower than 0.8 of what the disk gives in
this run. Then adapters are trained in the group for two steps.
"""
import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy

VOCABULARY, PIECE = 49152, 4 << 20
TRAIN = """
recipe_version: 1
run_name: lora
init_from: {model}
device: cpu
precision: {{mode: bf16-mixed}}
placement: {{}}
adapters: [{{type: lora, r: 8, target_modules: all-linear}}]
data: {{train: {{type: text_lines, path: text.txt, max_seq_len: 64}}}}
optimizer: {{type: adamw, lr: 1.0e-4}}
training: {{max_steps: 2, micro_batch_size: 2}}
checkpoint: {{save_at_end: false}}
"""


def write_model(folder, layers, width, tokenizer):
    inner, heads = width * 8 // 3 // 64 * 64, width // 64
    folder.mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": inner,
              "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads,
              "vocab_size": VOCABULARY, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "hidden_act": "silu",
              "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer / name, folder / name)
    shapes = {"model.embed_tokens.weight": (VOCABULARY, width), "model.norm.weight": (width,),
              "lm_head.weight": (VOCABULARY, width)}
    for i in range(layers):
        at = f"model.layers.{i}."
        shapes |= {at + "input_layernorm.weight": (width,), at + "post_attention_layernorm.weight": (width,)}
        shapes |= {at + f"self_attn.{name}_proj.weight": (width, width) for name in "qkvo"}
        shapes |= {at + "mlp.gate_proj.weight": (inner, width), at + "mlp.up_proj.weight": (inner, width),
                   at + "mlp.down_proj.weight": (width, inner)}
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    drawn = numpy.random.default_rng(1)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            if len(shape) == 1:
                values = numpy.ones(shape, numpy.float32)
            else:
                values = drawn.standard_normal(shape, numpy.float32) * (shape[1] ** -0.5)
            file.write((values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())
    return offset


class Group:
    """A control group with a limit of memory."""

    def __init__(self, limit):
        second = Path("/sys/fs/cgroup/cgroup.controllers").exists()
        self.path = Path("/sys/fs/cgroup" if second else "/sys/fs/cgroup/memory") / f"roux-offload-{os.getpid()}"
        self.path.mkdir()
        (self.path / ("memory.max" if second else "memory.limit_in_bytes")).write_text(str(limit))

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        self.path.rmdir()


def run(arguments, folder, group=None):
    """Its output, and what it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True,
                          preexec_fn=group.enter if group else None)
    took = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return {"output": done.stdout, "told": done.stderr, "seconds": took, "faults": after.ru_majflt - before.ru_majflt,
            "read": 512 * (after.ru_inblock - before.ru_inblock)}


def disk_rate(path, threads=2):
    """Bytes a second past the page cache, of pieces that as many threads read one after the other."""
    size = path.stat().st_size // PIECE * PIECE
    places, lock = iter(range(0, size, PIECE)), threading.Lock()

    def work():
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
        import mmap
        memory = mmap.mmap(-1, PIECE)
        while True:
            with lock:
                place = next(places, None)
            if place is None:
                break
            os.preadv(handle, [memory], place)
        os.close(handle)

    begun = time.monotonic()
    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return size / (time.monotonic() - begun)


def main():
    parser = argparse.ArgumentParser()
    for name in ("roux", "tokenizer"):
        parser.add_argument(name)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1536)
    parser.add_argument("--tokens", type=int, default=12)
    parser.add_argument("--json")
    options = parser.parse_args()
    roux = str(Path(options.roux).resolve())
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write_model(folder / "model", options.layers, options.width, Path(options.tokenizer))
        (folder / "t.yaml").write_text(TRAIN.format(model="model"))
        (folder / "text.txt").write_text("The quick brown fox jumps over the lazy dog again and again.\n" * 64)
        limit = size // 2
        group = Group(limit)

        def texts(tokens, where):
            return run([roux, "generate", "model", "--prompt", "The capital of France is", "--max-new-tokens", str(tokens),
                        "--eos-token-id", "49151", "--format", "jsonl", "--precision", "bf16-true", "device=cpu",
                        *(["placement={}"] if where else [])], folder, where)

        try:
            whole = texts(2 * options.tokens, None)
            rates, halves = [], []
            for _ in range(3):
                rates.append(disk_rate(folder / "model" / "model.safetensors"))
                halves.append((texts(options.tokens, group), texts(2 * options.tokens, group)))
            trained = run([roux, "run", "t.yaml", "--quiet"], folder, group)
        finally:
            group.remove()
    if any(long["output"] != whole["output"] for _, long in halves):
        problems.append("the texts from the disk are others than those in memory")
    placement, travelling = re.search(r"placement: (.*; ([0-9,]+) bytes .*)", halves[0][1]["told"]).groups()
    travelling = int(travelling.replace(",", ""))
    def of_second_half(what):
        return (min(long[what] for _, long in halves) - min(short[what] for short, _ in halves)) / options.tokens

    seconds, read = of_second_half("seconds"), of_second_half("read")
    faults = min(long["faults"] for _, long in halves)
    reached = travelling / seconds / max(rates)
    for what, holds in (("bytes read for a token", abs(read / travelling - 1) <= 0.05), ("major faults", faults < 100),
                        ("speed", reached >= 0.8)):
        if not holds:
            problems.append(what)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    result = {"model_bytes": size, "limit_bytes": limit, "placement": placement, "travelling_bytes": travelling,
              "read_bytes_a_token": read, "major_faults": faults, "tokens_per_s": 1 / seconds,
              "disk_bytes_per_s": max(rates), "of_disk_rate": reached, "lora_two_steps_s": trained["seconds"],
              "machine": platform.processor() or platform.machine(), "commit": commit, "problems": problems}
    print(json.dumps(result, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
