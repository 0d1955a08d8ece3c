"""Ratios of roux to its peers, taken round by round in one interleaved run, beside the limits that roux promises.

The strongest peer of a topic is not chosen beforehand: each form of each peer (plain PyTorch and Accelerate, with
torch.compile, a fused optimizer and tcmalloc, where the topic has them) runs once, the two fastest run in turn with
roux, and the fastest of all that did is marked as the strongest.
"""
import argparse
import contextlib
import json
import math
import os
import shlex
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "verify"))
import encoder  # noqa: E402
import llm  # noqa: E402
import sharding  # noqa: E402
import sides  # noqa: E402
from lib.servers import mlflow_server  # noqa: E402
from sides import (  # noqa: E402
    PEERS, check, fastest, forms, interleave, last_line, missed, show, show_shares, tcmalloc)

RECIPES = HERE / "recipes"
SLOW_LINK = "1gbit:1ms"


def startup(a):
    python, script = sys.executable, PEERS / "startup.py"
    with tempfile.TemporaryDirectory() as folder:
        roux = shlex.join([a.roux, "run", str(RECIPES / "startup.yaml"), "--new", "--quiet", "--output-dir", folder])
        table = interleave(a.rounds, ["first_step_s", "peak_rss_mb"], {
            "roux": [python, script, "--cmd", roux],
            "bare": [python, script, "--cmd", f"{a.bare} startup"],
            "accelerate": [python, script, "--peer", "accelerate"],
            "accelerate-launch": [python, script, "--peer", "accelerate-launch"]})
        two = interleave(a.rounds, ["first_step_s"], {
            "roux": [python, script, "--cmd", f"{roux} --set launch.num_processes=2"],
            "accelerate-launch": [python, script, "--peer", "accelerate-launch", "--processes", "2"]})
    show("startup: process start to the first optimizer step, s", table["first_step_s"],
         {"bare": 1.2, "accelerate": 0.12, "accelerate-launch": 0.075}, at_most=True)
    show("startup: two processes to their first step, s", two["first_step_s"], {"accelerate-launch": 0.15}, at_most=True)
    show("startup: peak memory, MB", table["peak_rss_mb"], {"accelerate": 0.22}, at_most=True)


def steps(a):
    python, script = sys.executable, PEERS / "step_overhead.py"
    roux = [python, HERE / "roux_steps.py", a.roux, RECIPES / "steps.yaml"]
    title = "steps: 32-64-1 MLP, batch 32, one thread"
    fused = ["--optimizer", "adamw_fused"]
    bare = [a.bare, "step", *fused]
    strong = fastest(title, "steps_per_s", {
        **forms({"torch": [python, script], "accelerate": [python, script, "--peer", "accelerate"]},
                {"compile": ["--compile"], "fused": fused}),
        "bare+fused": bare, "bare+fused+tcmalloc": [*tcmalloc(), *bare]})
    table = interleave(a.rounds, ["steps_per_s"], {
        "roux": [*roux, "logging_steps=1"],
        "roux-default": roux,
        "accelerate": [python, script, "--peer", "accelerate"],
        "accelerate-loader": [python, script, "--peer", "accelerate", "--data", "loader"],
        "bare+fused": bare,
        **strong})
    show(title + ", steps/s (roux: every step's metrics are kept; roux-default: every tenth's)", table["steps_per_s"],
         {"roux-default": 0.9, "accelerate": 6.5, "strongest": 0.9}, at_most=False)


