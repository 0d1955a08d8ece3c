"""Writes tiny models of Transformers with inputs and results, models/CASE/: what roux has to agree with.

usage: make.py [--check] [CASE...]

--check writes nothing: it draws each model again, computes everything from the committed weights, and compares with
what is committed, to 1e-5 of a tensor's largest entry: another processor's sums end up to 5e-6 apart.

Each folder is one that Transformers loads, and beside that

  ids.jsonl             Records of the batch `unpadded`, then, with an attention_mask, those of the batch `padded`.
                        Without labels a record's labels are its ids.
  expected.safetensors  BATCH/logits       [B, T, V] or [B, T, C], padded positions too, or [B, C]
                        BATCH/loss         mean over the labels that are not -100, each predicted one position before
                                           by a model for causal language modelling
                        BATCH/grad/NAME    gradient of that loss
                        BATCH/after/NAME   weights after 5 steps of AdamW on that batch; NaN where the gradient is but
                                           rounding, which AdamW turns into steps of any size
                        BATCH/generated    of a model with an encoder: 30 ids that follow greedily, [B, 30]; of a mixture of
                                           experts those behind the first two ids of each record
                        BATCH/aux_loss     of a mixture with `output_router_logits`, which the loss has a part of

of a folder of Sentence Transformers, whose name says `vectors`: records of several texts, `logits` [B, K, C], the
vectors of each, and the loss by which each first text is to find its second one, cases/vectors.py. Of question answering
(`spans`) `logits` are [B, T, 2], and of multiple choice (`choices`) [B, K].

All in float32, without dropout, with the names of the model for causal language modelling, or of the one that HEADS names.
Records of a head for classes have the labels of Transformers. Those of a model with an encoder have labels of a length
of their own. rope.json holds frequencies.
"""

import copy
import json
import math
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM,
                          AutoModelForMultipleChoice, AutoModelForQuestionAnswering, AutoModelForSeq2SeqLM,
                          AutoModelForSequenceClassification, AutoModelForTokenClassification)
from transformers.utils.logging import disable_progress_bar

from cases import vectors
from cases.models import CASES, CHOICES, VECTORS, VOCABULARY
from cases.rope import check_frequencies, frequencies
from cases.written import continued, generated

MODELS = pathlib.Path(__file__).resolve().parent / "models"
LENGTH = 16
STEPS = 5
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
PADDED = (LENGTH, 12, 14)  # a window of 6 leaves every padded position something to look at
TARGETS = (9, 11, 6)  # labels of a model with an encoder
PROMPT = 4  # positions without a label at the start of the last record
ROUNDING = 3e-6  # of the largest entry of all gradients

# What a model has for a head, by the second part of the folder's name; others are for causal language modelling.
HEADS = {"texts": AutoModelForSequenceClassification, "tags": AutoModelForTokenClassification,
         "masked": AutoModelForMaskedLM, "spans": AutoModelForQuestionAnswering,
         "choices": AutoModelForMultipleChoice, "vectors": AutoModel}


def has_encoder(case):
    return case.startswith("t5-")


def is_mixture(case):
    return case.startswith(("mixtral-", "qwen3_moe-"))


def of_mixture(model, batch):
    results = {"generated": continued(model, batch)}
    if model.config.output_router_logits:
        with torch.no_grad():
            results["aux_loss"] = model(**batch).aux_loss
    return results


def head_of(case):
    """By which it is read, too."""
    if has_encoder(case):
        return AutoModelForSeq2SeqLM
    return HEADS.get(case.split("-")[1], AutoModelForCausalLM)


def without_pooler(case):
    """These classes have a layer that vectors are not made by."""
    return {"add_pooling_layer": False} if case in VECTORS and case.startswith(("bert", "roberta")) else {}


def loss_and_logits(model, folder, case, batch):
    if case in VECTORS:
        found = vectors.vectors(model, folder, batch)
        return vectors.loss(found), found
    if case.split("-")[1] == "spans":
        return span_loss(model, batch)
    output = model(**batch)
    return output.loss, output.logits


def span_loss(model, batch):
    """The loss of Transformers, with padding masked out of the softmax: an answer cannot lie there."""
    labels = batch["labels"]
    output = model(**{key: value for key, value in batch.items() if key != "labels"})
    logits = torch.stack([output.start_logits, output.end_logits], dim=-1)
    told = logits
    if "attention_mask" in batch:
        told = logits.masked_fill(batch["attention_mask"][:, :, None] == 0, -math.inf)
    return sum(torch.nn.functional.cross_entropy(told[:, :, side], labels[:, side]) for side in (0, 1)) / 2, logits


