"""How fast is roux beside PyTorch and Accelerate on the same GPU? Both sides run in turn, with the same micro-batch."""
import array
import random
import shlex

from lab import BENCH, Failed, OutOfMemory, last_json

GPT2_VOCABULARY, GPT2_CONTEXT, GPT2_MICRO_BATCH = 50257, 1024, 8


def compare(lab, record, title, metric, rounds, commands, limits):
    """Records what each side reached; `limits`: what roux divided by that peer has to reach."""
    missing = [name for name, words in commands.items() if not words]
    if missing and not lab.pretend:
        record.note(f"{title}: not there on this machine: {', '.join(missing)}")
    rows = lab.interleave(rounds, [metric], commands)[metric]
    for name, row in rows.items():
        record.figure(f"{title}: {name}", {key: row[key] for key in ("median", "min", "max", "other")})
        if name == "roux":
            continue
        ratio = 1 / row["ratio_to_first"]
        record.figure(f"{title}: roux of {name}", ratio)
        if name in limits:
            record.check(f"{title}: roux of {name}", ratio, at_least=limits[name])
    return rows


def largest(lab, sizes, command):
    """The largest micro-batch that a side holds, for three steps; 0 if none. `sizes` fall. Each attempt is a start, so it
    begins in the middle."""
    if not command(sizes[0]):
        return 0
    first, end = 0, len(sizes)  # from `end` on they fit
    while first < end:
        middle = (first + end) // 2
        try:
            lab.call(command(sizes[middle]))
            end = middle
        except OutOfMemory:
            first = middle + 1
    return sizes[end] if end < len(sizes) else 0


def largest_of_both(lab, record, title, sizes, roux, peer):
    """The largest micro-batch that both sides hold; 0 if none."""
    holds = {"roux": largest(lab, sizes, roux), "accelerate": largest(lab, sizes, peer)}
    for name, size in holds.items():
        record.figure(f"{title}: largest micro-batch of {name}", size)
    return min((size for size in holds.values() if size), default=0)


def compiled(lab, record, title, words):
    """The same with torch.compile, which needs a compiler for what it makes; a machine may lack one."""
    if not words or lab.pretend:
        return None
    try:
        lab.call([*words, "--compile"])
    except Failed as failure:
        record.note(f"{title}: torch.compile cannot be used here: {str(failure)[-600:]}")
        return None
    return [*words, "--compile"]


def share_of_peak(lab, record, title, words, metric, rows):
    if not words:
        return
    figures = last_json(lab.call([word for word in words if word != "--no-peak"]))
    record.figure(f"{title}: GFLOP/s of a large matrix product by PyTorch", figures["peak_gflops"])
    for name, row in rows.items():
        record.figure(f"{title}: {name}, share of that",
                      row["median"] * figures["gflops"] / figures[metric] / figures["peak_gflops"])


def gpt(lab, record):
    """GPT-2 of 124 M parameters in bf16, with a micro-batch that every GPU holds."""
    compare_gpt(lab, record, lambda roux, peer: 2 if lab.pretend else GPT2_MICRO_BATCH)


def gpt_largest(lab, record):
    """The same with the largest micro-batch that both sides hold."""
    sizes = (2, 1) if lab.pretend else (256, 128, 64, 32, 16, GPT2_MICRO_BATCH)
    compare_gpt(lab, record, lambda roux, peer: largest_of_both(
        lab, record, "GPT-2", sizes, lambda size: roux(size, 3), lambda size: peer("accelerate", size, steps=1)))


def compare_gpt(lab, record, choose):
    """Random tokens of its vocabulary on both sides, as there is no tokenizer. `choose`: the micro-batch, of commands."""
    vocabulary, context = (97, 32) if lab.pretend else (GPT2_VOCABULARY, GPT2_CONTEXT)
    tokens = lab.work / "tokens.u16"
    count = 64 * context if lab.pretend else 2_000_000
    tokens.write_bytes(array.array("H", random.Random(0).choices(range(vocabulary), k=count)).tobytes())
    sets = [f"device={lab.device}", "precision.mode=bf16-mixed", f"model.n_positions={context}",
            f"model.vocab_size={vocabulary}", "data.train.type=tokens", f"data.train.path={tokens}",
            f"data.train.vocab_size={vocabulary}", f"data.train.max_seq_len={context}", "data.train.stride=null",
            "training.clip_grad_norm=1", "checkpoint.save_steps=null", "checkpoint.save_at_end=false"]
    flags = ["--config", "gpt2", "--dtype", "bf16", "--device", lab.device, "--seq-len", context, "--vocab", vocabulary]
    if lab.pretend:
        sets += ["model.n_layer=1", "model.n_embd=48", "model.n_head=2"]
        flags += ["--n-layer", 1, "--d-model", 48, "--n-head", 2]

    def roux(size, steps=22):
        return lab.own("roux_throughput.py", lab.roux, BENCH / "recipes/gpt2.yaml", "tokens_per_s", *sets,
                       f"training.micro_batch_size={size}", f"training.max_steps={3 if lab.pretend else steps}")

    def peer(name, size, *more, steps=20):
        return lab.peer("gpt.py", "--peer", name, *flags, "--batch", size, "--steps", 1 if lab.pretend else steps,
                        "--no-peak", *more)

    size = choose(roux, peer)
    if size == 0:
        return record.note("GPT-2: not even the smallest micro-batch fits")
    title = f"GPT-2 124M, bf16, {context} tokens, micro-batch {size}, tokens/s"
    rows = compare(lab, record, title, "tokens_per_s", 2, {
        "roux": roux(size),
        "accelerate": peer("accelerate", size),
        "torch+fused": peer("torch", size, "--fused"),
        "accelerate+compile+fused": compiled(lab, record, title, peer("accelerate", size, "--fused")),
    }, {"accelerate": 1.2, "accelerate+compile+fused": 1.0})
    share_of_peak(lab, record, title, peer("torch", size, "--fused"), "tokens_per_s", rows)


