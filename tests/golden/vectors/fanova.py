"""Writes fanova.json: the importances of parameters by Optuna, for histories of random search.

usage: python fanova.py > fanova.json   (optuna 5.0.0, scikit-learn 1.9.1, numpy 2.4.6)

Optuna's own vary with the seed of its forest: `expected` are the means over 32 seeds.
"""

import json
import math
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

SEEDS = 32


def branin(p):
    x, y = p["x"], p["y"]
    return ((y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def training(p):
    """Like a loss over learning rate, width, depth and an optimizer."""
    bowl = (math.log10(p["lr"]) + 2.5) ** 2
    return bowl + {"adamw": 0, "sgd": 0.8, "lion": 0.3}[p["optimizer"]] + 4 / p["width"] + 0.02 * (p["depth"] - 4) ** 2


def conditional(p):
    value = (p["x"] - 0.3) ** 2 + (0.5 if p["kind"] == "b" else 0)
    return value + ((p["momentum"] - 0.9) ** 2 if "momentum" in p else 0)


def ten_choices(p):
    return [5, 1, 4, 2, 8, 0, 3, 9, 6, 7][p["choice"]] * 0.1 + p["x"]


CASES = [
    ("branin", branin, 100, {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}),
    ("training", training, 120, {
        "lr": FloatDistribution(1e-5, 1e-1, log=True), "width": IntDistribution(4, 64, step=4),
        "depth": IntDistribution(1, 8), "optimizer": CategoricalDistribution(["adamw", "sgd", "lion"])}),
    ("conditional", conditional, 80, {
        "x": FloatDistribution(0, 1), "kind": CategoricalDistribution(["a", "b"]),
        "momentum": FloatDistribution(0, 0.99)}),
    ("many choices", ten_choices, 60, {
        "choice": CategoricalDistribution(list(range(10))), "x": FloatDistribution(0, 0.3, step=0.1),
        "idle": FloatDistribution(0, 1)}),
    ("few trials", branin, 8, {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}),
]


def history(name, objective, count, space):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=len(name)))
    for _ in range(count):
        trial = study.ask()
        params = {}
        for key, distribution in space.items():
            if key == "momentum" and params["kind"] == "a":
                continue
            params[key] = trial._suggest(key, distribution)
        study.tell(trial, objective(params))
    return study


def column(value, distribution):
    if value is None:
        return None
    return distribution.to_internal_repr(value) if isinstance(distribution, CategoricalDistribution) else value


def dimension(name, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return {"name": name, "kind": "choice", "choices": len(distribution.choices)}
    kind = "integer" if isinstance(distribution, IntDistribution) else "real"
    step = 0 if distribution.log or kind == "integer" and distribution.step == 1 else distribution.step or 0
    return {"name": name, "kind": kind, "min": distribution.low, "max": distribution.high, "step": step,
            "log": distribution.log}


def importances(study):
    sums = {}
    for seed in range(SEEDS):
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
        for name, value in optuna.importance.get_param_importances(study, evaluator=evaluator).items():
            sums.setdefault(name, []).append(value)
    return {name: round(sum(values) / SEEDS, 4) for name, values in sums.items()}


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    cases = []
    for name, objective, count, space in CASES:
        study = history(name, objective, count, space)
        cases.append({
            "kind": "importances",
            "name": name,
            "input": {
                "dimensions": [dimension(*item) for item in space.items()],
                "points": [[column(trial.params.get(key), kind) for key, kind in space.items()]
                           for trial in study.trials],
                "values": [trial.value for trial in study.trials],
            },
            "expected": importances(study),
        })
    print('{"topic": "fanova", "source": "optuna 5.0.0, scikit-learn 1.9.1, numpy 2.4.6; written by fanova.py",')
    print('"fields": {"kind=importances": "a history of trials (null: plays no part) -> the share of each parameter, '
          'the mean over 32 seeds"},')
    print('"cases": [')
    print(",\n".join(json.dumps(case) for case in cases))
    print("]}")


if __name__ == "__main__":
    main()
