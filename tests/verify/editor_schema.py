#!/usr/bin/python3
"""Checks the editors' schema with an independent JSON Schema validator: editor_schema.py SOURCE_DIR [PROGRAM].

Every recipe of the project fits it, and recipes that an editor should underline do not. Text is read by the YAML 1.2 core
rules, as the YAML language server reads it: PyYAML's own are those of 1.1, where `no` is false and `1e-4` is text.
"""
import json
import pathlib
import re
import sys

import jsonschema
import yaml


class Core(yaml.SafeLoader):
    """YAML 1.2 core scalars."""


Core.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
     list("-+0123456789.")),
]:
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)

WHOLE = """
model: {type: mlp, hidden: [4]}
data: {train: {type: synthetic}}
loss: mse
optimizer: {type: sgd, lr: 0.1}
training: {max_steps: 2}
"""

FITS = {
    "whole recipe": "",
    "short form of a section": "precision: bf16-mixed",
    "references": "seed: ${vars.seed}\neval: {eval_steps: '${vars.every}', metrics: '${vars.metrics}'}\nvars: {seed: 1}",
    "units": "checkpoint: {save_steps: 30min}\neval: {eval_steps: 0.25ep}",
    "compound time": "eval: {eval_steps: 1h30min}",
    "one metric": "eval: {metrics: perplexity}",
    "absent on purpose": "compat: null",
    "another framework's words": "mixed_precision: no\nnum_epochs: 3",
    "part of a recipe": "extends: base.yaml\nlr_scheduler: {warmup_steps: 10}",
    "groups": "callbacks: [{type: early_stopping, monitor: val/loss}]",
}

FAILS = {
    "unknown key": "sede: 1",
    "unknown key of a section": "eval: {eval_step: 10}",
    "unknown key of a component": "optimizer: {type: sgd, learning: 0.1}",
    "key of another component": "optimizer: {type: sgd, betas: [0.9, 0.99]}",
    "unknown component": "optimizer: {type: sdg}",
    "unknown bare component": "loss: entropy",
    "bare component that needs keys": "callbacks: [early_stopping]",
    "text for a number": "seed: many",
    "number for a boolean": "deterministic: 1",
    "fraction for an integer": "logging_steps: 0.5",
    "out of range": "logging_steps: 0",
    "outside of an enum": "precision: {mode: fp32}",
    "unit that is not there": "eval: {eval_steps: 3 weeks}",
    "list for a mapping": "loader: [shuffle]",
    "list item without a type": "callbacks: [{monitor: val/loss}]",
    "list item without what it needs": "callbacks: [{type: early_stopping}]",
    "too many items": "optimizer: {type: adamw, betas: [0.9, 0.99, 0.999]}",
    "keys that exclude each other":
        "lr_scheduler: {type: cosine, total_steps: 10, warmup_steps: 1, warmup_ratio: 0.1}",
    "run name with a slash": "run_name: a/b",
    "null for a number": "seed: null",
}


# Where the block of a kind lies, when not in the section of its name.
PLACES = {
    "sampler": lambda block: {"sweep": {"sampler": block}},
    "pruner": lambda block: {"sweep": {"pruner": block}},
    "data": lambda block: {"data": {"train": block}},
    "metric": lambda block: {"eval": {"metrics": [block]}},
    "transform": lambda block: {"data": {"train": {"type": "jsonl", "path": "train.jsonl", "transforms": [block]}}},
    "tracker": lambda block: {"trackers": [block]},
    "adapter": lambda block: {"adapters": [block]},
    "callback": lambda block: {"callbacks": [block]},
    "layer": lambda block: {"model": {"type": "sequential", "layers": [block]}},
}


def tree(text):
    return yaml.load(text, Core)


def examples(root):
    """(name, recipe, the same with an unknown key) for every example of every fragment."""
    for kind in (entry["kind"] for entry in json.loads((root / "schemas/kinds.json").read_text())):
        place = PLACES.get(kind, lambda block, kind=kind: {kind: block})
        for path in sorted((root / "schemas" / kind).glob("*.json")):
            for example in json.loads(path.read_text()).get("examples", []):
                wrong = {**tree(WHOLE), **place({**example, "no_such_key": 1})}
                yield f"{kind}/{path.stem}", {**tree(WHOLE), **place(example)}, wrong


def main():
    root = pathlib.Path(sys.argv[1])
    schema = json.loads((root / "schemas/recipe.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    problems = []

    def complain(name, errors):
        for error in errors:
            where = ".".join(str(part) for part in error.absolute_path) or "the top level"
            problems.append(f"{name}: {where}: {error.message[:300]}")

    recipes = sorted((root / "recipes").rglob("*.yaml")) if (root / "recipes").exists() else []
    for path in recipes:
        complain(path.relative_to(root), validator.iter_errors(tree(path.read_text())))
    for name, text in FITS.items():
        complain(name, validator.iter_errors({**tree(WHOLE), **(tree(text) or {})}))
    for name, text in FAILS.items():
        if validator.is_valid({**tree(WHOLE), **tree(text)}):
            problems.append(f"{name}: was not found: {text}")
    shown = list(examples(root))
    for name, recipe, wrong in shown:
        complain(f"example of {name}", validator.iter_errors(recipe))
        if validator.is_valid(wrong):
            problems.append(f"{name}: an unknown key was not found")
    for problem in problems:
        print(problem)
    print(f"{len(recipes)} recipes, {len(shown)} examples, {len(FITS)} that fit, {len(FAILS)} that do not: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