def resnet(lab, record):
    sets = [f"device={lab.device}", "precision.mode=bf16-mixed"]
    if lab.pretend:
        sets += ["data.train.num_samples=16"]

    def roux(size, steps=22):
        return lab.own("roux_throughput.py", lab.roux, BENCH / "recipes/resnet18.yaml", "samples_per_s=images_per_s",
                       *sets, f"training.micro_batch_size={size}", f"training.max_steps={3 if lab.pretend else steps}")

    def peer(name, size, *more):
        return lab.peer("resnet.py", "--peer", name, "--dtype", "bf16", "--device", lab.device, "--batch", size,
                        "--steps", 1 if lab.pretend else 20, "--no-peak", *more)

    for size in (2,) if lab.pretend else (256, 1024):
        title = f"ResNet-18, bf16, 32 x 32, micro-batch {size}, images/s"
        rows = compare(lab, record, title, "images_per_s", 2, {
            "roux": roux(size),
            "accelerate": peer("accelerate", size),
            "torch+fused": peer("torch", size, "--fused"),
        }, {})
    share_of_peak(lab, record, title, peer("torch", size, "--fused"), "images_per_s", rows)


def mlp(lab, record):
    """The framework's own time around a step. roux trains with CUDA graphs, which the aim is for, and without."""
    def peer(name, *more):
        return lab.peer("step_overhead.py", "--peer", name, "--device", lab.device,
                        "--steps", 20 if lab.pretend else 3000, "--warmup", 5 if lab.pretend else 200, *more)

    def roux(*sets):
        return lab.own("roux_steps.py", lab.roux, BENCH / "recipes/steps.yaml", f"device={lab.device}",
                       f"training.max_steps={50 if lab.pretend else 10000}", *sets)

    compare(lab, record, "MLP 32-64-1, batch 32, steps/s", "steps_per_s", 2, {
        "roux": roux(lab.graphs()),
        "roux-without-graphs": roux(),
        "accelerate": peer("accelerate"),
        "accelerate-loader": peer("accelerate", "--data", "loader"),
        "torch+fused": peer("torch", "--optimizer", "adamw_fused"),
    }, {"accelerate": 5.0})


def startup(lab, record):
    roux = shlex.join(map(str, lab.roux_words(
        "run", BENCH / "recipes/startup.yaml", "--new", "--quiet", "--output-dir", lab.work / "startup",
        "--set", f"device={lab.device}")))

    def peer(name):
        words = ["--peer", name, "--device", lab.device]
        lab.peer("startup_child.py", name, lab.device)  # what startup.py starts
        return lab.peer("startup.py", *words) if lab.peers[name] else None

    compare(lab, record, "start to the first step, s", "first_step_s", 2, {
        "roux": lab.own("peers/startup.py", "--cmd", roux), "accelerate": peer("accelerate"), "torch": peer("torch")},
        {})


def checkpoint(lab, record):
    """The state of GPT-2 and AdamW, 1.5 GB. The limit is a copy of as many bytes into page-locked memory."""
    sets, every, small = [f"device={lab.device}"], 400, []
    if lab.pretend:  # a small state, and steps that are long enough for its save
        sets += ["model.n_layer=1", "model.n_embd=48", "model.vocab_size=257", "data.train.max_seq_len=256",
                 "training.micro_batch_size=32"]
        every, small = 40, ["--n-layer", 1]
    runs = 1 if lab.pretend else 3
    peers = {name: lab.peer("checkpoint.py", "--peer", name, "--device", lab.device, "--runs", runs, *small)
             for name in ("accelerate", "torch")}
    machine = lab.peer("../machine.py", 10 if lab.pretend else 1493, lab.device)
    metrics = ["stall_ms", "committed_s", "stall_sync_ms", "synced_s", "load_s"]
    table = lab.interleave(1, metrics, {
        "roux": lab.own("roux_checkpoint.py", lab.roux, BENCH / "recipes/gpt2.yaml", "save", "--every", every, *sets),
        "a copy by the machine": machine, **peers})
    for metric, rows in table.items():
        for name, row in rows.items():
            record.figure(f"checkpoint, {metric}: {name}", row["median"])
    if machine:
        rows = table["stall_ms"]
        record.check("checkpoint: stall of an asynchronous save, in copies from the device to the host",
                     rows["roux"]["median"] / rows["a copy by the machine"]["median"], at_most=1.5)
