"""Writes ../components/loss/recorded/dpo.json: losses of pairs by TRL's formulas, which roux has to agree with.

usage: make_dpo.py [--check FOLDER]

--check writes nothing: it runs the losses of FOLDER/trl (TRL 1.16, unpacked), of DPO and KTO, and of CPO and ORPO in
experimental/, on the recorded numbers, and compares losses, rewards and gradients.

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
    "sft": {"beta": 0.2, "loss_type": "sft"},
    "sft beside a pair's": {"beta": 0.2, "losses": {"sigmoid": 1.0, "sft": 0.1}},
    "sft takes whole sums": {"beta": 0.2, "losses": {"hinge": 0.5, "sft": 0.3}, "ld_alpha": 0.25},
}
CPO_CASES = {
    "cpo": {"beta": 0.1},
    "cpo smoothed": {"beta": 0.3, "label_smoothing": 0.2, "cpo_alpha": 0.5},
    "cpo hinge": {"beta": 0.3, "loss_type": "hinge"},
    "cpo ipo": {"beta": 0.4, "loss_type": "ipo", "cpo_alpha": 2.0},
    "simpo": {"beta": 2.0, "loss_type": "simpo", "cpo_alpha": 0.0, "simpo_gamma": 1.5},
    "simpo smoothed": {"beta": 2.0, "loss_type": "simpo", "label_smoothing": 0.1},
    "alphapo": {"beta": 1.5, "loss_type": "simpo", "alpha": 0.25, "cpo_alpha": 0.0},
    "cpo with alpha": {"beta": 0.3, "alpha": -0.2},
}
KTO_CASES = {
    "kto": {"beta": 0.1},
    "kto of a model that has moved": {"beta": 0.2, "desirable_weight": 1.25},
    "kto weighted": {"beta": 0.5, "desirable_weight": 1.5, "undesirable_weight": 0.5},
    "apo_zero_unpaired": {"beta": 0.3, "loss_type": "apo_zero_unpaired", "undesirable_weight": 2.0},
}
# The reference's log-probabilities of the rejected sequences: by those of DPO the divergence is negative, which counts as 0.
MOVED_CASES = {"kto of a model that has moved": [-6.0, -9.5, -2.25]}
DESIRABLE = [True, False, True]  # of each row as a labelled record, its rejected sequence for the divergence
ORPO_CASES = {"orpo": {"beta": 0.1}, "a large share": {"beta": 1.5}}
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
    assert name == "discopop"
    share = sigmoid(margin / o["discopop_tau"])
    return -log_sigmoid(margin) * (1 - share) + torch.exp(-margin) * share


def completed(options):
    return {"label_smoothing": 0.0, "reference_free": False, "discopop_tau": 0.05, "ld_alpha": None,
            "losses": {options.get("loss_type", "sigmoid"): 1.0}, **options}


def figures_of(rewards, logps):
    return [rewards[0].sum().item(), rewards[1].sum().item(), (rewards[0] > rewards[1]).double().sum().item(),
            (rewards[0] - rewards[1]).sum().item(), logps[0].sum().item(), logps[1].sum().item()]


def results(loss, options, name, further_counts, figures, counts, hidden, weight):
    """`loss`: the means of all pairs and of further elements, times the number of pairs."""
    loss.backward()
    return {"loss_type": name, "options": options, "loss": loss.item(), "further_counts": further_counts,
            "figures": figures, "figure_counts": counts, "hidden_gradient": hidden.grad.tolist(),
            "weight_gradient": weight.grad.tolist()}


def completion_logps(pairs, hidden, weight):
    """Of each pair, for both sides."""
    return [[sequence_logps(hidden[b, part], weight, ids[part], prompt)
             for part in (slice(0, rejected_at), slice(rejected_at, len(ids)))]
            for b, (ids, rejected_at, prompt) in enumerate(pairs)]


def cpo_results(pairs, hidden, weight, options):
    o = {"label_smoothing": 0.0, "loss_type": "sigmoid", "cpo_alpha": 1.0, "simpo_gamma": 0.5, "alpha": 0.0, **options}
    beta, wrong, count = o["beta"], o["label_smoothing"], len(pairs)
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    of_tokens = completion_logps(pairs, hidden, weight)
    reduced = torch.mean if o["loss_type"] in ("ipo", "simpo") else torch.sum
    logps = [torch.stack([reduced(pair[side]) for pair in of_tokens]) for side in (0, 1)]
    ratios = [(1 - torch.exp(one) ** -o["alpha"]) / o["alpha"] if o["alpha"] else one for one in logps]
    margin = ratios[0] - ratios[1]
    logit = beta * margin - (o["simpo_gamma"] if o["loss_type"] == "simpo" else 0)
    losses = {"hinge": torch.relu(1 - logit), "ipo": (margin - 1 / (2 * beta)) ** 2}.get(
        o["loss_type"], -F.logsigmoid(logit) * (1 - wrong) - F.logsigmoid(-logit) * wrong)
    nll = -torch.cat([pair[0] for pair in of_tokens])
    loss = losses.sum() + o["cpo_alpha"] * nll.mean() * count
    figures = figures_of([beta * one for one in ratios], logps) + [nll.sum().item()]
    return results(loss, options, "cpo", [len(nll)], figures, [count] * 6 + [len(nll)], hidden, weight)


def kto_results(name, pairs, hidden, weight, references, options):
    o = {"desirable_weight": 1.0, "undesirable_weight": 1.0, "loss_type": "kto", **options}
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    of_tokens = completion_logps(pairs, hidden, weight)
    logps = torch.stack([own.sum() for own, _ in of_tokens])
    ratio = logps - torch.tensor([own for own, _ in references], dtype=torch.float64)
    others = torch.stack([other.sum() for _, other in of_tokens]).detach()
    of_others = MOVED_CASES.get(name, [other for _, other in references])
    estimate = (others - torch.tensor(of_others, dtype=torch.float64)).mean()
    kl = estimate.clamp(min=0) if o["loss_type"] == "kto" else torch.zeros(())
    good = torch.tensor(DESIRABLE)
    loss = (o["desirable_weight"] * (1 - torch.sigmoid(o["beta"] * (ratio - kl)))[good].sum() +
            o["undesirable_weight"] * (1 - torch.sigmoid(o["beta"] * (kl - ratio)))[~good].sum())
    rewards = o["beta"] * ratio
    figures = [one.sum().item() for one in (rewards[good], rewards[~good], logps[good], logps[~good])]
    counts = [sum(DESIRABLE), len(pairs) - sum(DESIRABLE)] * 2 + [len(pairs)]
    made = results(loss, options, "kto", [], figures + [kl.item() * len(pairs)], counts, hidden, weight)
    return {**made, "estimate": estimate.item(), "reference_rejected": of_others}


def orpo_results(pairs, hidden, weight, options):
    beta, count = options["beta"], len(pairs)
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    of_tokens = completion_logps(pairs, hidden, weight)
    logps = [torch.stack([pair[side].mean() for pair in of_tokens]) for side in (0, 1)]
    odds = [one - torch.log1p(-one.exp()) for one in logps]
    ratio = F.logsigmoid(odds[0] - odds[1])
    nll = -torch.cat([sequence_logps(hidden[b, :at], weight, ids[:at], 1) for b, (ids, at, _) in enumerate(pairs)])
    figures = figures_of([beta * one for one in logps], logps)
    figures += [ratio.sum().item(), (odds[0] - odds[1]).sum().item(), nll.sum().item()]
    loss = nll.mean() * count - beta * ratio.sum()
    return results(loss, options, "orpo", [len(nll)], figures, [count] * 8 + [len(nll)], hidden, weight)


def case_results(pairs, hidden, weight, references, options):
    o = completed(options)
    hidden, weight = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    sums, lengths, kept = ([], []), ([], []), ([], [])
    chosen_tokens = []
    for b, of_tokens in enumerate(completion_logps(pairs, hidden, weight)):
        chosen_tokens.append(of_tokens[0])
        shorter = min(len(one) for one in of_tokens)
        for side, logps in enumerate(of_tokens):
            beyond = 1.0 if o["ld_alpha"] is None else o["ld_alpha"]
            sums[side].append(logps[:shorter].sum() + beyond * logps[shorter:].sum())
            lengths[side].append(len(logps))
            kept[side].append(0.0 if o["reference_free"] else references[b][side])
    chosen, rejected = (torch.stack(one) for one in sums)
    ratios = [logps - torch.tensor(one, dtype=torch.float64) for logps, one in zip((chosen, rejected), kept)]
    lengths = [torch.tensor(one, dtype=torch.float64) for one in lengths]
    nll = -torch.cat(chosen_tokens)
    loss = sum(weight_of * (nll.mean() * len(pairs) if name == "sft" else pair_losses(name, *ratios, lengths, o).sum())
               for name, weight_of in o["losses"].items())
    rewards = [o["beta"] * one for one in ratios]
    further = [len(nll)] if "sft" in o["losses"] else []
    return results(loss, options, "dpo", further, figures_of(rewards, (chosen, rejected)), [len(pairs)] * 6, hidden,
                   weight)


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
        "desirable": [int(one) for one in DESIRABLE],
        "input": [ids.tolist() + [0] * (width - len(ids)) for ids, _, _ in pairs],
        "rejected_at": [pair[1] for pair in pairs], "lengths": [len(pair[0]) for pair in pairs],
        "reference_chosen": [one[0] for one in references], "reference_rejected": [one[1] for one in references],
        "cases": [{"name": name, **case_results(pairs, hidden, weight, references, options)}
                  for name, options in CASES.items()] +
                 [{"name": name, **cpo_results(pairs, hidden, weight, options)} for name, options in CPO_CASES.items()] +
                 [{"name": name, **kto_results(name, pairs, hidden, weight, references, options)}
                  for name, options in KTO_CASES.items()] +
                 [{"name": name, **orpo_results(pairs, hidden, weight, options)}
                  for name, options in ORPO_CASES.items()],
    }


def trl_functions(folder, file, *names):
    """The functions themselves, without what else their module imports."""
    tree = ast.parse((pathlib.Path(folder) / "trl" / file).read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names]
    for node in found:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None

    def selective_log_softmax(logits, index):
        return F.log_softmax(logits, dim=-1).gather(-1, index.unsqueeze(-1)).squeeze(-1)

    scope = {"torch": torch, "F": F, "nn": torch.nn, "selective_log_softmax": selective_log_softmax,
             "is_torch_xla_available": lambda: False}
    exec(compile(ast.Module(found, []), file, "exec"), scope)
    return types.SimpleNamespace(**{name: scope[name] for name in names})


class Metrics(dict):
    def __missing__(self, key):
        return self.setdefault(key, [])


def trl_rows(recorded):
    """The recorded rows as TRL has them: all chosen sequences, then all rejected ones."""
    hidden, weight = (torch.tensor(recorded[name], dtype=torch.float64).requires_grad_() for name in ("hidden", "weight"))
    chosen, rejected = [], []
    for b, (target, at, length) in enumerate(zip(recorded["target"], recorded["rejected_at"], recorded["lengths"])):
        for part, to in ((range(0, at), chosen), (range(at, length), rejected)):
            to.append((b, part, [i > part[0] and target[i - 1] != -100 for i in part]))
    rows = chosen + rejected
    width = max(len(part) for _, part, _ in rows)
    ids, mask, attention = (torch.zeros((len(rows), width), dtype=torch.long) for _ in range(3))
    outputs = []
    for row, (b, part, is_completion) in enumerate(rows):
        ids[row, :len(part)] = torch.tensor([recorded["input"][b][i] for i in part])
        mask[row, :len(part)] = torch.tensor(is_completion)
        attention[row, :len(part)] = 1
        outputs.append(F.pad(hidden[b, part[0]:part[-1] + 1] @ weight.t(), (0, 0, 0, width - len(part))))
    return hidden, weight, ids, mask, attention, torch.stack(outputs)


def without_reference(methods, own_loss, recorded, options):
    """Loss and gradients by TRL's trainers of CPO and ORPO."""
    hidden, weight, ids, mask, attention, logits = trl_rows(recorded)
    batch = {"concatenated_input_ids": ids, "concatenated_attention_mask": attention,
             "concatenated_labels": torch.where(mask == 1, ids, -100)}
    same = types.SimpleNamespace(device="cpu", gather_for_metrics=lambda one: one)
    o = {"label_smoothing": 0.0, "loss_type": "sigmoid", "cpo_alpha": 1.0, "simpo_gamma": 0.5, "alpha": 0.0, **options}
    trainer = types.SimpleNamespace(
        accelerator=same, is_encoder_decoder=False, aux_loss_enabled=False, pad_token_id=0, padding_value=0,
        concatenated_inputs=lambda *_, **__: batch, get_batch_logps=methods.get_batch_logps, **o)
    trainer.concatenated_forward = lambda *arguments: methods.concatenated_forward(trainer, *arguments)
    setattr(trainer, own_loss, lambda *arguments: getattr(methods, own_loss)(trainer, *arguments))
    pairs = len(ids) // 2
    model = lambda *_, **__: types.SimpleNamespace(logits=logits)
    loss, metrics = methods.get_batch_loss_metrics(trainer, model, {"chosen_labels": ids[:pairs]})
    loss.backward()
    names = ["rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen",
             "logps/rejected", *(["log_odds_ratio", "log_odds_chosen"] if own_loss == "odds_ratio_loss" else []), "nll_loss"]
    figures = [float(metrics[name]) for name in names]
    return [loss.item() * pairs, *figures], hidden.grad * pairs, weight.grad * pairs


