"""Writes ../components/loss/recorded/dpo.json: losses of pairs by TRL's formulas, which roux has to agree with.

usage: make_dpo.py [--check FOLDER]

--check writes nothing: it runs the loss of FOLDER/trl/trainer/dpo_trainer.py (TRL 1.16, unpacked) on the recorded
numbers, and compares losses, rewards and gradients.

Rows are as roux has them, the chosen sequence and behind it the rejected one; here each sequence is computed by itself,
as TRL's concatenated_forward does.
"""

import ast
import json
import pathlib
import sys
import types

import torch
import torch.nn.functional as F

RECORDED = pathlib.Path(__file__).parent.parent / "components/loss/recorded/dpo.json"
CASES = {
    "sigmoid": {"beta": 0.1},
    "a large beta": {"beta": 2.5},
    "smoothed": {"beta": 0.3, "label_smoothing": 0.2},
    "reference_free": {"beta": 0.5, "reference_free": True},
    "ipo": {"beta": 0.4, "loss_type": "ipo"},
    "sigmoid_norm": {"beta": 2.0, "loss_type": "sigmoid_norm"},
    "hinge": {"beta": 0.3, "loss_type": "hinge"},
    "robust": {"beta": 0.3, "loss_type": "robust", "label_smoothing": 0.1},
    "exo_pair": {"beta": 0.3, "loss_type": "exo_pair", "label_smoothing": 0.001},
    "nca_pair": {"beta": 0.2, "loss_type": "nca_pair"},
    "bco_pair": {"beta": 0.2, "loss_type": "bco_pair"},
    "sppo_hard": {"beta": 0.5, "loss_type": "sppo_hard"},
    "apo_zero": {"beta": 0.2, "loss_type": "apo_zero"},
    "apo_down": {"beta": 0.2, "loss_type": "apo_down"},
    "discopop": {"beta": 0.1, "loss_type": "discopop"},
    "another temperature": {"beta": 0.1, "loss_type": "discopop", "discopop_tau": 0.5},
    "less of the longer one": {"beta": 0.3, "ld_alpha": 0.25},
    "nothing of the longer one": {"beta": 0.3, "loss_type": "apo_zero", "ld_alpha": 0.0},
    "several": {"beta": 0.2, "losses": {"sigmoid": 0.8, "bco_pair": 0.2, "ipo": 0.05}},
}
C, V = 4, 7
# Of each pair: tokens of the prompt, of the chosen and of the rejected completion.
LENGTHS = [(2, 3, 2), (1, 2, 4), (3, 1, 1)]


def sequence_logps(hidden, weight, ids, prompt):
    """Of the completion's tokens, each predicted by the position before it."""
    logps = F.log_softmax(hidden @ weight.t(), dim=-1)[:-1].gather(1, ids[1:].unsqueeze(1)).squeeze(1)
    return logps[prompt - 1:]


def pair_losses(name, chosen, rejected, lengths, o):
    """Of each pair; `chosen` and `rejected` are sums of logarithms of the policy less those of the reference."""
    beta, wrong, log_sigmoid, sigmoid = o["beta"], o["label_smoothing"], F.logsigmoid, torch.sigmoid
    margin = beta * (chosen - rejected)
    means = chosen / lengths[0] - rejected / lengths[1]
    if name == "sigmoid":
        return -log_sigmoid(margin) * (1 - wrong) - log_sigmoid(-margin) * wrong
    if name == "sigmoid_norm":
        return -log_sigmoid(beta * means)
    if name == "hinge":
        return torch.relu(1 - margin)
    if name == "ipo":
        return (means - 1 / (2 * beta)) ** 2
    if name == "robust":
        return (-log_sigmoid(margin) * (1 - wrong) + log_sigmoid(-margin) * wrong) / (1 - 2 * wrong)
    if name == "exo_pair":
        q = torch.stack([sigmoid(margin), sigmoid(-margin)])
        p = torch.tensor([1 - wrong, wrong], dtype=torch.float64).unsqueeze(1)
        return (q * (q.log() - p.log())).sum(0)
    if name == "nca_pair":
        return (-log_sigmoid(beta * chosen) - 0.5 * log_sigmoid(-beta * chosen) - 0.5 * log_sigmoid(-beta * rejected))
    if name == "bco_pair":
        return -log_sigmoid(beta * chosen) - log_sigmoid(-beta * rejected)
    if name == "sppo_hard":
        return (chosen - 0.5 / beta) ** 2 + (rejected + 0.5 / beta) ** 2
    if name == "apo_zero":
        return 1 - sigmoid(beta * chosen) + sigmoid(beta * rejected)
    if name == "apo_down":
        return sigmoid(beta * chosen) + 1 - sigmoid(margin)
    share = sigmoid(margin / o["discopop_tau"])
    return -log_sigmoid(margin) * (1 - share) + torch.exp(-margin) * share


