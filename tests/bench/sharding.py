"""roux's sharding beside PyTorch's FSDP, two processes of one thread each."""
import sys
from pathlib import Path

from sides import PEERS, fastest, forms, interleave, relative, show, show_interval, tcmalloc

HERE = Path(__file__).resolve().parent
RECIPES = HERE / "recipes"
SLOW_LINK = "1gbit:1ms"
MODELS = {"gpt2": "bf16", "small": "fp32"}  # with what they are trained in
WORLD, WARMUP = 2, 2
TINY = {"n_layer": 3, "d_model": 32, "n_head": 2, "seq_len": 32, "vocab": 128, "batch": 2}
METRICS = ["steps_per_s", *(f"rank_{rank}_rss_mb" for rank in range(WORLD))]


class Trial:
    """The commands that train one model, on the loopback interface or over a link."""

    def __init__(self, a, config, link=None):
        self.a, self.config, self.link = a, config, link
        self.dtype = MODELS[config]
        self.steps = 2 if a.tiny else 5

    @property
    def title(self):
        dtype = {"bf16": "bf16-mixed", "fp32": "float32"}[self.dtype]
        return f"{self.config} GPT{', tiny' * self.a.tiny}, {dtype}, {WORLD} processes, {self.link or 'loopback'}"

    def limit(self, what, metric):
        """What roux divided by the strongest peer has to reach, or to stay under."""
        if what == "gradients":
            return 1.0
        if metric == "steps_per_s":
            return 1.25 if self.link else 1.5
        return 0.7

    def roux(self, *sets):
        line = [sys.executable, HERE / "roux_link.py", "--world", WORLD, self.a.roux,
                RECIPES / ("gpt_small.yaml" if self.config == "small" else "gpt2.yaml"), self.link or "loopback",
                f"precision.mode={'bf16-mixed' if self.dtype == 'bf16' else '32-true'}", "training.clip_grad_norm=null",
                f"training.max_steps={WARMUP + self.steps}", "launch.num_cpu_threads_per_process=1",
                "checkpoint.save_steps=null", "checkpoint.save_at_end=false"]
        if self.config == "gpt2":
            line += ["model.n_positions=256", "data.train.max_seq_len=256", "training.micro_batch_size=2"]
        if self.a.tiny:
            names = {"n_layer": "model.n_layer", "d_model": "model.n_embd", "n_head": "model.n_head",
                     "seq_len": "data.train.max_seq_len", "batch": "training.micro_batch_size"}
            line += [f"{name}={TINY[key]}" for key, name in names.items()] + ["model.vocab_size=256"]
        return [*line, *sets]

    def peer(self, name, *flags):
        line = [sys.executable, PEERS / "sharding.py", "--peer", name, "--config", self.config, "--dtype", self.dtype,
                "--world", WORLD, "--steps", self.steps, "--warmup", WARMUP, *flags]
        if self.a.tiny:
            line += [word for key, value in TINY.items() for word in (f"--{key.replace('_', '-')}", value)]
        return line + (["--link", self.link] if self.link else [])


def strongest_flags(a, trial):
    """What makes fully_shard the fastest here, as (what runs it, flags): one run of each form."""
    try:
        tcmalloc()
    except SystemExit:
        if not a.tiny:
            raise
        return [], ["--adamw", "fused"]
    commands = {}
    for adamw in ("fused", "foreach"):
        found = forms({f"fsdp2+{adamw}": trial.peer("fsdp2", "--adamw", adamw)},
                      {} if a.tiny else {"compile": ["--compile"]})
        commands.update(found)
    (name,) = fastest(f"sharding: {trial.title}", "steps_per_s", commands, kept=1)
    words = name.split("+")
    return (tcmalloc() if "tcmalloc" in words else [],
            ["--adamw", words[1], *(["--compile"] if "compile" in words else [])])


def beside_fsdp(a, trial):
    before, flags = strongest_flags(a, trial)
    peers = {"fsdp2": trial.peer("fsdp2", *flags), "fsdp1": trial.peer("fsdp1", *flags),
             "fsdp2-keep": trial.peer("fsdp2", "--keep", *flags), "fsdp1-grad-op": trial.peer("fsdp1", "--keep", *flags)}
    if trial.dtype == "bf16":  # the others send gradients in bfloat16, as roux does
        peers["fsdp2-float32-gradients"] = trial.peer("fsdp2", "--float32-gradients", *flags)
    table = interleave(a.rounds, METRICS, {
        "roux": trial.roux("parallelism.shard=parameters"), "roux-gradients": trial.roux("parallelism.shard=gradients"),
        "roux-kept": trial.roux("parallelism.shard=parameters", "parallelism.reshard_after_forward=false"),
        **{name: [*before, *command] for name, command in peers.items()}}, warmup=0)
    gradients = ["fsdp2-keep", "fsdp1-grad-op"]
    parameters = [name for name in peers if name not in gradients]
    for what, own, others in (("parameters", "roux", parameters), ("parameters, kept", "roux-kept", gradients),
                              ("gradients", "roux-gradients", gradients)):
        for metric, text in zip(METRICS, ["steps/s", *(f"peak memory of process {rank}, MB" for rank in range(WORLD))]):
            rows = relative(table[metric], [own, *others])
            rows = {"roux" if name == own else name: row for name, row in rows.items()}
            limits = {} if a.tiny else {"strongest": trial.limit(what, metric)}
            show(f"sharding: {trial.title}, shard: {what}, {text}", rows, limits, at_most=metric != "steps_per_s")
            show_interval(text, rows, [("roux", name) for name in others])


def sharding(a):
    for config in a.sharded or MODELS:
        beside_fsdp(a, Trial(a, config))


def sharding_link(a):
    for config in a.sharded or MODELS:
        beside_fsdp(a, Trial(a, config, SLOW_LINK))


def sharding_optimizer(a):
    """What dividing the optimizer's state costs beside DDP, in at least nine pairs; ZeroRedundancyOptimizer beside."""
    trial = Trial(a, "small")
    peers = {"zero1": trial.peer("ddp", "--zero1", "--adamw", "fused"), "ddp": trial.peer("ddp", "--adamw", "fused")}
    table = interleave(a.rounds if a.tiny else max(9, a.rounds), METRICS, {
        "roux": trial.roux("parallelism.shard=optimizer"), "roux-ddp": trial.roux(), **peers}, warmup=0)
    for metric, text in zip(METRICS, ["steps/s", *(f"peak memory of process {rank}, MB" for rank in range(WORLD))]):
        limits = {} if a.tiny or metric != "steps_per_s" else {"zero1": 1.0}
        show(f"sharding: {trial.title}, shard: optimizer, {text}", table[metric], limits, at_most=metric != "steps_per_s")
        show_interval(text, table[metric], [("roux", "roux-ddp"), ("roux", "zero1"), ("zero1", "ddp")])
