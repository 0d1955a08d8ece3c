"""Writes ../components/loss/recorded/dpo.json: losses of pairs by TRL's formulas, which roux has to agree with.

usage: make_dpo.py [--check FOLDER]

--check writes nothing: it runs dpo_loss of FOLDER/trl/trainer/dpo_trainer.py (TRL 0.24, unpacked) on the recorded
log-probabilities, and compares.

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
}
C, V = 4, 7
# Of each pair: tokens of the prompt, of the chosen and of the rejected completion.
LENGTHS = [(2, 3, 2), (1, 2, 4), (3, 1, 1)]


def sequence_logps(hidden, weight, ids, prompt):
    """Of the completion's tokens, each predicted by the position before it."""
    logps = F.log_softmax(hidden @ weight.t(), dim=-1)[:-1].gather(1, ids[1:].unsqueeze(1)).squeeze(1)
    return logps[prompt - 1:]


def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta, label_smoothing=0.0, loss_type="sigmoid",
             reference_free=False):
    """trl.DPOTrainer.dpo_loss 0.24 of these two types."""
    logits = chosen - rejected - (0.0 if reference_free else ref_chosen - ref_rejected)
    if loss_type == "ipo":
        losses = (logits - 1 / (2 * beta)) ** 2
    else:
        losses = -F.logsigmoid(beta * logits) * (1 - label_smoothing) - F.logsigmoid(-beta * logits) * label_smoothing
    return losses, beta * (chosen - ref_chosen), beta * (rejected - ref_rejected)


def case_results(pairs, hidden, weight, references, options):
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    ipo, free = options.get("loss_type") == "ipo", options.get("reference_free", False)
    chosen, rejected, ref_chosen, ref_rejected = [], [], [], []
    for b, (ids, rejected_at, prompt) in enumerate(pairs):
        parts = [(slice(0, rejected_at), chosen, ref_chosen), (slice(rejected_at, len(ids)), rejected, ref_rejected)]
        for side, (part, logps, reference) in enumerate(parts):
            of_tokens = sequence_logps(hidden[b, part], weight, ids[part], prompt)
            logps.append(of_tokens.mean() if ipo else of_tokens.sum())
            kept = 0.0 if free else references[b][side]
            reference.append(torch.tensor(kept / len(of_tokens) if ipo else kept, dtype=torch.float64))
    stacked = [torch.stack(one) for one in (chosen, rejected, ref_chosen, ref_rejected)]
    losses, of_chosen, of_rejected = dpo_loss(*stacked, **options)
    losses.sum().backward()
    return {
        "options": options,
        "loss": losses.sum().item(),
        "logps": [one.tolist() for one in stacked],
        "figures": [of_chosen.sum().item(), of_rejected.sum().item(), (of_chosen > of_rejected).double().sum().item(),
                    (of_chosen - of_rejected).sum().item(), stacked[0].sum().item(), stacked[1].sum().item()],
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
        "rejected_at": [pair[1] for pair in pairs],
        "reference_chosen": [one[0] for one in references], "reference_rejected": [one[1] for one in references],
        "cases": [{"name": name, **case_results(pairs, hidden, weight, references, options)}
                  for name, options in CASES.items()],
    }


def trl_dpo_loss(folder):
    """The method itself, without what else its module imports."""
    tree = ast.parse((pathlib.Path(folder) / "trl/trainer/dpo_trainer.py").read_text())
    method = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "dpo_loss")
    for argument in method.args.args:
        argument.annotation = None
    method.returns = None
    scope = {"torch": torch, "F": F, "FDivergenceType": types.SimpleNamespace(
        ALPHA_DIVERGENCE="alpha_divergence", JS_DIVERGENCE="js_divergence")}
    exec(compile(ast.Module([method], []), "dpo_trainer.py", "exec"), scope)
    return scope["dpo_loss"]


def check(folder):
    method = trl_dpo_loss(folder)
    for case in json.loads(RECORDED.read_text())["cases"]:
        options = {"label_smoothing": 0.0, "loss_type": "sigmoid", "reference_free": False, **case["options"]}
        trainer = types.SimpleNamespace(accelerator=types.SimpleNamespace(device="cpu"),
                                        f_divergence_type="reverse_kl", **options)
        logps = [torch.tensor(one, dtype=torch.float64) for one in case["logps"]]
        losses, chosen, rejected = method(trainer, *logps, options["loss_type"])
        found = torch.stack([losses.sum(), chosen.sum(), rejected.sum()])
        torch.testing.assert_close(found, torch.tensor([case["loss"], *case["figures"][:2]], dtype=torch.float64))
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