def completed(options):
    return {"label_smoothing": 0.0, "reference_free": False, "discopop_tau": 0.05, "ld_alpha": None,
            "losses": {options.get("loss_type", "sigmoid"): 1.0}, **options}


def case_results(pairs, hidden, weight, references, options):
    o = completed(options)
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    sums, lengths, kept = ([], []), ([], []), ([], [])
    for b, (ids, rejected_at, prompt) in enumerate(pairs):
        of_tokens = [sequence_logps(hidden[b, part], weight, ids[part], prompt)
                     for part in (slice(0, rejected_at), slice(rejected_at, len(ids)))]
        shorter = min(len(one) for one in of_tokens)
        for side, logps in enumerate(of_tokens):
            beyond = 1.0 if o["ld_alpha"] is None else o["ld_alpha"]
            sums[side].append(logps[:shorter].sum() + beyond * logps[shorter:].sum())
            lengths[side].append(len(logps))
            kept[side].append(0.0 if o["reference_free"] else references[b][side])
    chosen, rejected = (torch.stack(one) for one in sums)
    ratios = [logps - torch.tensor(one, dtype=torch.float64) for logps, one in zip((chosen, rejected), kept)]
    lengths = [torch.tensor(one, dtype=torch.float64) for one in lengths]
    loss = sum(weight_of * pair_losses(name, *ratios, lengths, o).sum() for name, weight_of in o["losses"].items())
    loss.backward()
    rewards = [o["beta"] * one for one in ratios]
    return {
        "options": options,
        "loss": loss.item(),
        "figures": [rewards[0].sum().item(), rewards[1].sum().item(), (rewards[0] > rewards[1]).double().sum().item(),
                    (rewards[0] - rewards[1]).sum().item(), chosen.sum().item(), rejected.sum().item()],
        "hidden_gradient": hidden.grad.tolist(),
        "weight_gradient": weight.grad.tolist(),
    }


def record():
    torch.manual_seed(0)
    pairs, targets = [], []
    width = max(2 * p + c + r for p, c, r in LENGTHS)
    for prompt, chosen, rejected in LENGTHS:
        beginning = torch.randint(V, (prompt,))
        ids = torch.cat([beginning, torch.randint(V, (chosen,)), beginning, torch.randint(V, (rejected,))])
        rejected_at = prompt + chosen
        target = [-100] * width
        for first, count in ((prompt, chosen), (rejected_at + prompt, rejected)):
            for at in range(first, first + count):
                target[at - 1] = ids[at].item()
        pairs.append((ids, rejected_at, prompt))
        targets.append(target)
    # Few digits, so that the file is short and float32 has the same numbers.
    hidden = (torch.randn(len(pairs), width, C, dtype=torch.float64) * 64).round() / 64
    weight = (torch.randn(V, C, dtype=torch.float64) * 64).round() / 64
    references = [[-3.25, -4.5], [-5.0, -6.75], [-1.5, -1.25]]
    return {
        "hidden": hidden.tolist(), "weight": weight.tolist(), "target": targets,
        "rejected_at": [pair[1] for pair in pairs], "lengths": [len(pair[0]) for pair in pairs],
        "reference_chosen": [one[0] for one in references], "reference_rejected": [one[1] for one in references],
        "cases": [{"name": name, **case_results(pairs, hidden, weight, references, options)}
                  for name, options in CASES.items()],
    }


def trl_loss(folder):
    """The method itself, without what else its module imports."""
    tree = ast.parse((pathlib.Path(folder) / "trl/trainer/dpo_trainer.py").read_text())
    method = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_compute_loss")

    scope = {"torch": torch, "F": F}
    exec(compile(ast.Module([method], []), "dpo_trainer.py", "exec"), scope)
    return scope["_compute_loss"]


