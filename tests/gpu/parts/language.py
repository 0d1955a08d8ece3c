"""Does what came with models of language train on the GPU as on the CPU? Models out of folders, packed and padded rows,
conversations, adapters, preferences; eval, predict and generate of what was trained."""
import json
import shutil

from lab import RECIPES, ROOT

from .numerics import furthest

MODELS, ADAPTERS = ROOT / "tests/parity/models", ROOT / "tests/parity/adapters"
NO_SAVES = ["checkpoint.save_at_end=false"]
FLOAT32, BF16 = 1e-4, 5e-2  # relative distances of the losses


class Place:
    """Files of small trainings."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        shutil.copy(RECIPES / "examples/data/tokenizer.json", folder)
        (folder / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
        rows = [[(i * 7 + j * 3) % 40 for j in range(3 + i * 5 % 11)] for i in range(24)]
        self.lines("ids.jsonl", ({"input_ids": row} for row in rows))
        self.lines("padded.jsonl", ({"input_ids": [0, 0, *row], "attention_mask": [i % 2, 0] + [1] * len(row)}
                                    for i, row in enumerate(rows)))
        asked = [(f"Is {i} even?", f"Look at digit {i * 7 % 9}.") for i in range(24)]
        self.lines("talk.jsonl", ({"messages": [{"role": "user", "content": question},
                                                {"role": "assistant", "content": answer}]}
                                  for question, answer in asked))
        self.lines("pairs.jsonl", ({"prompt": question, "chosen": " " + answer, "rejected": " I do not know."}
                                   for question, answer in asked))

    def lines(self, name, records):
        (self.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    def recipe(self, name, data, **keys):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({
            "run_name": name, "data": {"train": data}, "loss": "cross_entropy", "optimizer": {"type": "adamw", "lr": 5e-3},
            "training": {"max_steps": 12, "micro_batch_size": 4, "fused_kernels": False}, "logging_steps": 1, **keys}))
        return path

    def of_ids(self, name, model, file="ids.jsonl", **keys):
        packing = {"packing": True, "max_seq_len": 20} if "packed" in name else {}
        data = {"type": "ids", "path": str(self.folder / file), **packing}
        return self.recipe(name, data, init_from=str(MODELS / model), **keys)

    def of_texts(self, name, file, more=None, **keys):
        data = {"type": "jsonl", "path": str(self.folder / file), "max_seq_len": 48, **(more or {})}
        return self.recipe(name, data, tokenizer={"type": "file", "path": str(self.folder / "tokenizer.json")},
                           model={"type": "llama", "n_layer": 2, "n_head": 2, "n_kv_head": 1, "n_embd": 32}, **keys)


def compare(lab, record, recipes):
    """Each by the GPU and by the CPU in float32, and by the GPU in bfloat16."""
    for recipe in recipes:
        on_cpu = lab.run(recipe, "device=cpu", *NO_SAVES).series()
        for precision, at_most in (("32-true", FLOAT32), ("bf16-mixed", BF16)):
            found = lab.run(recipe, f"precision.mode={precision}", *NO_SAVES).series()
            record.check(f"{recipe.stem}, {precision}: furthest from the CPU's losses in float32, relative",
                         furthest(found, on_cpu)[0], at_most=at_most)


def models(lab, record):
    place = Place(lab.work / "language")
    compare(lab, record, [place.of_ids(model, model)
                          for model in ("gpt2-default", "llama-grouped", "mistral-window", "qwen2-window")])


def rows(lab, record):
    place = Place(lab.work / "language")
    compare(lab, record, [
        place.of_ids("packed", "llama-grouped"),
        place.of_ids("packed-window", "mistral-window"),
        place.of_ids("padded", "gpt2-default", "padded.jsonl"),
        place.of_texts("conversations", "talk.jsonl", {"chat_format": "chatml", "streaming": True, "packing": True}),
    ])


def adapters(lab, record):
    """And preferences, which adapters are trained with most."""
    place = Place(lab.work / "language")
    lora = {"type": "lora", "r": 4, "target_modules": "all-linear"}
    compare(lab, record, [
        place.of_ids("lora", "llama-grouped", adapters=[lora]),
        place.of_ids("dora", "qwen2-default", adapters=[{**lora, "use_dora": True}]),
        place.of_ids("several", "gpt2-default",
                     adapters=[{"type": "lora", "path": str(ADAPTERS / "gpt2-default")}, {**lora, "name": "own"}]),
        place.of_texts("preferences", "pairs.jsonl", adapters=[lora], loss={"type": "dpo", "beta": 0.5}),
        place.of_texts("simpo", "pairs.jsonl", adapters=[lora], loss={"type": "cpo", "loss_type": "simpo", "beta": 2}),
        place.of_texts("orpo", "pairs.jsonl", adapters=[lora], loss={"type": "orpo"}),
    ])


def commands(lab, record):
    """What was trained on one device says the same on the other."""
    place = Place(lab.work / "language")
    recipe = place.of_texts("talk", "talk.jsonl", {"chat_format": "chatml"})
    run = lab.run(recipe, "training.max_steps=60")

    def said(device, *words):
        return lab.call(lab.roux_words(*words, "--set", f"device={device}"))

    evaluated, generated, predicted = [], [], []
    for device in ("cpu", lab.device):
        evaluated.append(json.loads(said(device, "eval", run.folder, "--data", "train", "--format", "json")))
        generated.append(said(device, "generate", run.folder, "--prompt", "Is 3 even?", "--max-new-tokens", "12"))
        predicted.append(said(device, "predict", run.folder, "--data", "train", "--return", "loss"))
    record.check("eval: largest distance of a figure", apart(evaluated), at_most=FLOAT32)
    record.expect("generate: the same text", generated[0] == generated[1] and generated[0].strip())
    record.check("predict: largest distance of a loss",
                 apart([[json.loads(line) for line in text.splitlines()] for text in predicted]), at_most=1e-3)


def apart(pair):
    """The largest distance of two numbers at the same place."""
    return max(abs(a - b) for a, b in zip(*map(values_of, pair), strict=True))


def values_of(value):
    if isinstance(value, dict):
        return [one for item in value.values() for one in values_of(item)]
    if isinstance(value, list):
        return [one for item in value for one in values_of(item)]
    return [value] if isinstance(value, float) else []
