"""Records means of torch's losses and their gradients, topic losses.

    python3 tests/golden/vectors/losses.py > tests/golden/vectors/losses.json
"""

import json

import torch
from torch.nn import functional

IGNORED = -100


def block(name, options):
    """The loss as a recipe has it."""
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in {"type": name, **options}.items()) + "}"


def nested(tensor, digits):
    if tensor.dim() == 0:
        return float(f"{float(tensor):.{digits}g}") if tensor.is_floating_point() else int(tensor)
    return [nested(row, digits) for row in tensor]


def cross_entropy(output, target, weight=None, **options):
    weight = None if weight is None else torch.tensor(weight)
    return functional.cross_entropy(output.reshape(-1, output.shape[-1]), target.flatten(), weight=weight, **options)


def bce_with_logits(output, target, pos_weight=None):
    weight = None if pos_weight is None else torch.tensor(pos_weight)
    return functional.binary_cross_entropy_with_logits(output, target, pos_weight=weight)


def cosine(output, target):
    return functional.cosine_embedding_loss(output, target, torch.ones(len(output)))


LOSSES = {"cross_entropy": cross_entropy, "l1": functional.l1_loss, "mse": functional.mse_loss,
          "huber": functional.huber_loss, "cosine": cosine, "bce_with_logits": bce_with_logits}


def main():
    draw = torch.Generator().manual_seed(7)
    cases = []

    def add(kind, name, options, shape, target):
        output = (torch.randn(*shape, generator=draw) * 3).mul(100).round().div(100).requires_grad_()
        mean = LOSSES[name](output, target, **options)
        mean.backward()
        cases.append({"kind": kind, "name": f"{block(name, options)} {list(shape)}",
                      "input": {"loss": block(name, options), "output": nested(output.detach(), 6),
                                "target": nested(target, 6)},
                      "expected": {"mean": nested(mean.detach(), 9), "gradient": nested(output.grad, 9)}})

    for options in CLASS_OPTIONS:
        for shape in ((1, 3), (7, 3)):
            target = torch.randint(0, 3, shape[:1], generator=draw)
            if shape[0] > 1:
                target[2] = options.get("ignore_index", IGNORED)
                target[3] = 2
            elif target[0] == options.get("ignore_index", IGNORED) or options.get("weight", [1.0] * 3)[target[0]] == 0:
                target[0] = 2  # one sample that counts: torch's mean of none is NaN
            add("classes", "cross_entropy", options, shape, target)
    for options in ({}, {"label_smoothing": 0.1}):
        target = torch.randint(0, 5, (2, 4), generator=draw)
        target[0, 1] = IGNORED
        add("ids", "cross_entropy", options, (2, 4, 5), target)
    for name, options in (("l1", {}), ("mse", {}), ("huber", {}), ("huber", {"delta": 0.3}), ("cosine", {})):
        for shape in ((1, 2), (6, 2)):
            target = torch.randn(*shape, generator=draw).mul(100).round().div(100)
            add("values", name, options, shape, target)
    for options in ({}, {"pos_weight": [3.0]}, {"pos_weight": [0.5, 2.0]}):
        for shape in ((1, 2), (6, 2)):
            labels = torch.randint(0, 3, shape, generator=draw) / 2
            add("values", "bce_with_logits", options, shape, labels)
    lines = ",\n".join(json.dumps(case) for case in cases)
    print(HEAD + lines + "\n]}")


CLASS_OPTIONS = ({}, {"label_smoothing": 0.1}, {"ignore_index": 1}, {"ignore_index": 1, "label_smoothing": 0.3},
                 {"weight": [1.0, 4.0, 0.25]}, {"weight": [0.1, 0.7, 0.2], "label_smoothing": 0.2},
                 {"weight": [0.001, 0.3, 30.0], "ignore_index": 0}, {"weight": [2.0, 0.0, 1.0]})

HEAD = """{"topic": "losses", "source": "torch 2.11.0; written by losses.py",
"fields": {"kind=classes": "logits [B, C], target [B] -> mean and its gradient", \
"kind=ids": "logits [B, T, V], target [B, T]", "kind=values": "output and target [B, O]"},
"cases": [
"""

main()
