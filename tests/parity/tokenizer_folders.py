"""Records what Transformers makes of the files beside a tokenizer.json, for tests/components/tokenizer/folders_test.cpp.

usage: tokenizer_folders.py     writes tests/components/tokenizer/recorded/folders.json

The tokenizer is recipes/examples/data/tokenizer.json, with and without its added tokens. A product of what may say that
there are more: added_tokens_decoder, extra_special_tokens or additional_special_tokens, added_tokens.json with
special_tokens_map.json; and split_special_tokens. For each it records the files and the ids of three texts.
"""
import copy
import itertools
import json
import pathlib
import tempfile

from transformers import AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ["a<tool>b <|im_start|>hi<|im_end|> <extra> x", "<extra><tool>", " hello <unk>"]
TOOL = {"content": "<tool>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
LISTS = {"no": {}, "extra": {"extra_special_tokens": ["<extra>"]},
         "additional": {"additional_special_tokens": ["<extra>", {**TOOL, "__type": "AddedToken"}]},
         "mapping": {"extra_special_tokens": {"x_token": "<extra>"}}}
LEGACY = {"added_tokens.json": {"<tool>": 500, "<extra>": 501},
          "special_tokens_map.json": {"additional_special_tokens": ["<extra>"], "bos_token": "<|im_start|>"}}


def decoder(base, kind):
    tokens = {str(one["id"]): {key: value for key, value in one.items() if key != "id"} for one in base["added_tokens"]}
    if kind == "tool":
        tokens["500"] = TOOL
    elif kind == "plain":
        tokens["510"] = {**TOOL, "special": False, "normalized": True}
    elif kind == "strip":
        tokens["1"]["rstrip"] = tokens["2"]["lstrip"] = True
    return tokens


def main():
    base = json.loads((ROOT / "recipes/examples/data/tokenizer.json").read_text())
    cases = []
    for own, legacy, kind, extra, split in itertools.product(
            (True, False), (False, True), ("no", "same", "tool", "plain", "strip"), LISTS, (False, True)):
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", **copy.deepcopy(LISTS[extra])}
        if kind != "no":
            config["added_tokens_decoder"] = copy.deepcopy(decoder(base, kind))
        if split:
            config["split_special_tokens"] = True
        files = {"tokenizer_config.json": config, **(LEGACY if legacy else {})}
        tokenizer = base if own else {**base, "added_tokens": []}
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {"tokenizer.json": tokenizer, **files}.items():
                (pathlib.Path(folder) / name).write_text(json.dumps(content))
            made = AutoTokenizer.from_pretrained(folder)
            cases.append({"own": own, "files": files, "ids": [made(text)["input_ids"] for text in TEXTS]})
    lines = ",\n".join(json.dumps(case) for case in cases)
    path = ROOT / "tests/components/tokenizer/recorded/folders.json"
    path.write_text('{"texts": ' + json.dumps(TEXTS) + ', "cases": [\n' + lines + "\n]}\n")


main()
