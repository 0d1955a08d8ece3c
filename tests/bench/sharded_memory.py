#!/usr/bin/env python3
"""Memory of sharded training by the allocator's own count, beside the formulas of ZeRO.

GPT-2 124M on four processes (--tiny: a small one). Of each process's P parameters with N processes, float32:

    optimizer    4 P + 4 P + 8 P / N
    gradients    4 P + (4 + 8) P / N
    parameters   (4 + 4 + 8) P / N, and the parameters of the two largest units

and in each case the whole gradients of the two largest units, and one buffer of an exchange, as large as the largest unit.
With bf16-mixed and `parameters` the linear layers of a unit in flight have two bytes a parameter; otherwise there is a copy of
all in two bytes. Three runs of each: one
from scratch that saves, one that resumes from what was saved, and one that begins from the saved weights (init_from). The
peak is that of process 0, which holds the most rows, over the whole run: drawing, loading, steps and saving.

Prints, and with --json writes, what was counted, the formula, their ratio, VmHWM of each process, and what all processes
together read from the disk beside the size of the file (the page cache is dropped first where that is allowed).

usage: tests/bench/sharded_memory.py ROUX [--json FILE] [--tiny] [--processes N]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

RECIPE = """
run_name: {name}
seed: 1
model: {{type: gpt, n_layer: {layers}, n_head: 12, n_embd: {width}, vocab_size: {vocabulary}, tie_embeddings: true}}
data: {{train: {{type: text, path: text.txt, max_seq_len: 32}}}}
loss: cross_entropy
optimizer: {{type: adamw, lr: 0.0001}}
precision: {{mode: {mode}}}
training: {{max_steps: {steps}, global_batch_size: {processes}, micro_batch_size: 1, max_memory: 20GB}}
launch: {{num_processes: {processes}, num_cpu_threads_per_process: 1}}
parallelism: {{shard: {shard}}}
checkpoint: {{async_save: false}}
"""
LIMIT = 1.05


def machine(roux):
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = next((line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")), "")
    version = subprocess.run([roux, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    return {"processor": model, "cores": os.cpu_count(), "program": version}


def drop_page_cache():
    subprocess.run(["sync"], check=True)
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        return True
    except OSError:
        return False


def watch(words, work):
    """The processes' VmHWM and the bytes that they read, by process."""
    peaks, reads = {}, {}
    running = subprocess.Popen(words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while running.poll() is None:
        children = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True).stdout.split()
        for child in children:
            try:
                status = pathlib.Path(f"/proc/{child}/status").read_text()
                io = pathlib.Path(f"/proc/{child}/io").read_text()
                command = pathlib.Path(f"/proc/{child}/cmdline").read_text()
            except OSError:
                continue
            if "VmHWM" not in status or "rendezvous" in command:
                continue
            peaks[child] = int(status.split("VmHWM:")[1].split()[0]) << 10
            reads[child] = int(io.split("read_bytes:")[1].split()[0])
        time.sleep(0.02)
    text = running.communicate()[0]
    if running.returncode:
        raise SystemExit(f"{' '.join(words)}: exit status {running.returncode}\n{text}")
    return sorted(peaks.values()), sum(reads.values())


def formula(shard, mode, a):
    """Bytes of process 0."""
    unit = {"block": 12 * a.width * a.width + 13 * a.width,
            "ends": a.vocabulary * a.width + a.positions * a.width + 2 * a.width}
    parameters = a.layers * unit["block"] + unit["ends"]
    largest, second = max(unit.values()), min(unit.values())
    if shard == "optimizer":
        held = 8 * parameters + 8 * parameters / a.processes
    elif shard == "gradients":
        held = 4 * parameters + 12 * parameters / a.processes
    else:
        held = 16 * parameters / a.processes + 4 * unit["ends"] + (2 if mode == "bf16-mixed" else 4) * unit["block"]
    if mode == "bf16-mixed" and shard != "parameters":
        held += 2 * parameters
    return held + 4 * (largest + second) + 4 * largest


def measure(a, work, mode, shard):
    name = f"{mode.partition('-')[0]}-{shard}"
    settings = dict(layers=a.layers, width=a.width, vocabulary=a.vocabulary, mode=mode, shard=shard,
                    processes=a.processes)
    found = {"mode": mode, "shard": shard, "formula": round(formula(shard, mode, a))}
    checkpoint = None
    for way, steps, extra in (("scratch", 2, []), ("resume", 3, []), ("init_from", 1, [])):
        if way == "init_from":
            extra = ["--set", f"init_from={checkpoint}", "--new"]
        (work / "recipe.yaml").write_text(RECIPE.format(name=name + ("-begun" if way == "init_from" else ""), steps=steps,
                                                        **settings))
        command = [a.roux, "run", "recipe.yaml", "--quiet", *extra]
        if way == "resume":
            command = [a.roux, "resume", name, "--quiet", "--checkpoint", "last", "--set", "training.max_steps=3"]
        dropped = drop_page_cache()
        peaks, read = watch(command, work)
        shown = name + ("-begun" if way == "init_from" else "")
        run = subprocess.run([a.roux, "runs", "show", shown, "--format", "json"], cwd=work, capture_output=True,
                             text=True, check=True)
        counted = json.loads(run.stdout)["summary"]["peak_tensor_bytes"]
        (folder,) = work.glob(f"runs/{shown}-*")
        checkpoint = checkpoint or sorted((folder / "checkpoints").glob("step-*"))[-1]
        size = sum(one.stat().st_size for one in pathlib.Path(checkpoint).iterdir())
        found[way] = {"counted": counted, "ratio": round(counted / found["formula"], 3), "vm_hwm": peaks,
                      "read_bytes": read if dropped else None, "checkpoint_bytes": size}
        print(f"{mode:10} {shard:10} {way:9} {counted / 1e6:7.0f} MB counted, {found['formula'] / 1e6:7.0f} by the "
              f"formula: {found[way]['ratio']:.3f}; VmHWM {max(peaks) / 1e6:.0f} MB; read {read / 1e6:.0f} MB, "
              f"checkpoint {size / 1e6:.0f} MB", flush=True)
    shutil.rmtree(work / "runs")  # 6 GB
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roux", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--json")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--processes", type=int, default=4)
    a = parser.parse_args()
    a.layers, a.width, a.vocabulary, a.positions = (2, 120, 1000, 32) if a.tiny else (12, 768, 50257, 32)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 400)
        for mode in ("32-true", "bf16-mixed"):
            for shard in ("optimizer", "gradients", "parameters"):
                rows.append(measure(a, work, mode, shard))
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({"machine": machine(a.roux), "rows": rows}, indent=1) + "\n")
    over = [row for row in rows if row["scratch"]["ratio"] > LIMIT]
    for row in over:
        print(f"over {LIMIT}: {row['mode']} {row['shard']}")
    raise SystemExit(1 if over and not a.tiny else 0)


if __name__ == "__main__":
    main()
