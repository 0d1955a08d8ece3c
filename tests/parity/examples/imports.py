"""The published examples of a tool, imported: which are refused and why, and whether each recipe validates and plans.

usage: examples/imports.py ROUX CHECKOUT TOOL [--json FILE] [--source TEXT] [--only PART] [--keep FOLDER]

CHECKOUT: of the tool's repository at the commit in schemas/words; every file of YAML below its examples is given to
`roux config import`, and of its scripts each command that starts one in their docstrings. TOOL: axolotl, llama_factory,
trl, accelerate.

The Hub's repositories that a recipe names are put into a cache: a model of the type that the name has there, with few and
small weights and a tokenizer, and a data set of records of the kind that the recipe reads. With that cache and without a
connection each recipe has to pass `roux validate` and `roux plan`. A model of a type that roux lacks is a Llama here: its
recipe counts by itself, and has to pass `validate`. It fails where a recipe does not pass, or a key is unknown.
"""
import argparse
import ast
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils.logging import disable_progress_bar

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests/parity/models"
COMMIT = "0123456789" * 4
ROWS = 640  # of a vocabulary
LENGTH = 1 << 20  # positions
RECORDS = 1000
# The first pattern that the name of a model has says its type; what matches none is of a type that roux lacks.
LACKING = (r"llama-4|vision|-vl|vl-|gemma-?3n|gemma-?4|gemma-3-(4|12|27)b|qwen3\.5|qwen3-next|qwen1\.5-moe|qwen-7b$|olmo-3|"
           r"granite-4|magistral-small-2509|mistral-small-[34]|mistral-medium|ministral-?3|phi-[12]|redpajama|nemotron|"
           r"deepseek-v|internvl|llava|pixtral|voxtral|smolvlm|gpt-oss|glm")
TYPES = {
    r"mixtral": "mixtral-default", r"mistral|ministral|devstral|magistral": "mistral-full",
    r"qwen3.*-a\d+b": "qwen3_moe-default", r"qwen3|plano": "qwen3-default", r"qwen(2|1\.5)|deepcoder|cogito.*qwen": "qwen2-default",
    r"phi-3": "phi3-default", r"gemma-3": "gemma3_text-default", r"gemma-2": "gemma2-default", r"gemma": "gemma-default",
    r"granite": "granite-default", r"smollm3": "smollm3-default", r"olmo-2": "olmo2-default", r"gpt2|cerebras": "gpt2-default",
    r"llama|xgen|yi-|smollm2|cogito|orpheus": "llama-grouped",
}
TOKENS = ["<s>", "</s>", "<unk>", "<pad>", "[PAD]", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<|begin_of_text|>",
          "<|end_of_text|>", "<|eot_id|>", "<|finetune_right_pad_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|end|>",
          "<|user|>", "<|assistant|>", "<|system|>", "<|placeholder6|>", "<|eom_id|>", "[INST]", "[/INST]", "<think>",
          "</think>", "<|padding|>", "<|finetune_right_pad|>"]
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
ASK, SAY, OTHER = [{"role": "user", "content": "Say 1"}], {"role": "assistant", "content": "It is 1"}, "No"
CHAT = [*ASK, SAY]
BAD = {**SAY, "content": OTHER}
TEXTS = {"text": "It is 1 that is said", "prompt": "Say 1", "completion": "It is 1", "instruction": "Say 1", "input": "",
         "output": "It is 1", "system": "Be short"}


def type_of(name):
    short = name.rsplit("/", 1)[-1].lower()
    if re.search(LACKING, short):
        return None
    return next((folder for pattern, folder in TYPES.items() if re.search(pattern, short)), None)


def put_model(folder, kind):
    folder.mkdir(parents=True)
    config = AutoConfig.from_pretrained(MODELS / kind)
    config.vocab_size = ROWS
    if config.model_type == "gpt2":
        config.n_positions, config.n_embd, config.n_inner = 2048, 256, None
    else:
        config.hidden_size, config.intermediate_size, config.max_position_embeddings = 256, 320, LENGTH
        config.num_attention_heads, config.num_key_value_heads, config.head_dim = 4, 4, 64
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer = json.loads((ROOT / "recipes/examples/data/tokenizer.json").read_text())
    size = len(tokenizer["model"]["vocab"])
    tokenizer["added_tokens"] += [{**tokenizer["added_tokens"][0], "id": size + i, "content": token}
                                  for i, token in enumerate(TOKENS)]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<pad>"}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def record_of(words, loss):
    """A record of what a set reads, in its words: `words` is the set as the recipe has it."""
    columns = words.get("columns") or {}
    if words["type"] == "ids":
        record = {"input_ids": [5, 6, 7, 8]}
    elif loss in ("dpo", "cpo", "orpo", "reward"):
        record = {"prompt": ASK, "chosen": [SAY], "rejected": [BAD]}
    elif loss == "kto":
        record = {"prompt": ASK, "completion": [SAY], "label": True}
    elif {"instruction", "output"} & set(columns):
        record = {key: TEXTS[key] for key in ("instruction", "input", "output")}
    elif "prompt" in columns or "completion" in columns:
        record = {"prompt": TEXTS["prompt"], "completion": TEXTS["completion"]}
    elif "text" in columns or words["type"] in ("text", "text_lines"):
        record = {"text": TEXTS["text"]}
    else:
        record = {"messages": CHAT}
    roles = {"user": "user", "assistant": "assistant"}
    for role, names in (words.get("roles") or {}).items():
        roles[role] = names if isinstance(names, str) else names[0]
    role, content = columns.get("role", "role"), columns.get("content", "content")

    def renamed(value):
        if isinstance(value, list):
            return [renamed(item) for item in value]
        return {role: roles[value["role"]], content: value["content"]} if isinstance(value, dict) else value

    made = {}
    for key, value in record.items():
        name = columns.get(key, key)
        made[name[0] if isinstance(name, list) else name] = renamed(value)
    for key, name in columns.items():  # beside what every record of the kind has
        if isinstance(name, str) and key in TEXTS:
            made.setdefault(name, TEXTS[key])
    return made