class Metrics(dict):
    def __missing__(self, key):
        return self.setdefault(key, [])


def as_trl(method, recorded, options):
    """Loss and gradients by TRL of the recorded rows: all chosen sequences, then all rejected ones."""
    o = completed(options)
    hidden, weight = (torch.tensor(recorded[name], dtype=torch.float64).requires_grad_() for name in ("hidden", "weight"))
    chosen, rejected = [], []
    for b, (target, at, length) in enumerate(zip(recorded["target"], recorded["rejected_at"], recorded["lengths"])):
        for part, to in ((range(0, at), chosen), (range(at, length), rejected)):
            to.append((b, part, [target[i - 1] if i > part[0] else -100 for i in part]))
    rows = chosen + rejected
    width = max(len(part) for _, part, _ in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    outputs = []
    for row, (b, part, targets) in enumerate(rows):
        for i, id in enumerate(targets):
            ids[row, i], mask[row, i] = max(id, 0), int(id != -100)
        logits = hidden[b, part[0]:part[-1] + 1] @ weight.t()
        outputs.append(F.pad(logits, (0, 0, 0, width - len(part))))
    logits = torch.stack(outputs)
    logps = F.log_softmax(logits[:, :-1], dim=-1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1) * mask[:, 1:]
    output = types.SimpleNamespace(logits=logits, log_probs=logps, entropy=torch.zeros_like(logps),
                                   mean_logits=torch.zeros_like(logps), is_top1=torch.zeros_like(mask[:, 1:]))
    inputs = {"input_ids": ids, "completion_mask": mask, "attention_mask": torch.ones_like(mask)}
    for name in ("chosen", "rejected"):
        one = torch.tensor(recorded["reference_" + name], dtype=torch.float64)
        inputs[f"ref_{name}_logps"] = torch.zeros_like(one) if o["reference_free"] else one
    same = types.SimpleNamespace(device="cpu", gather=lambda one: one, gather_for_metrics=lambda one: one)
    trainer = types.SimpleNamespace(
        model=types.SimpleNamespace(training=True), accelerator=same, aux_loss_enabled=False, ld_alpha=o["ld_alpha"],
        precompute_ref_logps=True, f_divergence_type="reverse_kl", loss_types=list(o["losses"]),
        loss_weights=list(o["losses"].values()), beta=o["beta"], label_smoothing=o["label_smoothing"],
        use_weighting=False, args=types.SimpleNamespace(discopop_tau=o["discopop_tau"]), _metrics={"train": Metrics()},
        _total_train_tokens=0, _tp_size=1)
    loss = method(trainer, lambda **_: output, inputs, False)
    loss = loss[0] if isinstance(loss, tuple) else loss
    loss.backward()
    pairs = len(chosen)
    rewards = [trainer._metrics["train"]["rewards/" + name][0] * pairs for name in ("chosen", "rejected")]
    return [loss.item() * pairs, *rewards], hidden.grad * pairs, weight.grad * pairs


def check(folder):
    method = trl_loss(folder)
    recorded = json.loads(RECORDED.read_text())
    for case in recorded["cases"]:
        if case["name"] == "smoothed":  # conservative DPO, which TRL 1.16 has no longer
            continue
        figures, *gradients = as_trl(method, recorded, case["options"])
        expected = [[case["loss"], *case["figures"][:2]], case["hidden_gradient"], case["weight_gradient"]]
        for found, one in zip((torch.tensor(figures, dtype=torch.float64), *gradients), expected):
            torch.testing.assert_close(found, torch.tensor(one, dtype=torch.float64), rtol=1e-6, atol=1e-7)
        print(f"{case['name']}: as TRL")


def main(arguments):
    if arguments[:1] == ["--check"] and len(arguments) == 2:
        return check(arguments[1])
    if arguments:
        sys.exit(__doc__)
    def rounded(value):
        if isinstance(value, dict):
            return {key: rounded(one) for key, one in value.items()}
        if isinstance(value, list):
            return [rounded(one) for one in value]
        return round(value, 9) if isinstance(value, float) else value
    RECORDED.write_text(json.dumps(rounded(record())) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
