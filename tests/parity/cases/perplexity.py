"""Quantized weights in roux and in Transformers with bitsandbytes: perplexities and logits, of each other's files.

usage: perplexity.py ROUX FOLDER TEXT [--windows 8] [--json FILE]

FOLDER  SmolLM2-135M with its tokenizer
TEXT    a file of at least 5,000 tokens

Perplexities are of windows of 512 tokens, in float32, of the weights as they are, in nf4 with quantized scales, and
in 8 bits: of a folder that Transformers saved, read by both, and of the float folder, quantized as roux reads it. They may
be 0.5 % apart. Then roux merges an adapter that changes nothing, packs the model and Transformers reads it. Logits are within
1e-2 of each other, the root of the mean square of differences against that of logits. In 8 bits what is multiplied is
rounded, too, but for features beyond a threshold in any token of a pass: bitsandbytes' own logits of 400 tokens are other
ones without the 112 behind them, and roux's may be 1.5 times as far away. Of a folder that is quantized Transformers keeps
the other weights in their type, whatever is asked; here they become float32. On a CPU Transformers rounds what is multiplied by 4 bits outside of a training; so it trains.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import bitsandbytes
import torch
import transformers
from cases.quantized import TWICE, mend_bitsandbytes
from folders import machine
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from transformers.utils.logging import disable_progress_bar

LENGTH, FEWER = 512, 400
RATIO, APART, TIMES = 0.005, 1e-2, 1.5
FORMS = {  # as roux and as Transformers say them, and the flags that pack so
    "nf4": ("{load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true}", TWICE,
            ["--quantize", "nf4-double"]),
    "int8": ("{load_in_8bit: true}", {"load_in_8bit": True}, ["--quantize", "int8"]),
}
RECIPE = """
run_name: t
init_from: {folder}
{more}
data: {{train: {{type: ids, path: ids.jsonl}}}}
loss: cross_entropy
optimizer: {{type: sgd, lr: 0}}
training: {{max_steps: 1, micro_batch_size: 1}}
loader: {{shuffle: false}}
"""
ADAPTER = "adapters: [{type: lora, r: 1, target_modules: [q_proj]}]"


def load(folder, **more):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **more)
    for parameter in model.parameters():
        if parameter.dtype == torch.bfloat16:
            parameter.data = parameter.data.float()
    in_8 = getattr(model, "is_loaded_in_8bit", False)
    return model.eval() if in_8 or not getattr(model, "is_loaded_in_4bit", False) else model.train()


def peer(model, rows):
    """Perplexity, and the logits of the first row."""
    losses, logits = [], None
    with torch.no_grad():
        for row in rows:
            found = model(row[None, :]).logits[0]
            logits = found if logits is None else logits
            losses.append(found[:-1].log_softmax(-1).gather(1, row[1:, None]).neg().mean().item())
    return math.exp(sum(losses) / len(losses)), logits


class Roux:
    def __init__(self, program):
        self.program = program

    def run(self, *words):
        return subprocess.run([self.program, *words], check=True, capture_output=True, text=True).stdout

    def recipe(self, folder, more):
        pathlib.Path("r.yaml").write_text(RECIPE.format(folder=folder, more=more))

    def perplexity(self, folder, more=""):
        self.recipe(folder, more)
        words = ["eval", "r.yaml", "--checkpoint", str(folder), "--data", "train", "--format", "json"]
        return math.exp(json.loads(self.run(*words))["loss"])

    def logits(self, folder, more=""):
        self.recipe(folder, more)
        self.run("predict", "r.yaml", "--checkpoint", str(folder), "--data", "train", "--return", "logits", "--output",
                 "logits.safetensors")
        return load_file("logits.safetensors")["0"]


def apart(a, b):
    return ((a - b).square().mean() / b.square().mean()).sqrt().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("roux", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--json", type=pathlib.Path)
    flags = parser.parse_args()
    disable_progress_bar()
    mended = mend_bitsandbytes()  # as long as it lives
    folder, text, output = flags.folder.resolve(), flags.text.read_text(), flags.json and flags.json.resolve()
    roux = Roux(flags.roux.resolve())
    ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt").input_ids[0]
    rows = [ids[i * LENGTH:(i + 1) * LENGTH] for i in range(flags.windows)]
    os.chdir(tempfile.mkdtemp())
    pathlib.Path("ids.jsonl").write_text("".join(json.dumps({"input_ids": row.tolist()}) + "\n" for row in rows))
    result = {**machine(roux.program), "transformers": transformers.__version__, "bitsandbytes": bitsandbytes.__version__,
              "windows": flags.windows, "length": LENGTH}
    whole, _ = peer(load(folder), rows)
    result["as they are"] = {"transformers": whole, "roux": roux.perplexity(folder)}
    failed = []
    for name, (section, fields, pack) in FORMS.items():
        model = load(folder, quantization_config=BitsAndBytesConfig(**fields))
        model.save_pretrained(f"{name}-peer")
        AutoTokenizer.from_pretrained(folder).save_pretrained(f"{name}-peer")
        expected, logits = peer(model, rows)
        own, bound = {}, APART
        if name == "int8":
            own["logits apart, of its own of fewer tokens"] = apart(peer(model, [rows[0][:FEWER]])[1], logits[:FEWER])
            bound = TIMES * own["logits apart, of its own of fewer tokens"]
        del model
        there = pathlib.Path(f"{name}-peer").resolve()
        found = {"transformers": expected, "roux, of its file": roux.perplexity(there),
                 "roux": roux.perplexity(folder, f"quantization: {section}"),
                 "logits apart, of its file": apart(roux.logits(there), logits)}
        roux.recipe(folder, f"quantization: {section}\n{ADAPTER}")
        roux.run("run", "r.yaml", "--new", "--quiet")
        found["told"] = roux.run("export", "last", f"{name}-roux", "--merge", *pack).splitlines()[2].strip()
        ours = pathlib.Path(f"{name}-roux").resolve()
        back, others = peer(load(ours), rows)
        found |= {"transformers, of roux's file": back, "logits apart, of roux's file": apart(roux.logits(ours), others)}
        for key, value in found.items():
            if key == "told":
                continue
            good = value <= bound if "apart" in key else abs(value / expected - 1) <= RATIO
            failed += [] if good else [f"{name}: {key} is {value}"]
        result[name] = found | own | {"loss against the weights as they are": math.log(expected / whole)}
    print(json.dumps(result, indent=1))
    if output:
        output.write_text(json.dumps(result, indent=1) + "\n")
    print("\n".join(failed) or "passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