def labelled(method, recorded, case):
    """Loss and gradients by TRL's trainer of KTO, of the recorded rows as single records."""
    o = {"desirable_weight": 1.0, "undesirable_weight": 1.0, "loss_type": "kto", **case["options"]}
    hidden, weight, ids, mask, attention, logits = trl_rows(recorded)
    records = len(ids) // 2
    logps = F.log_softmax(logits[:, :-1], dim=-1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1) * mask[:, 1:]
    outputs = types.SimpleNamespace(log_probs=logps[:records], entropy=torch.zeros_like(logps[:records]),
                                    mean_logits=torch.zeros_like(logps[:records]))
    kept = [torch.tensor(of, dtype=torch.float64) for of in (recorded["reference_chosen"], case["reference_rejected"])]
    inputs = {"input_ids": ids[:records], "completion_mask": mask[:records], "attention_mask": attention[:records],
              "label": torch.tensor(recorded["desirable"]).bool(), "ref_logps": kept[0], "ref_KL_logps": kept[1]}
    same = types.SimpleNamespace(device="cpu", gather_for_metrics=lambda one: one)
    trainer = types.SimpleNamespace(
        model=types.SimpleNamespace(training=True), accelerator=same, aux_loss_enabled=False, precompute_ref_logps=True,
        calculate_KL=o["loss_type"] == "kto", _compute_kl_logps=lambda *_: logps[records:].sum(-1), _total_train_tokens=0,
        _tp_size=1, _metrics={"train": Metrics()}, **o)
    loss = method(trainer, lambda **_: outputs, inputs, False)
    loss.backward()
    names = ["rewards/chosen", "rewards/rejected", "logps/chosen", "logps/rejected", "kl"]
    figures = [trainer._metrics["train"][name][0] for name in names]
    return [loss.item() * records, *figures], hidden.grad * records, weight.grad * records


