"""The topic `llm` of bench.py: a language model of a Transformers folder is trained, beside Transformers.

Stock is Accelerate's loop over Transformers; the strongest peer is a plain loop with a fused optimizer and tcmalloc,
with or without torch.compile, whichever is faster. All sides read the same folder and the same ids, in the same order.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sides import PEERS, check, interleave, last_line, show, show_shares, shown, tcmalloc

HERE = Path(__file__).resolve().parent
RECIPE = HERE / "recipes/llm.yaml"
GROUPED = HERE.parent / "parity/models/llama-grouped"
SMOLLM2 = "SmolLM2-135M"
SMOLLM2_SHAPE = {"num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152}
# Names of LlamaConfig. Weights are drawn by Transformers, so that all sides begin with the same ones.
SCRATCH = {"num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
           "intermediate_size": 1408, "vocab_size": 16384}
SCRATCH_TINY = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
                "intermediate_size": 96, "vocab_size": 128}
TINY = 64   # by what --tiny divides lengths
WARMUP = 1  # steps that do not count: torch.compile compiles in the first


@dataclass
class Config:
    model: str
    mode: str                                  # roux's precision.mode
    batch: int = 4
    length: int = 512
    steps: int = 3
    rate: dict = field(default_factory=dict)   # limits of the rate, and of memory
    memory: dict = field(default_factory=dict)
    long: bool = False                         # roux with longer texts, without a peer
    lora: bool = False                         # adapters beside the frozen model
    nf4: bool = False                          # which is in 4 bits


CONFIGS = {
    "smollm2-float32": Config(SMOLLM2, "32-true", rate={"accelerate": 1.45, "strongest": 1.05},
                              memory={"accelerate": 0.7}),
    "smollm2-bf16": Config(SMOLLM2, "bf16-mixed", rate={"accelerate": 2.0, "strongest": 1.3},
                           memory={"accelerate": 0.7}),
    "scratch-bf16": Config("scratch", "bf16-mixed", batch=8, steps=5, rate={"accelerate": 2.2, "strongest": 1.3}),
    "lora-float32": Config(SMOLLM2, "32-true", lora=True),
    "lora-bf16": Config(SMOLLM2, "bf16-mixed", lora=True),
    "qlora-float32": Config(SMOLLM2, "32-true", lora=True, nf4=True),
    "qlora-bf16": Config(SMOLLM2, "bf16-mixed", lora=True, nf4=True),
    "long-float32": Config(SMOLLM2, "32-true", long=True, steps=2),
    "long-bf16": Config(SMOLLM2, "bf16-mixed", long=True, steps=2),
}


def lacks_smollm2():
    """What is wrong with the folder in BENCH_SMOLLM2."""
    folder = os.environ.get("BENCH_SMOLLM2")
    if not folder:
        return "BENCH_SMOLLM2 is not set"
    file = Path(folder) / "config.json"
    if not file.is_file():
        return f"BENCH_SMOLLM2: no config.json in the folder {folder}"
    config = json.loads(file.read_text())
    for key, value in SMOLLM2_SHAPE.items():
        if config.get(key) != value:
            return f"BENCH_SMOLLM2: {folder} is not {SMOLLM2}: {key} is {config.get(key)}, not {value}"
    return None


def chosen(a):
    """The configurations to run. Without the folder of SmolLM2 those that need it are refused before anything is
    measured, or left out where this topic was not asked for by name."""
    names = a.configs.split(",") if a.configs else list(CONFIGS)
    for name in names:
        if name not in CONFIGS:
            raise SystemExit(f"no configuration of llm is called \"{name}\"; there are {', '.join(CONFIGS)}")
    lack = None if a.tiny else lacks_smollm2()
    without = [name for name in names if lack and CONFIGS[name].model == SMOLLM2]
    if without and "llm" in a.topics:
        raise SystemExit(f"{lack}\n  hint: it names a Transformers folder of {SMOLLM2}, which tests/bench/smollm2.py "
                         "makes; --configs scratch-bf16 needs none")
    if without and not a.topics:
        print(f"llm: {', '.join(without)} left out: {lack}", flush=True)
    return [name for name in names if name not in without]


def flops_per_token(folder, length):
    """Six for each weight that is in a product with a token, and attention's products with the positions that a token
    sees: half of the length, on average."""
    c = json.loads((Path(folder) / "config.json").read_text())
    width, heads, layers = c["hidden_size"], c["num_attention_heads"], c["num_hidden_layers"]
    head = c.get("head_dim") or width // heads
    weights = width * head * (2 * heads + 2 * c["num_key_value_heads"]) + 3 * width * c["intermediate_size"]
    return 6 * (layers * weights + c["vocab_size"] * width) + 6 * layers * heads * head * length


def write_ids(path, folder, rows, length):
    vocabulary = json.loads((Path(folder) / "config.json").read_text())["vocab_size"]
    drawn = random.Random(1)
    with open(path, "w") as file:
        for _ in range(rows):
            file.write(json.dumps({"input_ids": [drawn.randrange(vocabulary) for _ in range(length)]}) + "\n")


def peak_gflops(dtype):
    """In a process of its own, whose memory does not count."""
    return last_line("env", f"PYTHONPATH={PEERS}:{os.environ.get('PYTHONPATH', '')}", sys.executable, "-c",
                     "import common, json; common.set_threads(2); print(json.dumps(common.matmul_peak('%s')))" % dtype)


class Trial:
    """One folder with the model and its ids, and the commands that train it."""

    def __init__(self, a, config, work):
        self.a, self.config, self.work = a, config, Path(work)
        self.steps = 2 if a.tiny else config.steps
        if config.model == SMOLLM2:
            self.model = GROUPED if a.tiny else Path(os.environ["BENCH_SMOLLM2"]).resolve()  # peers run elsewhere
        else:
            self.model = self.work / "model"
            shape = SCRATCH_TINY if a.tiny else SCRATCH
            made = subprocess.run([sys.executable, PEERS / "llm.py", "--new", self.model, "--shape", json.dumps(shape)],
                                  capture_output=True, text=True)
            if made.returncode:
                raise SystemExit(f"llm.py --new: exit status {made.returncode}\n{made.stderr[-2000:]}")

    def length(self, length):
        return length // TINY if self.a.tiny else length

    def ids(self, batch, length):
        path = self.work / f"{batch}x{length}.jsonl"
        if not path.exists():
            write_ids(path, self.model, batch * (WARMUP + self.steps), length)
        return path

    def roux(self, batch, length):
        return [sys.executable, HERE / "roux_throughput.py", "--warmup", WARMUP, self.a.roux, RECIPE, "tokens_per_s",
                f"init_from={self.model}", f"data.train.path={self.ids(batch, length)}",
                f"precision.mode={self.config.mode}", f"training.micro_batch_size={batch}",
                f"training.max_steps={WARMUP + self.steps}"]

    def peer(self, batch, length, *flags, dtype=None):
        dtype = dtype or ("bf16" if self.config.mode == "bf16-mixed" else "fp32")
        return [sys.executable, PEERS / "llm.py", "--model", self.model, "--ids", self.ids(batch, length),
                "--batch", batch, "--dtype", dtype, "--warmup", WARMUP, "--steps", self.steps, *flags]


def strongest_forms(a, trial, batch, length):
    """The two that may be the strongest, without Accelerate, which only adds to a step."""
    try:
        preload, suffix = tcmalloc(), "+tcmalloc"
    except SystemExit:
        if not a.tiny:
            raise
        preload, suffix = [], ""
    return {"+".join(["transformers", *switches]) + suffix:
            [*preload, *trial.peer(batch, length, *("--" + switch for switch in switches))]
            for switches in (["fused"], ["compile", "fused"])}


def beside_peers(a, config, trial):
    batch, length = config.batch, trial.length(config.length)
    title = f"llm: {config.model}{', tiny' * a.tiny}, {batch} x {length} ids, {config.mode}"
    dtype = "bf16" if config.mode == "bf16-mixed" else "fp32"
    peak = peak_gflops(dtype)
    table = interleave(a.rounds, ["tokens_per_s", "peak_rss_mb", "first_loss", "last_loss"], {
        "roux": trial.roux(batch, length),
        "accelerate": trial.peer(batch, length, "--accelerate"),
        **strongest_forms(a, trial, batch, length)}, warmup=0)  # each side leaves its first step out itself
    rates = table["tokens_per_s"]
    show(title + ", tokens/s", rates, {} if a.tiny else config.rate, at_most=False)
    for row in rates.values():
        row["step_s"] = batch * length / row["median"]
    print("  seconds a step: " + ", ".join(f"{name} {row['step_s']:.3g}" for name, row in rates.items()))
    show_shares({"tokens_per_s": 1, "gflops": flops_per_token(trial.model, length) / 1e9,
                 "peak_gflops": max(peak, peak_gflops(dtype))}, "tokens_per_s", rates)
    show(title + ", peak memory, MB", table["peak_rss_mb"], {} if a.tiny else config.memory, at_most=True)
    # Bfloat16 is rounded at other places by each side; sums of float32 are only ordered differently.
    for step, absolute, relative in (("first", 1e-3, 1e-3), ("last", 1e-2, 1e-2)):
        losses = {name: row["median"] for name, row in table[f"{step}_loss"].items()}
        allowed = absolute if dtype == "fp32" else relative * losses["accelerate"]
        apart = max(abs(loss - losses["accelerate"]) for loss in losses.values())
        check(f"{title}: losses", f"losses of the {step} step: " + ", ".join(
            f"{name} {loss:.5f}" for name, loss in losses.items()) + f"; apart by {apart:.2g}, at most {allowed:.2g}",
            apart <= allowed)


def longer(a, config, trial):
    """The rate for what has to be computed, and memory, which must not grow faster than the texts."""
    short, far = (4, trial.length(512)), (2, trial.length(2048))
    sizes = [short, (2, trial.length(512)), (2, trial.length(1024)), far]
    table = interleave(a.rounds, ["tokens_per_s", "peak_rss_mb"], {
        f"{batch} x {length}": trial.roux(batch, length) for batch, length in sizes}, warmup=0)
    title = f"llm: {config.model}{', tiny' * a.tiny}, longer texts, {config.mode}"
    print(f"\n{title}")
    counts = [flops_per_token(trial.model, length) for _, length in sizes]
    rows, memory = list(table["tokens_per_s"].values()), list(table["peak_rss_mb"].values())
    for row, resident, count in zip(rows, memory, counts):
        row.update(gflops=row["median"] * count / 1e9, peak_rss_mb=resident["median"])
        print(f"  {row['name']:<10} median {row['median']:<9.4g} min {row['min']:<9.4g} max {row['max']:<9.4g} "
              f"tokens/s, {row['gflops']:.0f} GFLOP/s, peak memory {row['peak_rss_mb']:.0f} MB, "
              f"other {row['other']:.0%}", flush=True)
    shown.append({"title": title, "sides": table["tokens_per_s"]})
    ratio, least, most = (
        rows[-1][key] * counts[-1] / counts[0] for key in ("ratio_to_first", "ratio_min", "ratio_max"))
    growth = [(memory[i + 1]["median"] - memory[i]["median"]) / (sizes[i + 1][1] - sizes[i][1]) for i in (1, 2)]
    text = f"operations of {rows[-1]['name']} are done at {ratio:.3f} ({least:.3f} to {most:.3f}) of the rate of " \
           f"{rows[0]['name']}, at least 0.8"
    grows = f"memory of one more id in each text: {growth[0]:.3f} MB, then {growth[1]:.3f}, at most 1.1 times that"
    if a.tiny:
        print(f"  {text}\n  {grows}")
        return
    check(f"{title}: rate", text, ratio >= 0.8)
    check(f"{title}: memory", grows, growth[1] <= 1.1 * growth[0])


def adapters(a, config, trial):
    """LoRA beside PEFT with Accelerate, in both of its formats where roux trains in bfloat16, and beside roux's training
    of the whole model. In 4 bits both sides quantize the same weights, bitsandbytes the peer's, and roux's LoRA on weights
    of its format is the other comparison."""
    batch, length = config.batch, trial.length(config.length)
    r = 4 if a.tiny else 16
    title = (f"llm: {config.model}{', tiny' * a.tiny}, {batch} x {length} ids, {config.mode}, "
             f"LoRA r {r} of all linear layers{' in nf4' * config.nf4}")
    block = "adapters=[{type: lora, r: %d, lora_alpha: %d, target_modules: all-linear}]" % (r, 2 * r)
    packed = "quantization={load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true}"
    whole = trial.roux(batch, length)
    other = {"roux-lora": [*whole, block]} if config.nf4 else {"roux-whole": whole}
    peft = {f"peft-{dtype}": trial.peer(batch, length, "--accelerate", "--lora", r, *["--nf4"] * config.nf4, dtype=dtype)
            for dtype in ("fp32", *(["bf16"] if config.mode == "bf16-mixed" else []))}
    table = interleave(a.rounds, ["tokens_per_s", "peak_rss_mb", "peak_anonymous_mb", "first_loss"],
                       {"roux": [*whole, block, *[packed] * config.nf4], **peft, **other}, warmup=0)
    rates, memory = table["tokens_per_s"], table["peak_anonymous_mb"]
    faster = max(peft, key=lambda name: rates[name]["median"])
    smaller = min(peft, key=lambda name: memory[name]["median"])
    least = {faster: 3.0, "roux-lora": 0.7} if config.nf4 else {faster: 2.0, "roux-whole": 1.3}
    show(title + ", tokens/s", rates, {} if a.tiny else least, at_most=False)
    show(title + ", peak of anonymous memory, MB", memory, {} if a.tiny else {smaller: 0.6}, at_most=True)
    show(title + ", peak memory with mapped files, MB", table["peak_rss_mb"], {}, at_most=True)
    losses = {name: row["median"] for name, row in table["first_loss"].items() if config.nf4 <= (name != "roux-lora")}
    apart = max(abs(loss - losses["peft-fp32"]) for loss in losses.values()) / losses["peft-fp32"]
    check(f"{title}: losses", "losses of the first step: " + ", ".join(
        f"{name} {loss:.5f}" for name, loss in losses.items()) + f"; apart by {apart:.2g}, at most 0.002", apart <= 2e-3)


def llm(a):
    for name in a.configs:
        config = CONFIGS[name]
        with tempfile.TemporaryDirectory() as work:
            (longer if config.long else adapters if config.lora else beside_peers)(a, config, Trial(a, config, work))


LENGTH, PREFILL, NEW, BATCH = 128, 512, 128, 16  # ids of a prompt, of a long one; new ones; prompts at once


def write_prompts(folder, work, length, count):
    """The same ids as texts, one JSON line each for roux, and as a list for the peers: what roux reads of the texts."""
    text = (HERE.parent.parent / "recipes/data/tinyshakespeare.txt").read_text()
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text[:200000])["input_ids"]
    rows = []
    for start in range(0, len(ids) - length, length):
        row = ids[start:start + length]
        if tokenizer(tokenizer.decode(row))["input_ids"] == row:
            rows.append(row)
        if len(rows) == count:
            break
    name = f"{count}x{length}"
    (work / f"{name}.json").write_text(json.dumps(rows))
    (work / f"{name}.txt").write_text(tokenizer.decode(rows[0]))
    with open(work / f"{name}.jsonl", "w") as file:
        for row in rows:
            file.write(json.dumps({"prompt": tokenizer.decode(row)}) + "\n")
    return work / f"{name}.jsonl", work / f"{name}.json", work / f"{name}.txt"


def generate(a):
    """SmolLM2-135M in bfloat16 on two threads: decoding, prefill, and 16 prompts at once."""
    lack = lacks_smollm2()
    if lack:
        if a.topics:
            raise SystemExit(f"{lack}\n  hint: it names a Transformers folder of {SMOLLM2}, which tests/bench/smollm2.py "
                             "makes")
        return print(f"generate: left out: {lack}", flush=True)
    folder = Path(os.environ["BENCH_SMOLLM2"]).resolve()
    weights = os.path.getsize(folder / "model.safetensors")
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)

        def roux(prompts, new, *flags):
            return [sys.executable, HERE / "roux_generate.py", a.roux, folder, prompts, new, "--precision", "bf16-true",
                    *flags]

        def peer(ids, new, dtype):
            return [sys.executable, PEERS / "generate.py", "--model", folder, "--ids", ids, "--new", new,
                    "--dtype", dtype]

        def both(ids, new):
            return {f"transformers {dtype}": peer(ids, new, dtype) for dtype in ("float32", "bfloat16")}

        lines, ids, text = write_prompts(folder, work, LENGTH, 1)
        sides = {"roux": roux(lines, NEW), **both(ids, NEW)}
        if packages := os.environ.get("BENCH_LLAMA_CPP"):
            subprocess.run([sys.executable, PEERS / "to_gguf.py", folder, work / "model.gguf"], check=True)
            sides["llama.cpp"] = ["node", PEERS / "llama_cpp.mjs", Path(packages).resolve(), work / "model.gguf", text,
                                  LENGTH, NEW, 2]
        else:
            print("generate: llama.cpp left out: BENCH_LLAMA_CPP is not set", flush=True)
        sides["read"] = [sys.executable, PEERS / "generate.py", "--read-gb", 2]
        rates = interleave(a.rounds, ["tokens_per_s"], sides, warmup=0)["tokens_per_s"]
        read = rates.pop("read")["median"]  # in GB/s
        title = f"generate: {SMOLLM2}, {NEW} ids behind {LENGTH}, tokens/s"
        show(title, rates, {"transformers float32": 2.0, "transformers bfloat16": 2.0, "llama.cpp": 0.9}, at_most=False)
        used = rates["roux"]["median"] * weights / 1e9
        check(title + ": memory", f"{used:.1f} GB/s of weights are read, {used / read:.2f} of the {read:.1f} GB/s at "
              "which two threads read 2 GB, at least 0.7", used >= 0.7 * read)

        lines, ids, _ = write_prompts(folder, work, PREFILL, 1)
        table = interleave(a.rounds, ["prefill_tokens_per_s"], {"roux": roux(lines, 1), **both(ids, 0)}, warmup=0)
        show(f"generate: {SMOLLM2}, a prompt of {PREFILL}, tokens/s", table["prefill_tokens_per_s"],
             {"strongest": 1.5}, at_most=False)

        lines, ids, _ = write_prompts(folder, work, LENGTH, BATCH)
        table = interleave(a.rounds, ["tokens_per_s"], {
            "roux": roux(lines, NEW), **both(ids, NEW), "one by one": roux(lines, NEW, "--batch-size", 1)}, warmup=0)
        show(f"generate: {SMOLLM2}, {BATCH} prompts at once, tokens/s", table["tokens_per_s"],
             {"transformers float32": 2.0, "transformers bfloat16": 2.0, "one by one": 6.0}, at_most=False)
