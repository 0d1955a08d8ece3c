"""A GGUF file of roux in llama.cpp, and back in roux: ids of texts, greedy continuations.

usage: examples/llama_cpp.py ROUX FOLDER PACKAGES TEXT [--output FILE.json]

FOLDER    a model of Transformers with its tokenizer, such as SmolLM2-135M
PACKAGES  a folder where `npm install node-llama-cpp @node-llama-cpp/linux-x64` was run
TEXT      a file to take texts and prompts from

The file is exported in float32. Without special tokens 200 texts give the same ids in llama.cpp and in roux, and 20
prompts are continued by the same 40 tokens: by llama.cpp from the file, by roux from the folder, and by roux from the file.
Each type of file is read back and its first logits are told, as far as they are from those of the folder.
"""
import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

TEXTS, PROMPTS, TOKENS = 200, 20, 40
ODD = ["", " ", "  two  blanks ", "tab\there", "line\nline\n\n", "12345 678.90", "don't we'LL I'm", "naïve Ärger ÉTÉ",
       "東京は雨", "emoji 🙂🙃", "x = [1, 2];\n\treturn x", "a\u00a0b", "<not a token>", "ends in blank "]


def call(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more).stdout


def ids(roux, where, text):
    told = call(roux, "tokenizer", "encode", where, "--no-special-tokens", "--format", "json", input=text)
    return json.loads(told)["ids"]


def continued(roux, where, prompts, folder):
    file = folder / "prompts.jsonl"
    file.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    told = call(roux, "generate", where, "--prompts", file, "--max-new-tokens", TOKENS, "--format", "jsonl",
                "--batch-size", 1)
    return [json.loads(line) for line in told.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    for name in ("roux", "folder", "packages", "text"):
        parser.add_argument(name)
    parser.add_argument("--output")
    options = parser.parse_args()
    roux = Path(options.roux).resolve()
    words = Path(options.text).read_text().split("\n\n")
    texts = (ODD + [part for part in words if part.strip()])[:TEXTS]
    prompts = [part[:120] for part in words[TEXTS:TEXTS + PROMPTS]]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file = folder / "model.gguf"
        call(roux, "export", options.folder, file, "--type", "f32")
        own = [ids(roux, options.folder, text) for text in texts]
        prompt_ids = [ids(roux, options.folder, prompt) for prompt in prompts]
        request = folder / "request.json"
        request.write_text(json.dumps({"texts": texts, "prompts": prompt_ids, "tokens": TOKENS}))
        theirs = json.loads(call("node", Path(__file__).with_name("llama_cpp_ids.mjs"), options.packages, file, request))
        their_texts = [json.loads(call(roux, "tokenizer", "decode", options.folder, "--skip-special-tokens", "--format",
                                       "json", input=" ".join(map(str, made))))["text"]
                       for made in theirs["continuations"]]
        from_folder = continued(roux, options.folder, prompts, folder)
        from_file = continued(roux, file, prompts, folder)
    same_ids = sum(one == other for one, other in zip(own, theirs["ids"]))
    same_texts = sum(one["text"] == other for one, other in zip(from_folder, their_texts))
    same_back = sum(one["text"] == other["text"] for one, other in zip(from_folder, from_file))
    result = {"model": Path(options.folder).name, "texts": len(texts), "same_ids": same_ids, "prompts": len(prompts),
              "tokens": TOKENS, "same_continuations": same_texts, "same_from_file": same_back,
              "machine": platform.processor() or platform.machine(),
              "commit": call("git", "-C", Path(__file__).parent, "rev-parse", "--short", "HEAD").strip()}
    for number, (one, other) in enumerate(zip(own, theirs["ids"])):
        if one != other:
            print(f"ids of {texts[number]!r}: {one}, llama.cpp {other}", file=sys.stderr)
    print(json.dumps(result, indent=2))
    if options.output:
        Path(options.output).write_text(json.dumps(result, indent=2) + "\n")
    return 0 if same_ids == len(texts) and same_texts == len(prompts) == same_back else 1


sys.exit(main())
