"""Vectors of texts, as Sentence Transformers computes them: for make.py and check.py."""

import json
import pathlib

import torch

SCALE = 20.0  # of MultipleNegativesRankingLoss
LENGTHS = {"unpadded": ((8, 8, 8),) * 3, "padded": ((8, 5, 3), (3, 7, 8), (6, 8, 4))}
WAYS = {"cls": "cls_token", "mean": "mean_tokens", "last": "lasttoken"}


def write_folder(folder, width, pooling, normalize):
    """What a folder of Sentence Transformers has beside the model."""
    folder = pathlib.Path(folder)
    names = ["Transformer", "Pooling"] + ["Normalize"] * normalize
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [{"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
               for number, (name, path) in enumerate(zip(names, paths))]
    (folder / "modules.json").write_text(json.dumps(modules, indent=2) + "\n")
    (folder / "1_Pooling").mkdir()
    ways = {f"pooling_mode_{way}": way == WAYS[pooling] for way in WAYS.values()}
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": width, **ways}, indent=2) + "\n")
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 8, "do_lower_case": False}, indent=2) + "\n")


def records(config, seed, vocabulary, texts):
    """Of each batch in turn; each record has as many texts."""
    generator = torch.Generator().manual_seed(seed + 1000)
    result = []
    for of_batch in LENGTHS.values():
        for lengths in of_batch:
            ids = [torch.randint(vocabulary, (length,), generator=generator).tolist() for length in lengths[:texts]]
            if config.pad_token_id is not None:
                ids[0][1] = config.pad_token_id
            result.append({"input_ids": ids})
    return result


def choice_records(config, seed, vocabulary, texts):
    """The same with the number of the right one."""
    result = records(config, seed, vocabulary, texts)
    for number, record in enumerate(result):
        if config.to_dict().get("type_vocab_size", 1) > 1:
            record["token_type_ids"] = [[int(place > 1) for place in range(len(ids))] for ids in record["input_ids"]]
        record["labels"] = (number * 2 + 1) % texts
    return result


def choice_batch(lines):
    """[B, K, T] of records with choices. The padding is behind the texts."""
    longest = max(len(ids) for record in lines for ids in record["input_ids"])

    def filled(key, value):
        return torch.tensor([[row + [value] * (longest - len(row)) for row in record[key]] for record in lines])

    masks = [{"attention_mask": [[1] * len(ids) for ids in record["input_ids"]]} for record in lines]
    batch = {"input_ids": filled("input_ids", 0), "labels": torch.tensor([record["labels"] for record in lines]),
             "attention_mask": torch.tensor([[row + [0] * (longest - len(row)) for row in record["attention_mask"]]
                                             for record in masks])}
    if "token_type_ids" in lines[0]:
        batch["token_type_ids"] = filled("token_type_ids", 0)
    return batch


def read_choices(ids):
    """Name and batch."""
    lines = [json.loads(line) for line in pathlib.Path(ids).read_text().splitlines()]
    for name, of_batch in LENGTHS.items():
        yield name, choice_batch(lines[:len(of_batch)])
        lines = lines[len(of_batch):]


def read_batches(ids):
    """Name, and the texts of each record."""
    lines = [json.loads(line)["input_ids"] for line in pathlib.Path(ids).read_text().splitlines()]
    for name, of_batch in LENGTHS.items():
        yield name, lines[:len(of_batch)]
        lines = lines[len(of_batch):]


def vectors(model, folder, texts):
    """[B, K, C]. The padding is behind the texts."""
    folder = pathlib.Path(folder)
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    way = next(name for name, field in WAYS.items() if pooling[f"pooling_mode_{field}"])
    flat = [text for record in texts for text in record]
    longest = max(map(len, flat))
    ids = torch.tensor([text + [model.config.pad_token_id or 0] * (longest - len(text)) for text in flat])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in flat])
    stream = model(input_ids=ids, attention_mask=mask).last_hidden_state
    if way == "mean":
        real = mask[:, :, None].float()
        pooled = (stream * real).sum(1) / real.sum(1).clamp(min=1e-9)
    else:
        place = torch.zeros(len(flat), dtype=torch.long) if way == "cls" else mask.sum(1) - 1
        pooled = stream[torch.arange(len(flat)), place]
    if len(json.loads((folder / "modules.json").read_text())) == 3:
        pooled = torch.nn.functional.normalize(pooled, p=2, dim=1)
    return pooled.reshape(len(texts), -1, pooled.shape[-1])


def loss(found):
    """MultipleNegativesRankingLoss of vectors [B, K, C]."""
    unit = torch.nn.functional.normalize(found, p=2, dim=-1)
    others = torch.cat([unit[:, k] for k in range(1, unit.shape[1])])
    scores = unit[:, 0] @ others.T * SCALE
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(found)))
