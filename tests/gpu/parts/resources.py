"""What is this machine, what memory does a training need there, and does NCCL run?"""
import re
import shutil
import subprocess

from lab import BENCH, GpuMemory

GB = 1e9


def environment(lab, record):
    said = lab.call(lab.roux_words("env"))
    rows = dict(re.findall(r"^(\S[\S ]*?)  +(.*)$", said, re.M))
    for key in ("roux", "system", "processor", "memory", "CUDA"):
        record.figure(key, rows.get(key))
    record.figure("device", rows.get("GPU"))
    record.figure("torch for Python", lab.peers["torch"])
    record.figure("accelerate", lab.peers["accelerate"])
    for name, version in lab.peers.items():
        if not version:
            record.note(f"{name} for Python cannot be used here: what is compared with it is left out")
    if lab.pretend:
        return record.expect("roux env lists a GPU or none", "GPU" in rows)
    record.expect("roux env lists a GPU with its compute capability", "compute capability" in rows.get("GPU", ""))
    record.expect("torch for Python is 2.11", lab.peers["torch"].startswith("2.11."))
    if shutil.which("nvidia-smi"):
        query = "name,driver_version,memory.total,power.limit,clocks.max.sm,compute_mode"
        record.figure("nvidia-smi", dict(zip(query.split(","), subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True,
            text=True).stdout.strip().split(", "))))


def nccl(lab, record):
    said = lab.call(lab.roux_words("self-test"), starts=4, ROUX_OUTPUT_DIR=str(lab.work / "self-test"))
    record.expect("self-test: losses of 2 processes equal those of one", "losses of 2 processes" in said)
    if lab.pretend:
        return
    for what in ("training in bfloat16", "NCCL group of one rank", "NCCL collective that hangs"):
        record.expect(f"self-test: {what}", f"ok  GPU 0: {what}" in said)


def memory(lab, record):
    out_of_memory(lab, record)
    peaks(lab, record)


def out_of_memory(lab, record):
    """On the GPU LibTorch's allocator is told to stop at 1.5 GB; on the CPU roux itself can be."""
    recipe, batch = BENCH / "recipes/gpt_small.yaml", 16 if lab.pretend else 64
    sets = ["deterministic=true", "training.max_steps=4", f"training.global_batch_size={batch}"]
    if lab.pretend:
        sets += ["model.n_layer=1", "model.n_embd=64", "model.vocab_size=256", "data.train.max_seq_len=64"]
        limit, environment = ["training.max_memory=5MB"], {}
    else:
        share = 1.5 * GB / GpuMemory().read().total
        limit, environment = [], {"PYTORCH_CUDA_ALLOC_CONF": f"per_process_memory_fraction:{share:.5f}"}
    drill = lab.run(recipe, *sets, *limit, f"training.micro_batch_size={batch}", "training.auto_micro_batch=halve",
                    **environment)
    events = drill.events("out_of_memory")
    record.expect("out-of-memory drill: the micro-batch is halved until it fits", events)
    if not events:
        return
    fits = events[-1]["to"]
    record.figure("out-of-memory drill: micro-batch that fits", fits)
    record.expect("out-of-memory drill: the losses are those of a run that began with it, to the last bit",
                  drill.series() == lab.run(recipe, *sets, f"training.micro_batch_size={fits}").series())


def peaks(lab, record):
    """The GPU's memory in use, less what a tiny training uses: the context, the libraries and the kernels."""
    gpt, images = BENCH / "recipes/gpt2.yaml", BENCH / "recipes/resnet18.yaml"
    saves = ["checkpoint.save_steps=null", "checkpoint.save_at_end=false", "training.max_steps=4"]
    long = ["model.n_positions=1024", "data.train.max_seq_len=1024", *saves]
    trainings = {
        "GPT-2, bf16-mixed, micro-batch 8": (gpt, [*long, "training.micro_batch_size=8", "precision.mode=bf16-mixed"]),
        "GPT-2, float32, micro-batch 4": (gpt, [*long, "training.micro_batch_size=4"]),
        "ResNet-18, bf16-mixed, micro-batch 1024": (
            images, ["checkpoint.save_at_end=false", "training.max_steps=4", "training.micro_batch_size=1024",
                     "precision.mode=bf16-mixed"]),
    }
    base = 0.0 if lab.pretend else peak(lab, BENCH / "recipes/startup.yaml", ["training.max_steps=20"])
    record.figure("memory of a tiny training, GB", base / GB)
    for name, (recipe, sets) in trainings.items():
        if lab.pretend:
            sets = [*sets, "training.max_steps=1", "training.micro_batch_size=1"]
            sets += ["data.train.num_samples=8"] if recipe == images else \
                ["model.n_layer=1", "model.n_embd=48", "model.vocab_size=257", "data.train.max_seq_len=32"]
        planned = lab.plan(recipe, *sets)["tensor_bytes"]
        used = peak(lab, recipe, sets) - base
        record.figure(f"{name}: planned, used, GB", [planned / GB, used / GB])
        record.check(f"{name}: peak memory is off the plan by, relative", abs(used - planned) / used, at_most=0.1)


def peak(lab, recipe, sets):
    if lab.pretend:
        return lab.run(recipe, *sets).summary["peak_memory_bytes"]
    with GpuMemory() as memory:
        lab.run(recipe, *sets)
    return float(memory.peak)
