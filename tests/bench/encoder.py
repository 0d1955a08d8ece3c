"""The topic `encoder` of bench.py: BERTs are trained to tell classes of padded texts, and a T5 to answer them, beside
Transformers.

Stock is Accelerate's loop over Transformers' BertForSequenceClassification; the strongest peer is a plain loop with a fused
optimizer and tcmalloc, with or without torch.compile, whichever is faster. All sides read the same folder and the same
ids, in the same order, and pad to the longest text of a batch.
"""
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sides import PEERS, check, interleave, last_line, show, tcmalloc

HERE = Path(__file__).resolve().parent
RECIPE = HERE / "recipes/encoder.yaml"
BATCH, STEPS, WARMUP = 32, 8, 2  # torch.compile compiles in the first steps, whose lengths differ
VOCABULARY = 30522
# Names of BertConfig: MiniLM-L6-H384 (Wang et al. 2020), and BERT-small (Turc et al. 2019).
MINILM = {"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
SMALL = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}
# Names of T5Config: T5-small (Raffel et al. 2020).
T5_SMALL = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "vocab_size": 32128}
TINY_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 2, "vocab_size": 32128}
TINY = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48}


@dataclass
class Config:
    shape: dict
    mode: str  # roux's precision.mode

    def answers(self):
        return "d_model" in self.shape

    def rate(self):
        return {"accelerate": 1.6, "strongest": 1.1} if self.answers() else {"accelerate": 1.8, "strongest": 1.2}

    def made_shape(self, tiny, dropout):
        if self.answers():
            return dict(TINY_T5 if tiny else self.shape, dropout_rate=dropout)
        return dict(TINY if tiny else self.shape, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
                    num_labels=2)


CONFIGS = {f"{name}-{short}": Config(shape, mode)
           for name, shape in (("minilm", MINILM), ("bert-small", SMALL), ("t5-small", T5_SMALL))
           for short, mode in (("float32", "32-true"), ("bf16", "bf16-mixed"))}
MEMORY = {"accelerate": 0.7}


def write_ids(path, rows, answers):
    """Texts as long as MRPC's pairs of sentences are in word pieces: about 30 to 90, most of them near 53. Answers are half
    as long."""
    drawn = random.Random(1)
    with open(path, "w") as file:
        for _ in range(rows):
            length = min(92, max(28, round(drawn.gauss(53, 14))))
            ids = [101, *(drawn.randrange(1000, VOCABULARY) for _ in range(length - 2)), 102]
            labels = [drawn.randrange(1000, VOCABULARY) for _ in range(length // 2)] if answers else drawn.randrange(2)
            file.write(json.dumps({"input_ids": ids, "labels": labels}) + "\n")


class Trial:
    """A folder of the shape, with or without dropout, the ids, and the commands that train it."""

    def __init__(self, a, config, work, dropout):
        self.a, self.config, self.model, self.ids = a, config, work / f"model-{dropout}", work / "ids.jsonl"
        self.steps = 2 if a.tiny else STEPS
        shape = config.made_shape(a.tiny, dropout)
        made = subprocess.run([sys.executable, PEERS / "encoder.py", "--new", self.model, "--shape", json.dumps(shape)],
                              capture_output=True, text=True)
        if made.returncode:
            raise SystemExit(f"encoder.py --new: exit status {made.returncode}\n{made.stderr[-2000:]}")
        write_ids(self.ids, BATCH * (WARMUP + self.steps), config.answers())

    def roux(self):
        head = "seq2seq_lm" if self.config.answers() else "sequence_classification"
        return [sys.executable, HERE / "roux_throughput.py", "--warmup", WARMUP, self.a.roux, RECIPE, "samples_per_s",
                f"init_from.path={self.model}", f"init_from.head={head}", f"data.train.path={self.ids}",
                f"precision.mode={self.config.mode}",
                f"training.micro_batch_size={BATCH}", f"training.max_steps={WARMUP + self.steps}"]

    def peer(self, *flags):
        return [sys.executable, PEERS / "encoder.py", "--model", self.model, "--ids", self.ids, "--batch", BATCH,
                "--dtype", "bf16" if self.config.mode == "bf16-mixed" else "fp32", "--warmup", WARMUP,
                "--steps", self.steps, *flags]

    def strongest_forms(self):
        """The two that may be the strongest, without Accelerate, which only adds to a step."""
        try:
            preload, suffix = tcmalloc(), "+tcmalloc"
        except SystemExit:
            if not self.a.tiny:
                raise
            preload, suffix = [], ""
        return {"+".join(["transformers", *switches]) + suffix:
                [*preload, *self.peer(*("--" + switch for switch in switches))]
                for switches in (["fused"], ["compile", "fused"])}


def same_losses(title, config, trial):
    """Without dropout, whose draws differ: both sides learn the same from the same texts."""
    roux, peer = last_line(*trial.roux()), last_line(*trial.peer("--accelerate"))
    allowed = 1e-4 if config.mode == "32-true" else 1e-2
    apart = max(abs(roux[key] - peer[key]) for key in ("first_loss", "last_loss"))
    check(f"{title}: losses", f"without dropout the losses of the first step and the last are {roux['first_loss']:.5f} and "
          f"{roux['last_loss']:.5f}, of Accelerate {peer['first_loss']:.5f} and {peer['last_loss']:.5f}; apart by "
          f"{apart:.2g}, at most {allowed:.2g}", apart <= allowed)


def encoder(a):
    for name in a.encoders:
        config = CONFIGS[name]
        title = f"encoder: {name}{', tiny' * a.tiny}, {BATCH} texts"
        with tempfile.TemporaryDirectory() as made:
            work = Path(made)
            trial = Trial(a, config, work, 0.1)
            table = interleave(a.rounds, ["samples_per_s", "peak_rss_mb"], {
                "roux": trial.roux(), "accelerate": trial.peer("--accelerate"), **trial.strongest_forms()},
                warmup=0)  # each side leaves its first steps out itself
            show(title + ", samples/s", table["samples_per_s"], {} if a.tiny else config.rate(), at_most=False)
            show(title + ", peak memory, MB", table["peak_rss_mb"], {} if a.tiny else MEMORY, at_most=True)
            same_losses(title, config, Trial(a, config, work, 0.0))


def chosen(names):
    """The configurations to run."""
    for name in names:
        if name not in CONFIGS:
            raise SystemExit(f"no configuration of encoder is called \"{name}\"; there are {', '.join(CONFIGS)}")
    return names or list(CONFIGS)
