"""Records what torchmetrics 1.9.0 (torch 2.11) makes of random sets, topic metrics.

    python3 tests/golden/vectors/metrics.py > tests/golden/vectors/metrics.json

Where torchmetrics warns that a value means nothing and returns a number all the same, "nan" is recorded: the area under
the ROC curve and the average precision of a class without samples or (the area) without samples of others, unless a mean
over classes or labels has defined ones beside it; a rank correlation of equal values; whatever has no sample. Scores that are not
numbers have no order, so that what needs one is "nan" too.
"""

import json
import math
import warnings

import torch
from torchmetrics.functional import (mean_absolute_error, mean_squared_error, pearson_corrcoef, r2_score,
                                     spearman_corrcoef)
from torchmetrics.functional.classification import (
    binary_auroc, binary_average_precision, binary_f1_score, binary_precision, binary_recall, multiclass_accuracy,
    multiclass_auroc, multiclass_average_precision, multiclass_f1_score, multiclass_matthews_corrcoef,
    multiclass_precision, multiclass_recall, multilabel_accuracy, multilabel_auroc, multilabel_average_precision,
    multilabel_f1_score, multilabel_precision, multilabel_recall)

warnings.simplefilter("ignore")
IGNORED = -100
COUNTED = {"precision": (binary_precision, multiclass_precision), "recall": (binary_recall, multiclass_recall),
           "f1": (binary_f1_score, multiclass_f1_score)}
RANKED = {"auroc": (binary_auroc, multiclass_auroc),
          "average_precision": (binary_average_precision, multiclass_average_precision)}
COUNTED_LABELS = {"precision": multilabel_precision, "recall": multilabel_recall, "f1": multilabel_f1_score}
RANKED_LABELS = {"auroc": multilabel_auroc, "average_precision": multilabel_average_precision}


def number(value):
    value = float(value)
    return "nan" if math.isnan(value) else float(f"{value:.8g}")


def numbers(values):
    return [number(value) for value in values.flatten().tolist()]


def undefined(name, positives, samples):
    return positives == 0 or (name == "auroc" and positives == samples)