def sets_of(node):
    """Every data set below a node, those of a `concat` included."""
    if isinstance(node, list):
        for item in node:
            yield from sets_of(item)
    elif isinstance(node, dict):
        if "path" in node and "type" in node:
            yield node
        for value in node.values():
            yield from sets_of(value)


class Cache:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "HF_HUB_OFFLINE": "1", "ROUX_CACHE_DIR": str(folder / "roux"),
                            "COLUMNS": "200"}

    def snapshot(self, name, revision="main"):
        place = self.folder / "hub" / name
        (place / "refs").mkdir(parents=True, exist_ok=True)
        (place / "refs" / revision).write_text(COMMIT)
        return place / "snapshots" / COMMIT

    def put_model(self, path, kind):
        name, _, revision = path.removeprefix("hf://").partition("@")
        snapshot = self.snapshot("models--" + name.replace("/", "--"), revision or "main")
        if not snapshot.exists():
            put_model(snapshot, kind)

    def put_set(self, words, loss):
        """A repository in which every split of the subset is the same file."""
        owner, name, *file = words["path"].removeprefix("hf://datasets/").split("@")[0].split("/", 2)
        repository = f"datasets--{owner}--{name}"
        snapshot = self.snapshot(repository)
        shutil.rmtree(snapshot, ignore_errors=True)
        snapshot.mkdir(parents=True)
        if file:
            files = {file[0]: None}
        else:
            split = re.match(r"\w*", words.get("split") or "").group() or "train"
            splits = [{"split": one, "path": "all.jsonl"} for one in sorted({"train", "validation", "test", split})]
            card = {"configs": [{"config_name": words.get("subset") or "default", "data_files": splits}]}
            files = {"README.md": f"---\n{yaml.safe_dump(card)}---\n", "all.jsonl": None}
        records = "".join(json.dumps(record_of(words, loss)) + "\n" for _ in range(RECORDS))
        for path, text in files.items():
            (snapshot / path).parent.mkdir(parents=True, exist_ok=True)
            (snapshot / path).write_text(records if text is None else text)
        listing = self.folder / "roux/listings" / repository / f"{COMMIT}.json"
        listing.parent.mkdir(parents=True, exist_ok=True)
        listing.write_text(json.dumps({"sha": COMMIT, "siblings": [{"rfilename": path} for path in files]}))

    def call(self, program, work, *words, cache="hub"):
        return subprocess.run([program, *map(str, words)], cwd=work, capture_output=True, text=True, timeout=300,
                              env={**self.environment, "HF_HUB_CACHE": str(self.folder / cache)})


def commands_of(file):
    """Those of a docstring that start the file itself."""
    documented = ast.get_docstring(ast.parse(file.read_text())) or ""
    for command in re.findall(r"^(?:[A-Z_]+=\S+ )*(?:python|accelerate launch)\b(?:.*\\\n)*.*$", documented, re.MULTILINE):
        if file.name in command and "--" in command:
            yield command + "\n"


def inputs(checkout):
    files = [*(checkout / "examples").rglob("*"), *(checkout / "trl/scripts").glob("*.py")]
    for file in sorted(files):
        name = str(file.relative_to(checkout))
        if file.suffix in (".yaml", ".yml"):
            yield name, file
        elif file.suffix == ".py":
            for number, block in enumerate(commands_of(file), 1):
                line = checkout / f"command-{number}.sh"
                line.write_text(block)
                yield f"{name} {number}", line


def refused_of(told):
    """Errors of an import: message and the line that it is about."""
    found = []
    for line in told.splitlines():
        if match := re.match(r"\S+?:\d+:\d+: error: (.*)", line):
            found.append(match[1])
    return found or [told.strip().splitlines()[0] if told.strip() else "?"]


def models_of(recipe):
    """The paths of folders of models: of the weights first, of a model of new weights, and of a tokenizer."""
    start = recipe.get("init_from")
    found = [start.get("path") if isinstance(start, dict) else start]
    found += [(recipe.get("model") or {}).get("config"), (recipe.get("tokenizer") or {}).get("path")]
    return [path for path in found if path]