def seed_of(case):
    cases = list(CASES)
    first = sorted(cases[:22])  # that there were before
    return first.index(case) if case in first else cases.index(case)


def draw_weights(model, seed):
    """Weights that are far from those of an untrained model: every term shows in the results."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(0.0, 0.25, generator=generator)
            if weight.dim() == 1 and name.endswith("weight"):
                weight.add_(1.0)


def records(config, seed):
    generator = torch.Generator().manual_seed(seed + 1000)
    padding = config.pad_token_id or 0
    result = []
    for length in (LENGTH, LENGTH, *PADDED):
        ids = torch.randint(VOCABULARY, (length,), generator=generator).tolist()
        if config.pad_token_id is not None:
            ids[5] = config.pad_token_id
        result.append({"input_ids": ids})
    for number, record in enumerate(result[2:]):
        ids = record["input_ids"]
        missing = LENGTH - len(ids)
        labels = [-100] * PROMPT + ids[PROMPT:] if number == len(PADDED) - 1 else ids
        record["attention_mask"] = [1] * len(ids) + [0] * missing
        record["labels"] = labels + [-100] * missing
        record["input_ids"] = ids + [padding] * missing
    return result


def with_targets(rows, case):
    """Of a model with an encoder."""
    generator = torch.Generator().manual_seed(seed_of(case) + 2000)
    for number, row in enumerate(rows):
        length = TARGETS[max(0, number - 2)]
        labels = torch.randint(VOCABULARY, (length,), generator=generator).tolist()
        row["labels"] = labels + [-100] * (max(TARGETS) - length) if number >= 2 else labels
    return rows


def labelled(rows, config, case):
    """With labels for its head."""
    if has_encoder(case):
        return with_targets(rows, case)
    head = case.split("-")[1]
    if head not in HEADS:
        return rows
    generator = torch.Generator().manual_seed(seed_of(case) + 2000)
    for row in rows:
        length = len(row["input_ids"])
        if config.to_dict().get("type_vocab_size", 1) > 1:
            row["token_type_ids"] = [int(5 <= place < 12) for place in range(length)]
        if head == "spans":
            real = row["attention_mask"].index(0) if 0 in row.get("attention_mask", []) else length
            row["labels"] = sorted(torch.randint(real, (2,), generator=generator).tolist())
        elif head in ("tags", "masked"):
            count = config.num_labels if head == "tags" else VOCABULARY
            labels = torch.randint(count, (length,), generator=generator).tolist()
            mask = row.get("attention_mask", [1] * length)
            row["labels"] = [label if real and place % 5 else -100
                             for place, (label, real) in enumerate(zip(labels, mask, strict=True))]
        elif config.problem_type in ("regression", "multi_label_classification"):
            values = torch.rand(config.num_labels, generator=generator)
            if config.problem_type == "multi_label_classification":
                values = (values > 0.5).float()
            row["labels"] = values.tolist()
        else:
            row["labels"] = torch.randint(config.num_labels, (1,), generator=generator).item()
    return rows


def write_model(case, folder):
    seed = seed_of(case)
    fields = CASES[case]
    config = AutoConfig.for_model(case.split("-")[0], **copy.deepcopy(fields))  # it writes into what it is given
    kind = AutoModel if case == "gpt2-bare" else head_of(case)
    model = kind.from_config(config, dtype=torch.float32, **without_pooler(case))
    if has_encoder(case) and fields.get("tie_word_embeddings") is False:
        # Transformers 5 ties them at first whatever the configuration says, and not those of a file that differ.
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
        model.config.tie_word_embeddings = False
    draw_weights(model, seed)
    if case == "llama-version4-sharded":
        model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="8KB")
        older = {**fields, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
                 "initializer_range": 0.02, "pretraining_tp": 1, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
                 "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "use_cache": True,
                 "transformers_version": "4.46.3"}
        (folder / "config.json").write_text(json.dumps(older, indent=2, sort_keys=True) + "\n")
    else:
        model.save_pretrained(folder, save_original_format=not case.endswith("-stacked"))
    if case in VECTORS:
        texts, pooling, normalize = VECTORS[case]
        vectors.write_folder(folder, config.hidden_size, pooling, normalize)
        rows = vectors.records(config, seed, VOCABULARY, texts)
    elif case in CHOICES:
        rows = vectors.choice_records(config, seed, VOCABULARY, CHOICES[case])
    else:
        rows = labelled(records(config, seed), config, case)
    lines = [json.dumps(record) for record in rows]
    (folder / "ids.jsonl").write_text("\n".join(lines) + "\n")


def read_batches(ids):
    lines = [json.loads(line) for line in ids.read_text().splitlines()]
    for name, chosen in [("unpadded", [r for r in lines if "attention_mask" not in r]),
                         ("padded", [r for r in lines if "attention_mask" in r])]:
        if not chosen:
            continue
        batch = {"input_ids": torch.tensor([r["input_ids"] for r in chosen]),
                 "labels": torch.tensor([r.get("labels", r["input_ids"]) for r in chosen])}
        if "token_type_ids" in chosen[0]:
            batch["token_type_ids"] = torch.tensor([r["token_type_ids"] for r in chosen])
        if name == "padded":
            batch["attention_mask"] = torch.tensor([r["attention_mask"] for r in chosen])
        yield name, batch


def expected_results(folder, case, attention="eager"):
    results = {}
    read = vectors.read_batches if case in VECTORS else vectors.read_choices if case in CHOICES else read_batches
    for name, batch in read(folder / "ids.jsonl"):
        # A model each: the dynamic kind of rope remembers the longest text.
        model = head_of(case).from_pretrained(folder, dtype=torch.float32, attn_implementation=attention,
                                              **without_pooler(case)).train()
        model.config.use_cache = False
        optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
        for step in range(STEPS):
            loss, logits = loss_and_logits(model, folder, case, batch)
            optimizer.zero_grad()
            loss.backward()
            if step == 0:
                results[f"{name}/logits"] = logits.detach()
                results[f"{name}/loss"] = loss.detach()
                gradients = {key: weight.grad.clone() for key, weight in model.named_parameters()}
                if has_encoder(case):
                    results[f"{name}/generated"] = generated(model, batch)
                elif is_mixture(case):
                    results |= {f"{name}/{key}": value for key, value in of_mixture(model, batch).items()}
            optimizer.step()
        bound = ROUNDING * max(gradient.abs().max() for gradient in gradients.values())
        for key, weight in model.named_parameters():
            gradient = gradients[key]
            results[f"{name}/grad/{key}"] = gradient
            rounding = (gradient != 0) & (gradient.abs() < bound)
            results[f"{name}/after/{key}"] = weight.detach().masked_fill(rounding, math.nan)
    return results


def difference(found, committed):
    """Of the largest entry. NaN stands for what is not compared."""
    if found.shape != committed.shape or found.dtype != committed.dtype:
        return math.inf
    compared = ~(found.isnan() | committed.isnan())
    if not compared.any():
        return 0.0
    found, committed = found[compared].double(), committed[compared].double()
    return ((found - committed).abs().max() / committed.abs().max().clamp(min=1e-30)).item()


def check_tensors(what, found, committed, bound=1e-5):
    if found.keys() != committed.keys():
        return [f"{what}: other names: {sorted(found.keys() ^ committed.keys())}"]
    differences = {key: difference(found[key], committed[key]) for key in found}
    return [f"{what}: {key} differs by {value:.1e}" for key, value in differences.items() if not value <= bound]


def check(case, folder):
    errors = []
    with tempfile.TemporaryDirectory() as again:
        again = pathlib.Path(again)
        write_model(case, again)
        names = {str(path.relative_to(again)) for path in again.rglob("*") if path.is_file()}
        committed = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        committed -= {"expected.safetensors"}
        errors += [f"{case}: not both made and committed: {name}" for name in sorted(names ^ committed)]
        for name in sorted(names & committed):
            if name.endswith(".safetensors"):
                errors += check_tensors(f"{case}/{name}", load_file(again / name), load_file(folder / name))
            elif (again / name).read_text() != (folder / name).read_text():
                errors.append(f"{case}/{name} differs")
    return errors + check_tensors(case, expected_results(folder, case), load_file(folder / "expected.safetensors"))


def main(words):
    torch.set_num_threads(1)
    disable_progress_bar()
    errors = []
    rope_file = MODELS.parent / "rope.json"
    if "--check" in words:
        errors += check_frequencies(frequencies(), json.loads(rope_file.read_text()))
    else:
        rope_file.write_text("[\n" + ",\n".join(json.dumps(each) for each in frequencies()) + "\n]\n")
    for case in [word for word in words if word != "--check"] or CASES:
        folder = MODELS / case
        if "--check" in words:
            errors += check(case, folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_model(case, folder)
            save_file(expected_results(folder, case), folder / "expected.safetensors")
    print("\n".join(errors) or "done")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