def block(name, options):
    """The metric as a recipe has it."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in {"type": name, **options}.items()) + "}" if options else name


def classification(logits, target):
    classes = logits.shape[-1]
    whole_samples = target.dim() == 1
    logits, target = logits.reshape(-1, classes), target.reshape(-1)
    counted = target >= 0
    logits, target = logits[counted], target[counted]
    found = {}

    def add(name, options, values):
        found[block(name, options)] = values

    empty = target.numel() == 0
    guess = logits.argmax(-1) if not empty else target
    for name, (binary, multiclass) in COUNTED.items():
        for average in ("micro", "macro", "weighted", "none"):
            of_all = multiclass(guess, target, classes, average=average) if not empty else None
            width = classes if average == "none" else 1
            add(name, {"average": average}, numbers(of_all) if not empty else ["nan"] * width)
        if classes == 2:
            add(name, {}, numbers(binary(guess, target)) if not empty else ["nan"])
    add("matthews", {}, numbers(multiclass_matthews_corrcoef(guess, target, classes)) if not empty else ["nan"])
    for k in range(1, min(classes, 3) + 1):
        hits = multiclass_accuracy(logits, target, classes, top_k=k, average="micro") if not empty else math.nan
        add("top_k_accuracy", {"k": k}, [number(hits)])
    add("accuracy", {}, found[block("top_k_accuracy", {"k": 1})])
    if not whole_samples:
        return found
    scores = torch.softmax(logits, -1)
    positives = [int((target == c).sum()) for c in range(classes)]
    is_nan = bool(scores.isnan().any())
    for name, (binary, multiclass) in RANKED.items():
        lost = [undefined(name, n, target.numel()) for n in positives]
        for average in ("macro", "weighted", "none"):
            width = classes if average == "none" else 1
            if empty or is_nan or all(lost):
                values = ["nan"] * width
            else:
                values = numbers(multiclass(scores, target, classes, average=average, thresholds=None))
            if average == "none":
                values = ["nan" if lost[c] else values[c] for c in range(classes)]
            add(name, {"average": average}, values)
        if classes == 2:
            add(name, {}, ["nan"] if empty or is_nan or lost[1] else numbers(binary(scores[:, 1], target)))
    return found


def several_labels(logits, target):
    """Each label of a sample is true or false."""
    labels, scores = logits.shape[-1], torch.sigmoid(logits)
    guess = (scores > 0.5).int()
    found = {"accuracy": numbers(multilabel_accuracy(guess, target, labels))}
    for name, of_labels in COUNTED_LABELS.items():
        for average in ("micro", "macro", "weighted", "none"):
            found[block(name, {"average": average})] = numbers(of_labels(guess, target, labels, average=average))
        found[name] = found[block(name, {"average": "macro"})]
    for name, of_labels in RANKED_LABELS.items():
        is_nan = [bool(scores[:, c].isnan().any()) for c in range(labels)]
        lost = [is_nan[c] or undefined(name, int(target[:, c].sum()), len(target)) for c in range(labels)]
        for average in ("macro", "weighted", "none"):
            values = numbers(of_labels(scores.nan_to_num(), target, labels, average=average, thresholds=None))
            if average == "none":
                values = ["nan" if lost[c] else values[c] for c in range(labels)]
            elif any(is_nan) or all(lost):
                values = ["nan"]
            found[block(name, {"average": average})] = values
    return found


def regression(output, target):
    is_nan = bool(output.isnan().any())
    one_value = target.shape[1] == 1
    flat_output, flat_target = output.flatten(), target.flatten()
    found = {"mse": mean_squared_error(flat_output, flat_target), "mae": mean_absolute_error(flat_output, flat_target),
             "rmse": mean_squared_error(flat_output, flat_target, squared=False)}
    constant = [len(set(values.tolist())) < 2 for values in (flat_output, flat_target)]
    found["r2"] = math.nan if is_nan or constant[1] else r2_score(flat_output.double(), flat_target.double())
    if one_value:
        defined = not is_nan and not any(constant)
        pair = flat_output.double(), flat_target.double()
        found["pearson"] = pearson_corrcoef(*pair) if defined else math.nan
        found["spearman"] = spearman_corrcoef(*pair) if defined else math.nan
    return {name: [number(value)] for name, value in found.items()}


def main():
    draw = torch.Generator().manual_seed(11)

    def whole(low, high):
        return int(torch.randint(low, high + 1, (1,), generator=draw))

    def normal(*shape):
        return torch.randn(*shape, generator=draw)

    def rounded(values, digits):
        return (values * 10**digits).round() / 10**digits

    cases = []
    for i in range(140):
        classes, ids = whole(2, 5), i % 7 == 6
        samples = 1 if i % 10 == 9 else whole(2, 14)
        shape = (samples, whole(1, 4)) if ids else (samples,)
        logits = rounded(normal(*shape, classes), 0 if i % 3 == 0 else 2)  # ties
        kept = whole(1, classes) if i % 4 == 0 else classes  # empty classes
        target = torch.randint(0, kept, shape, generator=draw)
        if i % 5 == 2:
            target[torch.rand(shape, generator=draw) < (1.1 if i % 25 == 2 else 0.3)] = IGNORED
        if i % 20 == 13:
            logits[whole(0, samples - 1)] = math.nan
        cases.append({"kind": "classification", "name": f"set {i}: {list(logits.shape)}",
                      "input": {"logits": nested(logits), "target": target.tolist()},
                      "expected": classification(logits, target)})
    for i in range(60):
        samples, columns = (1 if i % 10 == 9 else whole(2, 14)), (2 if i % 6 == 5 else 1)
        scale = 1000.0 if i % 4 == 3 else 0.0
        target = rounded(normal(samples, columns) + scale, 0 if i % 3 == 0 else 2)
        output = rounded(target + normal(samples, columns), 0 if i % 3 == 0 else 2)
        if i % 15 == 7:
            target[:] = 3.0
        if i % 15 == 11:
            output[whole(0, samples - 1)] = math.nan
        cases.append({"kind": "regression", "name": f"set {i}: {list(output.shape)}",
                      "input": {"output": nested(output), "target": nested(target)},
                      "expected": regression(output, target)})
    draw.manual_seed(12)
    for i in range(24):
        labels, samples = whole(2, 4), 1 if i % 10 == 9 else whole(2, 12)
        logits = rounded(normal(samples, labels), 0 if i % 3 == 0 else 2)  # ties, and probabilities of one half
        target = (torch.rand(samples, labels, generator=draw) < (0.0 if i % 20 == 5 else 0.4)).int()
        if i % 4 == 1:
            target[:, whole(0, labels - 1)] = i % 8 // 4  # a label that no sample has, or every one
        if i % 20 == 13:
            logits[whole(0, samples - 1), 0] = math.nan
        cases.append({"kind": "labels", "name": f"labels {i}: {list(logits.shape)}",
                      "input": {"logits": nested(logits), "target": nested(target.float())},
                      "expected": several_labels(logits, target)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    print(HEAD + lines + "\n]}")


HEAD = """{"topic": "metrics", "source": "torchmetrics 1.9.0, torch 2.11.0; written by metrics.py",
"fields": {"kind=classification": "logits [B, C] or [B, T, V] and classes, -100: ignored -> the values of each block", \
"kind=labels": "logits and labels [B, L], each 0 or 1 -> the values of each block", \
"kind=regression": "outputs and targets [B, O] -> the values of each block"},
"cases": [
"""


def nested(tensor):
    if tensor.dim() > 1:
        return [nested(row) for row in tensor]
    return ["nan" if math.isnan(value) else round(value, 4) for value in tensor.tolist()]


main()
