"""Compares the vectors that roux gives texts with those of Transformers and the arithmetic of Sentence Transformers.

usage: sentences.py ROUX FOLDER

FOLDER is one of Sentence Transformers such as all-MiniLM-L6-v2. The vectors may differ by 1e-5 of their length. The
recorded ones of that model, sentences.json, are compared as well: `--record FOLDER` writes them.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from vectors import vectors

ALLOWED = 1e-5
RECORDED = pathlib.Path(__file__).resolve().parent / "sentences.json"
TEXTS = ["This is an example sentence", "Each sentence is converted", "", "A man is eating food.",
         "Der Mann isst eine Möhre, 3.50 € each!", "word " * 400]


def of_transformers(folder, texts):
    longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    ids = [tokenizer(text, truncation=True, max_length=longest)["input_ids"] for text in texts]
    with torch.no_grad():
        return torch.cat([vectors(model, folder, [[one]])[0] for one in ids])


def of_roux(roux, folder, texts):
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        pairs = [{"anchor": text, "positive": text} for text in ("a b", "c d")]
        (work / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        (work / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (work / "recipe.yaml").write_text(
            f"recipe_version: 1\nrun_name: t\ninit_from: {folder}\ndata: {{train: {{type: jsonl, path: pairs.jsonl}}}}\n"
            "optimizer: {type: sgd, lr: 0}\ntraining: {max_steps: 1, micro_batch_size: 2}\n")
        output = subprocess.run([roux, "predict", "recipe.yaml", "--checkpoint", folder, "--input", "texts.jsonl"],
                                cwd=work, check=True, stdout=subprocess.PIPE, text=True).stdout
        return torch.tensor([json.loads(line)["embedding"] for line in output.splitlines()])


def main(words):
    disable_progress_bar()
    folder = pathlib.Path(words[-1]).resolve()
    expected = of_transformers(folder, TEXTS)
    if words[0] == "--record":
        rows = [json.dumps([round(value, 7) for value in row]) for row in expected.tolist()]
        RECORDED.write_text("[\n" + ",\n".join(rows) + "\n]\n")
        return 0
    found = of_roux(words[0], folder, TEXTS)
    status = 0
    for name, other in (("Transformers", expected), ("recorded", torch.tensor(json.loads(RECORDED.read_text())))):
        if other.shape != found.shape:
            print(f"{name}: of another model")
            continue
        apart = (found - other).norm(dim=1).max().item()
        print(f"{name}: {apart:.1e} apart")
        status |= not apart <= ALLOWED
    return int(status)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