def fill(roux, folder, runs):
    """One run of two steps, then copies of it that are an hour old, each with an id of its own."""
    subprocess.run([roux, "run", RECIPES / "startup.yaml", "--new", "--quiet", "--output-dir", folder, "--set",
                    "training.max_steps=2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    first = next(path for path in Path(folder).iterdir() if (path / "run.db").exists())
    name, _, run_id = first.name.rpartition("-")
    then = time.time() - 3600
    for i in range(1, runs):
        new_id = run_id[:-3] + "".join("0123456789abcdefghjkmnpqrstvwxyz"[i >> shift & 31] for shift in (10, 5, 0))
        copy = first.with_name(f"{name}-{new_id}")
        if copy == first:
            continue
        shutil.copytree(first, copy, ignore=shutil.ignore_patterns("checkpoints"))
        with contextlib.closing(sqlite3.connect(copy / "run.db")) as database, database:
            database.execute("UPDATE info SET value = ? WHERE key = 'id'", (new_id,))
        os.utime(copy / "run.db", (then, then))
        os.utime(copy / "annotations.db", (then, then))
        os.utime(copy, (then, then))


def answers(a):
    print("\nanswers: what a person waits for, ms (runs list: over 1,000 runs)")
    recipe = RECIPES / "startup.yaml"
    with tempfile.TemporaryDirectory() as folder:
        fill(a.roux, folder, 1000)
        for arguments in (["validate", recipe], ["list"], ["explain", "optimizer/adamw"], ["explain", recipe, "seed"],
                          ["runs", "list", "--output-dir", folder]):
            times = []
            for _ in range(5 + 4 * a.rounds):
                begin = time.perf_counter()
                subprocess.run([a.roux, *arguments], stdout=subprocess.DEVNULL, check=True)
                times.append((time.perf_counter() - begin) * 1e3)
            median = statistics.median(times[5:])
            name = " ".join(Path(x).name if isinstance(x, Path) else x for x in arguments[:2])
            good = median < 50
            print(f"  {name:<26} median {median:6.1f}  under 50 {'holds' if good else 'IS MISSED'}", flush=True)
            if not good:
                missed.append(f"answers: {name}")


def checkpoint(a):
    python, script, roux = sys.executable, PEERS / "checkpoint.py", HERE / "roux_checkpoint.py"
    peers = {name: [python, script, "--peer", name, "--runs", "3"]
             for name in ("accelerate", "torch", "dcp", "dcp-async")}
    table = interleave(a.rounds, ["stall_ms", "committed_s", "stall_sync_ms", "synced_s", "load_s", "read_s"], {
        "roux": [python, roux, a.roux, RECIPES / "gpt2.yaml", "save"],
        "machine": [python, HERE / "machine.py", "1493"],
        **peers})
    print("\ncheckpoint: 124 M parameters with AdamW, 1.49 GB; machine: a memory copy, dd conv=fsync, a read from "
          "memory.\n  Memory is warmed before each side. No save begins before the last one is done, on any side: roux saves"
          "\n  every 40 steps, every 20 synchronously. A save of a peer counts as committed when its files are fsynced;"
          "\n  roux's when they have also been read back from the disk and renamed.")
    show("checkpoint: how long an asynchronous save stops the loop (accelerate, torch, dcp: a save without fsync), ms",
         table["stall_ms"], {"machine": 1.5, "accelerate": 1 / 5, "dcp-async": 1 / 2}, at_most=True)
    show("checkpoint: until an asynchronous save is committed, with the rests that it takes for the steps' sake, s",
         table["committed_s"], {}, at_most=True)
    show("checkpoint: how long a save with async_save: false stops the loop, until its files are fsynced, ms",
         table["stall_sync_ms"], {"machine": 1 / 0.8, "accelerate": 1.0}, at_most=True)
    show("checkpoint: until such a save is committed (beside the next steps), s", table["synced_s"], {}, at_most=True)
    show("checkpoint: how long the start of a run waits for a load that begins before the model is built (peers: their "
         "load alone), s", table["load_s"], {"accelerate": 0.6}, at_most=True)
    show("checkpoint: how long that load reads, beside the building of model and data, s", table["read_s"], {},
         at_most=True)
    row = interleave(a.rounds, ["beside_ratio"], {
        "roux": [python, roux, a.roux, RECIPES / "gpt2.yaml", "beside"]})["beside_ratio"]["roux"]
    good = row["median"] < 1.1
    print(f"\ncheckpoint: a step beside a save, against a step alone: median {row['median']:.3f}, under 1.1 "
          f"{'holds' if good else 'IS MISSED'}")
    if not good:
        missed.append("checkpoint: steps beside a save")


def profiler(a):
    """The same training without a profiler, with a window that never comes, and with one that is over."""
    script = [sys.executable, HERE / "roux_profiled.py", a.roux, RECIPES / "steps.yaml"]
    on = ["--set", "profiler.activities=[cpu]"]
    sides = {"none": (script, 0), "before": ([*script, *on, "--set", "profiler.schedule.skip_first=1000000"], 0),
             "after": ([*script, *on], 1)}
    rounds = max(20, a.rounds)
    took = {name: [] for name in sides}
    for number in range(rounds + 1):
        order = list(sides) if number % 2 else list(reversed(sides))  # whoever comes first has no advantage
        for name in order:
            command, traces = sides[name]
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
            if done.returncode:
                raise SystemExit(f"roux_profiled.py: exit status {done.returncode}")
            row = json.loads(done.stdout)
            if row["traces"] != traces:
                raise SystemExit(f"{name}: {row['traces']} traces were written")
            if number > 0:
                took[name].append(row["step_us"])
    print(f"\nprofiler: a step outside the recorded ones against a step without profiler, {rounds} rounds")
    for name in ("before", "after"):
        ratios = sorted(with_it / without for with_it, without in zip(took[name], took["none"]))
        # Of the median, by the ranks that a fair coin leaves out once in twenty times.
        rank, chance = 0, 0.5**rounds
        while chance + math.comb(rounds, rank + 1) * 0.5**rounds <= 0.025:
            rank += 1
            chance += math.comb(rounds, rank) * 0.5**rounds
        low, ratio, high = ratios[rank], statistics.median(ratios), ratios[-rank - 1]
        good = low <= 1.0 and high < 1.05
        print(f"  {name + ' the window':<20} median {statistics.median(took[name]):.2f} us, ratio {ratio:.4f}, "
              f"95 % confidence {low:.4f} .. {high:.4f}: no cost {'holds' if good else 'IS NOT SHOWN'}", flush=True)
        if not good:
            missed.append(f"profiler: {name}")


def dataload(a):
    """The same file, read by both sides from memory; one epoch, so that each page is met for the first time."""
    python, script = sys.executable, PEERS / "dataload.py"
    print("\ndataload: shuffled windows of 256 from 32 M tokens of 16 bits, batches of 8, 15,000 of them; the memory of"
          "\n  PyTorch's worker processes is not counted, roux's threads are", end="")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tokens.bin"
        make = "import numpy, sys; numpy.random.default_rng(0).integers(0, 50257, 32_000_000, " \
               "dtype=numpy.uint16).tofile(sys.argv[1])"
        subprocess.run([python, "-c", make, file], check=True)
        checksums = set()
        for workers in ("0", "2"):
            same = ["--file", file, "--workers", workers, "--batches", "15000"]
            own = [a.dataload, file, "--workers", workers, "--batches", "15000"]
            table = interleave(a.rounds, ["batches_per_s", "peak_rss_mb"], {
                "roux": own,
                **forms({"torch": [python, script, *same],
                         "accelerate": [python, script, "--peer", "accelerate", *same],
                         "gather": [python, script, "--peer", "gather", "--file", file, "--batches", "15000"]}, {})})
            show(f"dataload: {workers} workers, batches/s (gather: a hand-written loop without a loader or workers)",
                 table["batches_per_s"], {"torch": 5.0, "accelerate": 5.0, "strongest": 5.0}, at_most=False)
            show(f"dataload: {workers} workers, peak memory, MB", table["peak_rss_mb"],
                 {"torch": 1.0, "accelerate": 1.0}, at_most=True)
            done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True)
            checksums.add(json.loads(done.stdout)["checksum"])
        good = len(checksums) == 1
        print(f"  the batches of 0 and of 2 workers are the same: {'holds' if good else 'IS MISSED'}")
        if not good:
            missed.append("dataload: the workers change a batch")


def jsonl(a):
    """Records to packed batches, from opening the file to its last row, and to ids alone, with one thread and with two."""
    tokenizer = os.environ.get("BENCH_TOKENIZER")
    if not tokenizer:
        raise SystemExit("BENCH_TOKENIZER is not set\n  hint: it names a tokenizer.json with <|endoftext|>, such as "
                         "SmolLM2's or GPT-2's")
    python, script = sys.executable, PEERS / "jsonl.py"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        text = (HERE.parent.parent / "recipes/data/tinyshakespeare.txt").read_text()
        scenes = [scene for scene in text.split("\n\n") if scene]
        with open(file, "w") as out:
            for copy in range(8):
                for scene in scenes:
                    out.write(json.dumps({"text": f"{copy} {scene}"}) + "\n")
        peer = [python, script, file, tokenizer]
        own = [a.dataload, file, "--tokenizer", tokenizer, "--context", "2048"]
        for threads, roux, peers in (
                ("one thread", [*own, "--workers", "0"], {"torch": peer}),
                ("two threads", [*own, "--workers", "2"], {
                    "torch": [*peer, "--threads", "2"], "workers": [*peer, "--workers", "2"],
                    "workers+100": [*peer, "--workers", "2", "--chunk", "100"]})):
            cpus = ["taskset", "--cpu-list", "0"] if threads == "one thread" else []
            table = interleave(a.rounds, ["rows_per_s"], {
                "roux": [*cpus, *roux], **{name: [*cpus, *line] for name, line in peers.items()}})
            show(f"jsonl: records of a 9 MB file to packed batches of 8 x 2,048 tokens, {threads}, rows/s",
                 table["rows_per_s"], {"strongest": 3.0}, at_most=False)
        script = PEERS / "encode.py"
        for threads in (1, 2):
            cpus = ["taskset", "--cpu-list", "0"] if threads == 1 else []
            peer = [*cpus, python, script, file, tokenizer, "--threads", str(threads), "--peer"]
            table = interleave(a.rounds, ["mb_per_s"], {
                "roux": [*cpus, a.dataload, file, "--tokenizer", tokenizer, "--context", "2048", "--encode", "1"],
                **{name: [*peer, name] for name in ("tokenizers", "tokenizers-fast", "datasets")}})
            show(f"jsonl: records of a 9 MB file to ids in memory, {threads} thread{'s' if threads > 1 else ''}, MB/s",
                 table["mb_per_s"], {"tokenizers": 1.0, "datasets": 3.0}, at_most=False)


def parquet(a):
    """The texts of a Parquet file of 60 MB of text, one column of three, in one thread."""
    import pyarrow
    import pyarrow.parquet
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.parquet"
        text = (HERE.parent.parent / "recipes/data/tinyshakespeare.txt").read_text()
        scenes = [f"{copy} {scene}" for copy in range(56) for scene in text.split("\n\n") if scene]
        table = pyarrow.table({"id": list(range(len(scenes))), "text": scenes, "source": ["plays"] * len(scenes)})
        pyarrow.parquet.write_table(table, file, compression="zstd", row_group_size=50_000)
        peer = [sys.executable, PEERS / "parquet.py", file, "--peer"]
        table = interleave(a.rounds, ["mb_per_s"], {
            "roux": [a.dataload, file], **{name: [*peer, name] for name in ("datasets", "streamed")}})
        show("parquet: texts of a file of 60 MB, MB/s", table["mb_per_s"], {"datasets": 1.5, "streamed": 1.5}, at_most=False)


def resnet(a):
    python, script, own = sys.executable, PEERS / "resnet.py", HERE / "roux_throughput.py"
    for dtype, mode, stock in (("fp32", "32-true", 1.15), ("bf16", "bf16-mixed", 1.25)):
        roux = [python, own, a.roux, RECIPES / "resnet18.yaml", "samples_per_s=images_per_s", f"precision.mode={mode}"]
        peer = [python, script, "--peer", "accelerate", "--dtype", dtype]
        done = subprocess.run(list(map(str, peer)), stdout=subprocess.PIPE, text=True, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        stock_form = [*peer, "--no-peak"]
        strong = fastest(f"resnet: ResNet-18, {dtype}", "images_per_s", forms(
            {"accelerate": stock_form, "torch": [python, script, "--dtype", dtype, "--no-peak"]},
            {"compile": ["--compile"], "fused": ["--fused"]}))
        table = interleave(a.rounds, ["images_per_s", "peak_rss_mb"], {
            "roux": roux,
            "roux-plain": [*roux, "training.fused_kernels=false"],
            "accelerate": stock_form,
            **strong})
        show(f"resnet: ResNet-18, {dtype}, images/s (roux-plain: without fused kernels)", table["images_per_s"],
             {"accelerate": stock, "strongest": 1.0}, at_most=False)
        show_shares(figures, "images_per_s", table["images_per_s"])
        show(f"resnet: ResNet-18, {dtype}, peak memory, MB", table["peak_rss_mb"], {"accelerate": 1.0}, at_most=True)


def gpt(a):
    python, script, own = sys.executable, PEERS / "gpt.py", HERE / "roux_throughput.py"
    gpt2 = ["model.n_positions=256", "data.train.max_seq_len=256", "training.max_steps=7", "checkpoint.save_steps=null",
            "training.micro_batch_size=2", "training.clip_grad_norm=1", "checkpoint.save_at_end=false"]
    # Of the stock form and of the strongest one.
    limits = {("small", "bf16"): (2.4, 1.3), ("small", "fp32"): (1.4, 1.1), ("gpt2", "bf16"): (2.4, 1.1)}
    memory = {"small": 0.6, "gpt2": 0.85}
    for (config, dtype), (stock, strongest) in limits.items():
        recipe = RECIPES / ("gpt_small.yaml" if config == "small" else "gpt2.yaml")
        sets = [f"precision.mode={'bf16-mixed' if dtype == 'bf16' else '32-true'}"] + (gpt2 if config == "gpt2" else [])
        peer = [python, script, "--config", config, "--dtype", dtype, "--steps", "10" if config == "small" else "5"]
        roux = [python, own, a.roux, recipe, "tokens_per_s", *sets]
        done = subprocess.run([*peer, "--peer", "accelerate"], stdout=subprocess.PIPE, text=True, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        stock_form = [*peer, "--no-peak", "--peer", "accelerate"]
        strong = fastest(f"gpt: {config}, {dtype}", "tokens_per_s", forms(
            {"accelerate": stock_form, "torch": [*peer, "--no-peak"]},
            {"compile": ["--compile"], "fused": ["--fused"]}))
        table = interleave(a.rounds, ["tokens_per_s", "peak_rss_mb"], {
            "roux": roux,
            "roux-plain": [*roux, "training.fused_kernels=false"],
            "accelerate": stock_form,
            **strong})
        show(f"gpt: {config}, {dtype}, tokens/s (roux-plain: without fused kernels)", table["tokens_per_s"],
             {"accelerate": stock, "strongest": strongest}, at_most=False)
        show_shares(figures, "tokens_per_s", table["tokens_per_s"])
        show(f"gpt: {config}, {dtype}, peak memory, MB", table["peak_rss_mb"], {"accelerate": memory[config]},
             at_most=True)


def ddp(a):
    """Two processes of one thread each on the loopback interface, four micro-batches a step, exchanged once."""
    python, own = sys.executable, HERE / "roux_throughput.py"
    sets = ["launch.num_processes=2", "launch.num_cpu_threads_per_process=1", "training.gradient_accumulation_steps=4",
            "training.clip_grad_norm=null", "training.max_steps=8"]
    peer = [python, PEERS / "ddp.py", "--config", "small", "--world", "2", "--threads", "1", "--accumulate", "4",
            "--sync", "last", "--windows", "6", "--warmup", "2"]
    title = "ddp: small GPT, fp32, 2 processes, buckets of 25 MiB on both sides"
    stock_form = [*peer, "--peer", "accelerate"]
    strong = fastest(title, "tokens_per_s", forms(
        {"accelerate": stock_form, "torch": [*peer, "--peer", "torch"]}, {"fused": ["--fused"]}))
    table = interleave(a.rounds, ["tokens_per_s"], {
        "roux": [python, own, a.roux, RECIPES / "gpt_small.yaml", "tokens_per_s", *sets, "ddp.bucket_cap_mb=25"],
        "accelerate": stock_form,
        **strong})
    show(title + ", tokens/s", table["tokens_per_s"], {"accelerate": 1.3, "strongest": 1.0}, at_most=False)


def link(a):
    """Two processes of one thread each and a slow link between them, four micro-batches of one sample a step. Both
    sides cut their buckets at the same size: the default of both, and a smaller one, whose exchange begins earlier."""
    python, own = sys.executable, HERE / "roux_link.py"
    sets = ["launch.num_cpu_threads_per_process=1", "training.gradient_accumulation_steps=4", "training.micro_batch_size=1",
            "training.clip_grad_norm=null", "training.max_steps=8"]
    sync_each = ["accumulation.sync_each_batch=true"]
    roux = [python, own, a.roux, RECIPES / "gpt_small.yaml", SLOW_LINK]
    peer = [python, PEERS / "ddp.py", "--config", "small", "--batch", "1", "--world", "2", "--threads", "1",
            "--accumulate", "4", "--windows", "6", "--warmup", "2", "--link", SLOW_LINK]
    power_sgd = ["ddp.comm_hook=power_sgd", "ddp.comm_state_option.matrix_approximation_rank=2",
                 "ddp.comm_state_option.start_power_sgd_iter=2"]
    title = f"link: small GPT, fp32, batch 1, 2 processes, {SLOW_LINK}, tokens/s, "
    for bucket in (25, 8):
        once = [*roux, *sets, f"ddp.bucket_cap_mb={bucket}"]
        each = [*once, *sync_each]
        buckets = f"buckets of {bucket} MiB on both sides, "
        for sync, line, also, what, limits in (
                ("last", once, {"roux-each": each}, "exchanged once a step (2.0: twice as fast as after each)",
                 {"roux-each": 2.0, "accelerate": 1 / 0.95, "strongest": 1.0}),
                ("each", each, {}, "exchanged after each micro-batch",
                 {"accelerate": 1 / 0.8, "strongest": 1.0})):
            peers = {name: [*peer, "--peer", name, "--sync", sync, "--bucket-mb", bucket, "--fused"]
                     for name in ("accelerate", "torch")}
            table = interleave(a.rounds, ["tokens_per_s"], {"roux": line, **also, **peers})
            show(title + buckets + what, table["tokens_per_s"], limits, at_most=False)
        for name, hook, limit in (("bf16", ["ddp.comm_hook=bf16"], 1.4), ("power_sgd", power_sgd, 1.7)):
            table = interleave(a.rounds, ["tokens_per_s"], {"roux": [*each, *hook], "roux-whole": each})
            show(title + f"buckets of {bucket} MiB, {name}, exchanged after each micro-batch (roux-whole: without it)",
                 table["tokens_per_s"], {"roux-whole": limit}, at_most=False)


def trackers(a):
    python, script = sys.executable, PEERS / "trackers.py"
    table = interleave(a.rounds, ["points_per_s"], {
        "roux": [a.store, "burst", "1000000"],
        "sqlite": [python, script, "--peer", "sqlite", "-n", "1000000"]})
    show("trackers: a million scalars into run.db until they are on disk, points/s (sqlite: Python's sqlite3, one "
         "transaction)",
         table["points_per_s"], {"sqlite": 0.5}, at_most=False)
    rows = [last_line(a.store, "burst", 1_000_000) for _ in range(a.rounds)]
    rate = statistics.median(row["loop_points_per_s"] for row in rows)
    check("trackers: burst", f"the loop's view of them: {rate:,.0f} points/s, at least 500,000", rate >= 500_000)
    check("trackers: stored", "each that was accepted is stored:", all(r["stored"] == r["points"] for r in rows))
    table = interleave(a.rounds, ["points_per_s"], {
        "roux": [python, HERE / "roux_tracker.py", a.roux, a.store, RECIPES / "startup.yaml", "tensorboard", "1000000"],
        "tensorboard": [python, script, "--peer", "tensorboard", "-n", "100000"],
        "accelerate": [python, script, "--peer", "accelerate-tensorboard", "-n", "20000"]})
    show("trackers: scalars into TensorBoard's files, points/s (roux: from run.db, by `roux sync`)",
         table["points_per_s"], {"tensorboard": 20}, at_most=False)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([a.roux, "run", RECIPES / "startup.yaml", "--new", "--quiet", "--output-dir", folder],
                       stdout=subprocess.DEVNULL, check=True)
        run = next(path.parent for path in Path(folder).glob("*/run.db"))
        written = last_line(a.store, "fill", run, 10_000_000)
        read = last_line(a.store, "feed", run)
    print(f"\ntrackers: 10 million points, {written['points_per_s']:,.0f} points/s written, "
          f"{read['points_per_s']:,.0f} read, {written['waited']:,} waited for room")
    check("trackers: soak", "each of them is stored:", written["stored"] == 10_000_000 == written["points"])
    check("trackers: memory", f"memory: {written['peak_rss_mb']:.0f} MB writing, {read['peak_rss_mb']:.0f} reading, "
          f"{read['replay_peak_rss_mb']:.0f} reading all once more, under 200",
          max(written["peak_rss_mb"], read["replay_peak_rss_mb"]) < 200)


def mlflow(a):
    """To a real server, which both sides share, from a run that is there already and from a loop that only sends."""
    points = "50000"
    with tempfile.TemporaryDirectory() as folder, mlflow_server(folder, a.verify_python) as uri:
        os.environ["MLFLOW_TRACKING_URI"] = uri
        table = interleave(a.rounds, ["points_per_s"], {
            "roux": [sys.executable, HERE / "roux_tracker.py", a.roux, a.store, RECIPES / "startup.yaml", "mlflow", points],
            "client": [a.verify_python, HERE / "mlflow_client.py", points]})
        del os.environ["MLFLOW_TRACKING_URI"]
    show("mlflow: scalars into a real server, points/s (roux: by `roux sync`; client: MLflow's, 1,000 a call)",
         table["points_per_s"], {"client": 1}, at_most=False)


def outage(a):
    """The same training with and without an MLflow server that does not answer: refused, and accepted in silence."""
    script = [sys.executable, HERE / "roux_outage.py", a.roux, RECIPES / "steps.yaml"]
    with socket.socket() as refuses, socket.socket() as hangs:
        for server in (refuses, hangs):
            server.bind(("127.0.0.1", 0))
        hangs.listen()

        def told(server):
            block = {"type": "mlflow", "tracking_uri": "http://127.0.0.1:%d" % server.getsockname()[1], "finish_timeout": 0}
            return [*script, "--set", "trackers=" + json.dumps([block])]

        table = interleave(max(10, a.rounds), ["step_us"], {"roux": script, "refused": told(refuses), "hanging": told(hangs)})
    print("\noutage: a step of a run without trackers, and of one whose MLflow server is not there")
    for name, row in table["step_us"].items():
        ratio = row["ratio_to_first"]
        check(f"outage: {name}", f"{name}: median {row['median']:.2f} us, {ratio:.3f} of the untracked, at most 1.03",
              ratio <= 1.03)


def index(a):
    """The first list reads every run.db, the others the index."""
    runs = 10_000
    with tempfile.TemporaryDirectory() as folder:
        last_line(a.store, "index", folder, runs)
        line = [a.roux, "runs", "list", "--output-dir", folder, "--limit", "20"]
        begin = time.perf_counter()
        subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
        rate = runs / (time.perf_counter() - begin)
        print(f"\nindex: {runs:,} runs of 50 parameters and 20 metrics")
        check("index: rebuild", f"rebuilt from run.db files: {rate:,.0f} runs/s, at least 1,000", rate >= 1000)
        for name, words in (("a metric", ["--filter", "val/loss < 1 and metric_3 > 0", "--sort", "val/loss"]),
                            ("a parameter", ["--filter", "val/loss < 1 and optimizer.lr > 0.5", "--sort", "optimizer.lr"])):
            times = []
            for _ in range(5 + 4 * a.rounds):
                begin = time.perf_counter()
                subprocess.run([*line, *words], stdout=subprocess.DEVNULL, check=True)
                times.append((time.perf_counter() - begin) * 1e3)
            median = statistics.median(times[5:])
            check(f"index: {name}", f"list, filter and sort by {name}: median {median:.1f} ms, under 100", median < 100)


def sweep(a):
    """Each of roux's trials is a run with its files; Optuna's are rows of a table. A trial's value is on the disk
    before the next trial begins, as with Optuna's defaults, but the files of its run are not. `optuna-unsynced` never
    waits for the disk: it is the equal of those files, and promises less of the values."""
    python, script = sys.executable, PEERS / "sweep.py"
    optuna = {name: [python, script, "--peer", name] for name in ("optuna", "optuna-unsynced")}
    with tempfile.TemporaryDirectory() as folder:
        roux = [python, HERE / "roux_sweep.py", a.roux, RECIPES / "sweep.yaml", folder]
        for isolation, sets, least in (("fork", [], 4), ("none", ["sweep.max_concurrent_trials=1"], 10)):
            line = [*roux, f"sweep.isolation={isolation}", *sets]
            table = interleave(a.rounds, ["trials_per_s", "cpu_ms"], {"roux": line, **optuna})
            title = f"sweep: 200 trials of 20 steps, TPE, SQLite, isolation {isolation}, "
            show(title + "trials/s (on the disk before the next trial begins: roux, a trial's value but not its run; "
                 "optuna, all; optuna-unsynced, nothing)", table["trials_per_s"], {"optuna": least}, at_most=False)
            show(title + "processor time of a trial, ms (roux: with the start of the program and what is asked of it "
                 "afterwards; optuna: the trials alone)", table["cpu_ms"], {}, at_most=True)


def sweep_engine(a):
    """TPE proposes, SQLite keeps: what a sweep costs beside the training. No kill takes a trial back that has ended; the
    last one is on the disk itself before the next begins (fdatasync), of which the machine's own rate is shown beside."""
    trials, rates, syncs = 1000, [], []
    for _ in range(a.rounds):
        with tempfile.TemporaryDirectory(dir=".") as folder:  # where others may lie in memory
            syncs.append(fdatasyncs_per_second(folder))
            rates.append(last_line(a.sweep_engine, folder, trials, "tpe")["trials_per_s"])
    rate = statistics.median(rates)
    print(f"\nsweep_engine: {trials:,} trials, fdatasync {statistics.median(syncs):,.0f}/s")
    check("sweep_engine", f"TPE and SQLite: {rate:,.0f} trials/s, above 500", rate > 500)
    for pruner in ("asha", "hyperband"):  # each claim asks who is promoted, each end whether it is given up
        cpu = {trials: engine_cpu_ms(a, trials, f"{pruner}, min_steps: 3") for trials in (200, 1000, 5000)}
        told = ", ".join(f"{ms:.2f} ms at {trials:,}" for trials, ms in cpu.items())
        check("sweep_engine", f"{pruner}, processor time of a trial: {told}, at most twice as much", cpu[5000] < 2 * cpu[200])


def engine_cpu_ms(a, trials, pruner):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        return last_line(a.sweep_engine, folder, trials, "random", pruner)["cpu_ms"]


def fdatasyncs_per_second(folder, count=300):
    with open(os.path.join(folder, "probe"), "wb", buffering=0) as probe:
        begin = time.perf_counter()
        for _ in range(count):
            probe.write(b"x" * 4096)
            os.fdatasync(probe.fileno())
        return count / (time.perf_counter() - begin)


def samplers(a):
    """Not a matter of time: the best value after 100 trials, 30 seeds each. Optuna's are kept: peers/samplers.py."""
    import samplers as quality
    print("\nsamplers: median of the best value after 100 trials; worse: Wilcoxon's signed-rank test over the seeds, 5 % "
          "in all (Holm)")
    for row in quality.compare(a.samplers):
        check(f"samplers: {row['sampler']} on {row['function']}",
              f"{row['sampler']:<7} {row['function']:<16} {row['own']:<10.5g} Optuna {row['peer']:<10.5g} "
              f"p {row['p']:.3f}, not worse", not row["worse"])
    for function, spent_us in last_line(a.samplers, "cost", "tpe", 1000).items():
        check(f"samplers: cost on {function}", f"a proposal of tpe at 1,000 trials on {function}: {spent_us:.0f} us, "
              "under 1,000", spent_us < 1000)


TOPICS = {topic.__name__: topic for topic in (
    startup, steps, answers, checkpoint, profiler, dataload, jsonl, parquet, resnet, gpt, llm.llm, llm.generate,
    encoder.encoder, ddp, link, sharding.sharding, sharding.sharding_link, sharding.sharding_optimizer,
    trackers, mlflow, outage, index,
    sweep, sweep_engine, samplers,
)}


def main():
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("--bin", type=Path, required=True, help="where roux and the programs of tests/bench are")
    parser.add_argument("--bare", required=True)
    parser.add_argument("--verify-python", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures in a file, too")
    parser.add_argument("--configs", metavar="NAME,...", help=f"of llm, only these: {', '.join(llm.CONFIGS)}")
    parser.add_argument("--encoders", metavar="NAME,...", default="",
                        help=f"of encoder, only these: {', '.join(encoder.CONFIGS)}")
    parser.add_argument("--sharded", choices=sharding.MODELS, action="append", help="of sharding, only this model")
    parser.add_argument("--tiny", action="store_true",
                        help="llm, encoder and sharding with tiny models, to find mistakes of the scripts")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=", ".join(TOPICS))
    a = parser.parse_args()
    a.roux, a.dataload, a.store, a.sweep_engine, a.samplers = (
        str(a.bin / name) for name in ("roux", "bench_dataload", "bench_store", "bench_sweep_engine", "bench_samplers"))
    unknown = [name for name in a.topics if name not in TOPICS]
    if unknown:
        parser.error(f"no benchmark is called \"{unknown[0]}\"; there are {', '.join(TOPICS)}")
    a.configs = llm.chosen(a)
    a.encoders = encoder.chosen([name for name in a.encoders.split(",") if name])
    os.environ["ROUX_MARK_FIRST_STEP"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["ROUX_RECORD_CACHE"] = "0"  # each round encodes what it reads
    for name in a.topics or TOPICS:
        TOPICS[name](a)
        if a.json:
            sides.keep(a.json, a)
    if missed:
        print("\nmissed: " + "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
