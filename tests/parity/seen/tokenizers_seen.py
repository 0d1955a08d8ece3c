"""Compares tokenizers with the library as tokenizer_texts.py does, and writes what was seen.

usage: tokenizers_seen.py BENCH FILE TOKENIZER...     BENCH, TOKENIZER: those of tokenizer_texts.py

Of each tokenizer: 10,000 texts, and those whose ids, offsets or decoded text differ; the median seconds of 5 rounds of
encode_batch on 1 and 2 threads, in turns. It fails where a text differs.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import tokenizer_texts  # noqa: E402


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    bench, file, *paths = sys.argv[1:]
    import tokenizers
    differs, rows = False, []
    for path in paths:
        texts, seconds = [], []
        differs = tokenizer_texts.compare(bench, path, rows=texts) or differs
        tokenizer_texts.speed(bench, path, rows=seconds)
        rows.append({"tokenizer": pathlib.Path(path).name, **texts[0], "encode_batch": seconds})
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    about = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.partition(":")[2].strip() for line in about if line.startswith("model name")), "")
    head = {"commit": commit.strip(), "processor": processor, "tokenizers": tokenizers.__version__}
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    pathlib.Path(file).write_text(f'{{{json.dumps(head)[1:-1]},\n "tokenizers_seen": [\n  {lines}]}}\n')
    sys.exit(differs)


if __name__ == "__main__":
    main()
