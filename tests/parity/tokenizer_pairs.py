"""Records what `tokenizers` makes of pairs, for tests/components/tokenizer/pairs_test.cpp.

usage: tokenizer_pairs.py     writes tests/components/tokenizer/recorded/pairs.json

The tokenizers are those of tests/components/tokenizer/files. Each of them joins pairs of short texts with and without
special tokens, whole and cut in each way, at either side.
"""
import json
import pathlib

from tokenizers import Tokenizer

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/components/tokenizer"
PAIRS = [["The company posted a profit.", "Profit was reported by the company, they said."],
         ["  Caf\u00e9 \u4e2d\u6587 \U0001F600 <mask> one", "x"], ["", "of the"], ["it's", ""], ["they", "their people would"]]
CUTS = [None] + [[length, way, side] for length in (4, 9) for way in ("longest_first", "only_first", "only_second")
                 for side in ("right", "left")]


def main():
    cases = []
    for path in sorted((FOLDER / "files").glob("*.json")):
        tokenizer = Tokenizer.from_file(str(path))
        for special in (True, False):
            for cut in CUTS:
                tokenizer.no_truncation()
                if cut:
                    try:
                        tokenizer.enable_truncation(cut[0], strategy=cut[1], direction=cut[2])
                    except BaseException:  # fewer tokens than it adds
                        continue
                for number, (text, pair) in enumerate(PAIRS):
                    case = {"file": path.name, "special": special, "cut": cut, "pair": number}
                    try:
                        encoding = tokenizer.encode(text, pair, add_special_tokens=special)
                        case.update(ids=encoding.ids, offsets=encoding.offsets, types=encoding.type_ids,
                                    texts=[0 if one is None else one + 1 for one in encoding.sequence_ids])
                    except BaseException:
                        case["refused"] = True
                    cases.append(case)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (FOLDER / "recorded/pairs.json").write_text('{"pairs": ' + json.dumps(PAIRS) + ', "cases": [\n' + lines + "\n]}\n")
    print(len(cases), "cases,", sum("refused" in case for case in cases), "refused")


main()