def complete(recipe_path):
    """A recipe of machines alone, in a whole one."""
    part = {"extends": recipe_path.name, "model": {"type": "mlp", "hidden": [8]}, "loss": "mse",
            "data": {"train": {"type": "synthetic", "task": "regression", "num_samples": 64}},
            "optimizer": {"type": "sgd", "lr": 0.1}, "training": {"max_steps": 5, "micro_batch_size": 4}}
    whole = recipe_path.with_name("whole.yaml")
    whole.write_text(json.dumps(part))
    return whole


def put_all(recipe, cache, work):
    """What the recipe names. The model's path, and its folder in tests/parity/models or None."""
    loss = recipe.get("loss")
    loss = loss.get("type") if isinstance(loss, dict) else loss
    paths = models_of(recipe)
    kind = type_of(paths[0].split("@")[0]) if paths else None
    for path in paths:
        if path.startswith("hf://"):
            cache.put_model(path, kind or "llama-grouped")
        elif not (work / path).exists():
            put_model(work / path, kind or "llama-grouped")
    for words in sets_of(recipe.get("data") or {}):
        path = words["path"]
        if not isinstance(path, str):
            continue
        if path.startswith("hf://datasets/"):
            cache.put_set(words, loss)
        elif not (work / path).exists():
            (work / path).write_text((json.dumps(record_of(words, loss)) + "\n") * RECORDS)
    return (paths[0] if paths else None), kind


def against(options, cache, work, recipe_path):
    """What `validate` and `plan` say against a recipe; its model, and the type of that here or null."""
    recipe = yaml.safe_load(recipe_path.read_text()) or {}
    model, kind = put_all(recipe, cache, work)
    if model is None and "model" not in recipe:
        recipe_path = complete(recipe_path)
    for command in ("validate", "plan") if kind or model is None else ("validate",):
        done = cache.call(options.roux, work, command, recipe_path)
        if done.returncode:
            return {"command": command, "says": refused_of(done.stderr)}, model, kind
    return None, model, kind


def machine(program):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    about = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.partition(":")[2].strip() for line in about if line.startswith("model name")), "")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return {"commit": commit.strip(), "processor": processor, "program": version.strip()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roux", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("tool", choices=["axolotl", "llama_factory", "trl", "accelerate"])
    parser.add_argument("--json", type=pathlib.Path, help="a file whose entry of the tool is replaced")
    parser.add_argument("--source", help="the repository and commit of CHECKOUT, if it is not that of schemas/words")
    parser.add_argument("--only", default="", help="a part of the names of examples")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the recipes")
    options = parser.parse_args()
    disable_progress_bar()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        cache, work = Cache(pathlib.Path(folder) / "cache"), pathlib.Path(folder) / "work"
        shutil.copytree(options.checkout, work, ignore=shutil.ignore_patterns(".git"))
        for name, file in inputs(work):
            if options.only not in name:
                continue
            recipe = work / "imported-recipe.yaml"
            recipe.unlink(missing_ok=True)
            # With another cache: a tokenizer in it would be compared with the tokens that the file names.
            done = cache.call(options.roux, work, "config", "import", file.relative_to(work), "-o", recipe.name,
                              cache="empty")
            row = {"file": name}
            if done.returncode == 0:
                row["against"], row["model"], row["type"] = against(options, cache, work, recipe)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(recipe, options.keep / (re.sub(r"[/ ]", "-", name) + ".recipe.yaml"))
            else:
                row["refused"] = refused_of(done.stderr)
            row["unknown"] = [line for line in done.stderr.splitlines() if "that roux knows" in line]
            rows.append(row)
            if row.get("against") or row["unknown"]:
                print(name, json.dumps(row), flush=True)
    imported = [row for row in rows if "refused" not in row]
    here = [row for row in imported if row["type"] or row["model"] is None]
    reasons = collections.Counter(reason for row in rows for reason in row.get("refused", []))
    table = {
        "files": len(rows), "imported": len(imported), "planned": sum(not row["against"] for row in here),
        "of_types_that_lack": sum(not row["against"] for row in imported if row not in here),
        "not_planned": {row["file"]: row["against"] for row in imported if row["against"]},
        "unknown": [line for row in rows for line in row["unknown"]],
        "models_of_types_that_lack": sorted({row["model"] for row in imported if row not in here}),
        "refused": dict(reasons.most_common()),
    }
    print(json.dumps({key: value for key, value in table.items() if key != "refused"}, indent=1))
    for reason, count in reasons.most_common():
        print(f"{count:5} {reason}")
    if options.json:
        seen = json.loads(options.json.read_text()) if options.json.exists() else {}
        source = json.loads((ROOT / f"schemas/words/{options.tool}.json").read_text())["source"]
        seen[options.tool] = {**machine(options.roux), "source": options.source or source, **table}
        options.json.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    return 1 if table["not_planned"] or table["unknown"] else 0


if __name__ == "__main__":
    sys.exit(main())