def as_trl(method, recorded, options):
    """Loss and gradients by TRL's trainer of DPO."""
    o = completed(options)
    hidden, weight, ids, mask, attention, logits = trl_rows(recorded)
    logps = F.log_softmax(logits[:, :-1], dim=-1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1) * mask[:, 1:]
    output = types.SimpleNamespace(logits=logits, log_probs=logps, entropy=torch.zeros_like(logps),
                                   mean_logits=torch.zeros_like(logps), is_top1=torch.zeros_like(mask[:, 1:]))
    inputs = {"input_ids": ids, "completion_mask": mask, "attention_mask": attention}
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
    pairs = len(ids) // 2
    rewards = [trainer._metrics["train"]["rewards/" + name][0] * pairs for name in ("chosen", "rejected")]
    return [loss.item() * pairs, *rewards], hidden.grad * pairs, weight.grad * pairs


def check(folder):
    dpo = trl_functions(folder, "trainer/dpo_trainer.py", "_compute_loss")._compute_loss
    shared = ("concatenated_forward", "get_batch_logps", "get_batch_loss_metrics")
    cpo = trl_functions(folder, "experimental/cpo/cpo_trainer.py", "cpo_loss", *shared)
    orpo = trl_functions(folder, "experimental/orpo/orpo_trainer.py", "odds_ratio_loss", "log1mexp", *shared)
    kto = trl_functions(folder, "trainer/kto_trainer.py", "_compute_loss")._compute_loss
    recorded = json.loads(RECORDED.read_text())
    for case in recorded["cases"]:
        if case["name"] == "smoothed":  # conservative DPO, which TRL 1.16 has no longer
            continue
        means = [figure / count for figure, count in zip(case["figures"], case["figure_counts"])]
        if case["loss_type"] == "dpo":
            figures, *gradients = as_trl(dpo, recorded, case["options"])
            kept = case["figures"][:2]
        elif case["loss_type"] == "kto":
            figures, *gradients = labelled(kto, recorded, case)
            kept = means
        else:
            own = (cpo, "cpo_loss") if case["loss_type"] == "cpo" else (orpo, "odds_ratio_loss")
            figures, *gradients = without_reference(*own, recorded, case["options"])
            # TRL's CPO logs 0 for a likelihood without weight.
            kept = means if case["options"].get("cpo_alpha") != 0 else [*means[:-1], 0.0]
        expected = [[case["loss"], *kept], case["hidden_gradient"], case["weight_gradient"]]
        # TRL's ORPO computes the odds in float32.
        low = dict(rtol=2e-5, atol=2e-5) if case["loss_type"] == "orpo" else dict(rtol=1e-6, atol=1e-7)
        for found, one in zip((torch.tensor(figures, dtype=torch.float64), *gradients), expected):
            torch.testing.assert_close(found, torch.tensor(one, dtype=torch.float64), **low)
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
