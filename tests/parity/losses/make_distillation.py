"""Writes ../../components/loss/recorded/distillation.json: the loss of a model that learns from another one, by PyTorch.

usage: make_distillation.py
"""

import json
import pathlib

import torch
import torch.nn.functional as F

RECORDED = pathlib.Path(__file__).parents[2] / "components/loss/recorded/distillation.json"
CASES = {
    "as it is": {},
    "the teacher alone": {"alpha": 1.0, "temperature": 1.0},
    "the targets alone": {"alpha": 0.0, "temperature": 3.0},
    "hot": {"alpha": 0.9, "temperature": 4.0},
    "cold": {"alpha": 0.3, "temperature": 0.5},
}
B, T, C, C_TEACHER, V = 2, 5, 4, 6, 7
PAD = -100


def main():
    torch.manual_seed(11)
    hidden, weight = torch.randn(B, T, C), torch.randn(V, C)
    teacher_hidden, teacher_weight = torch.randn(B, T, C_TEACHER), torch.randn(V, C_TEACHER)
    target = torch.tensor([[3, 6, PAD, 0, 5], [PAD, PAD, 1, 1, PAD]])
    cases = []
    for name, options in CASES.items():
        o = {"alpha": 0.5, "temperature": 2.0, **options}
        h, w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
        counts = (target != PAD).flatten()
        student = (h @ w.t()).flatten(0, 1)[counts]
        teacher = (teacher_hidden @ teacher_weight.t()).flatten(0, 1)[counts]
        rows = len(student)
        soft = F.kl_div(F.log_softmax(student / o["temperature"], -1), F.softmax(teacher / o["temperature"], -1),
                        reduction="batchmean") * o["temperature"] ** 2
        hard = F.cross_entropy(student, target.flatten()[counts])
        loss = o["alpha"] * soft + (1 - o["alpha"]) * hard
        loss.backward()
        cases.append({"name": name, "options": options, "rows": rows, "loss": loss.item(), "teacher": soft.item(),
                      "target": hard.item(), "hidden_gradient": h.grad.flatten().tolist(),
                      "weight_gradient": w.grad.flatten().tolist()})
    recorded = {"hidden": hidden.tolist(), "weight": weight.tolist(), "teacher_hidden": teacher_hidden.tolist(),
                "teacher_weight": teacher_weight.tolist(), "target": target.tolist(), "cases": cases}
    RECORDED.write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    main()
