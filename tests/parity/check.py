"""Loads a folder that roux exported into Transformers, and compares the logits.

usage: check.py FOLDER LOGITS [IDS]

LOGITS is what `roux predict --return logits --output FILE.safetensors` wrote of IDS (FOLDER/ids.jsonl): a tensor for
each record. Positions that are padding are not compared. Where there is no such file, it gets the logits of
Transformers, a tensor for each batch.
"""

import json
import math
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.utils.logging import disable_progress_bar

from cases import vectors
from make import difference, read_batches

ALLOWED = 1e-5  # of the largest logit


def by_batch(tensors, ids):
    """Of tensors by the number of their record. Padding is NaN, which difference() leaves out."""
    if "0" not in tensors:
        return tensors
    if isinstance(json.loads(ids.read_text().splitlines()[0])["input_ids"][0], list):  # several texts
        names = [name for name, texts in vectors.read_batches(ids) for _ in texts]
        return {f"{name}/logits": torch.stack([tensors[str(number)] for number, of in enumerate(names) if of == name])
                for name in vectors.LENGTHS}
    result = {}
    records = [json.loads(line) for line in ids.read_text().splitlines()]
    for name, has_mask in (("unpadded", False), ("padded", True)):
        rows = []
        for number, record in enumerate(records):
            if ("attention_mask" in record) != has_mask:
                continue
            mask = torch.tensor(record.get("attention_mask", [1] * len(record["input_ids"]))).bool()
            if "labels" in record and isinstance(record["labels"], list) and len(record["labels"]) != len(mask):
                mask = torch.ones(len(record["labels"])).bool()  # of a decoder, whose padding sees what is before it
            of_positions = tensors[str(number)].dim() > 1  # else of the text
            rows.append(tensors[str(number)].masked_fill(~mask[:, None], math.nan) if of_positions
                        else tensors[str(number)])
        if rows:
            result[f"{name}/logits"] = torch.stack(rows)
    return result


def without_labels(model, batch):
    """But for what a decoder reads of them."""
    given = {key: value for key, value in batch.items() if key != "labels"}
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels=batch["labels"])
    return given


def main(folder, logits, ids=None):
    disable_progress_bar()
    folder, logits = pathlib.Path(folder), pathlib.Path(logits)
    ids = pathlib.Path(ids) if ids else folder / "ids.jsonl"
    kind = getattr(transformers, json.loads((folder / "config.json").read_text())["architectures"][0])
    has_vectors = (folder / "modules.json").exists()
    more = {"add_pooling_layer": False} if has_vectors and kind.__name__ in ("BertModel", "RobertaModel") else {}
    model, loading = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                          output_loading_info=True, **more)
    model.config.use_cache = False
    errors = [f"{what}: {names}" for what, names in loading.items() if names]
    found = {}
    with torch.no_grad():
        for name, texts in vectors.read_batches(ids) if has_vectors else ():
            found[f"{name}/logits"] = vectors.vectors(model.eval(), folder, texts)
        has_choices = kind.__name__.endswith("ForMultipleChoice")
        read = vectors.read_choices if has_choices else read_batches
        for name, batch in () if has_vectors else read(ids):
            output = model.eval()(**without_labels(model, batch))
            found[f"{name}/logits"] = (torch.stack([output.start_logits, output.end_logits], dim=-1)
                                       if "start_logits" in output else output.logits)
    if not logits.exists():
        save_file(found, logits)
    of_roux = by_batch(load_file(logits), ids)
    if not found.keys() <= of_roux.keys():
        errors.append(f"{logits} lacks {sorted(found.keys() - of_roux.keys())}")
    for name in found.keys() & of_roux.keys():
        value = difference(of_roux[name].float(), found[name])
        print(f"{name}: {value:.1e} of the largest logit apart")
        if not value <= ALLOWED:
            errors.append(f"{name} is more than {ALLOWED} apart")
    print("\n".join(errors) or "done")
    return 1 if errors else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
