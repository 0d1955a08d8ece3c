"""Records what Transformers makes of a vocab.txt and the files beside it, for tests/components/tokenizer/bert_test.cpp.

usage: tokenizer_bert.py     writes tests/components/tokenizer/recorded/bert.json

The vocabulary is tests/components/tokenizer/files/bert.txt. A product of what a BERT's tokenizer_config.json sets: its case,
accents, Chinese characters, other names of special tokens, and tokens that are added. For each it records the files, and
ids and decoded text of some texts.
"""
import itertools
import json
import pathlib
import shutil
import tempfile

from transformers import AutoTokenizer

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/components/tokenizer"
TEXTS = ["Caf\u00e9 \u0130stanbul, don't STOP!", "the [MASK] of[SEP] \u4e2d\u6587 x\u4e00y", "\u00c5ngstr\u00f6m\u200b a\u0301\tb\u00a0c <tool> [cls]",
         "he would have been  there . isn't it?"]
NAMES = {"no": {}, "own": {"cls_token": "the", "sep_token": "of", "mask_token": "and"},
         "added": {"added_tokens_decoder": {"700": {"content": "<tool>", "special": False, "normalized": True, "lstrip": False,
                                                    "rstrip": False, "single_word": False}}},
         "extra": {"extra_special_tokens": ["there"]}}


def main():
    cases = []
    for lower, accents, chinese, names in itertools.product((None, True, False), ("no", None, True, False),
                                                            (None, True, False), NAMES):
        config = {"tokenizer_class": "BertTokenizer", **NAMES[names]}
        if lower is not None:
            config["do_lower_case"] = lower
        if accents != "no":
            config["strip_accents"] = accents
        if chinese is not None:
            config["tokenize_chinese_chars"] = chinese
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(FOLDER / "files/bert.txt", f"{folder}/vocab.txt")
            (pathlib.Path(folder) / "tokenizer_config.json").write_text(json.dumps(config))
            made = AutoTokenizer.from_pretrained(folder)
            ids = [made(text)["input_ids"] for text in TEXTS]
            cases.append({"config": config, "ids": ids,
                          "decoded": [made.decode(one, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                                      for one in ids]})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "recorded/bert.json").write_text('{"texts": ' + json.dumps(TEXTS) + ', "cases": [\n' + lines + "\n]}\n")


main()
