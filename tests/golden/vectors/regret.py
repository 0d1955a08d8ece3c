"""Writes regret.json: Optuna's bounds on the regret, and the thresholds that its terminator compares them with.

usage: python regret.py > regret.json   (optuna 5.0.0, torch 2.11.0, scipy 1.17.1, numpy 2.4.6)

Optuna's own vary with the seed of the Sobol points that it asks about: `mean` and `deviation` are over 16 seeds.
"""

import json
import math
import random
import statistics
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.terminator import MedianErrorEvaluator, RegretBoundEvaluator

SEEDS = 16


def branin(p):
    x, y = p["x"], p["y"]
    return ((y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def bowl(p):
    return (p["x"] - 0.3) ** 2 + 2 * (p["y"] - 0.6) ** 2


def training(p):
    """Like a loss over learning rate, width, depth and an optimizer."""
    bowl = (math.log10(p["lr"]) + 2.5) ** 2
    return bowl + {"adamw": 0, "sgd": 0.8, "lion": 0.3}[p["optimizer"]] + 4 / p["width"] + 0.02 * (p["depth"] - 4) ** 2


def noise(p):
    return random.gauss(0, 1)


SQUARE = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
# By name, as Optuna orders them: which dimension of the Sobol points a parameter gets matters a little.
MIXED = {"depth": IntDistribution(1, 8), "lr": FloatDistribution(1e-5, 1e-1, log=True),
         "optimizer": CategoricalDistribution(["adamw", "sgd", "lion"]), "width": IntDistribution(4, 64, step=4)}
WIDE = {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}
RANDOM = optuna.samplers.RandomSampler
CASES = [  # name, objective, maximize, sampler, lengths of the history, space
    ("branin by chance", branin, False, RANDOM, [20, 40, 60], WIDE),
    ("branin by TPE", branin, False, optuna.samplers.TPESampler, [30, 60, 100], WIDE),
    ("a bowl by CMA-ES", bowl, False, optuna.samplers.CmaEsSampler, [30, 60, 120], SQUARE),
    ("a bowl turned over, by a Gaussian process", lambda p: -bowl(p), True, optuna.samplers.GPSampler, [20, 35], SQUARE),
    ("a training by TPE", training, False, optuna.samplers.TPESampler, [30, 60, 120], MIXED),
    ("noise", noise, False, RANDOM, [30, 60], SQUARE),
    ("one trial", bowl, False, RANDOM, [1], SQUARE),
]


def column(value, distribution):
    return distribution.to_internal_repr(value) if isinstance(distribution, CategoricalDistribution) else value


def dimension(name, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return {"name": name, "kind": "choice", "choices": len(distribution.choices)}
    kind = "integer" if isinstance(distribution, IntDistribution) else "real"
    step = 0 if distribution.log or kind == "integer" and distribution.step == 1 else distribution.step or 0
    return {"name": name, "kind": kind, "min": distribution.low, "max": distribution.high, "step": step,
            "log": distribution.log}


def over_seeds(judge):
    values = [judge(RegretBoundEvaluator(seed=seed)) for seed in range(SEEDS)]
    return {"mean": float(f"{statistics.mean(values):.6g}"), "deviation": float(f"{statistics.pstdev(values):.3g}")}


def case(kind, name, study, trials, space, judge):
    sign = -1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1
    return {
        "kind": kind,
        "name": name,
        "input": {
            "dimensions": [dimension(*item) for item in space.items()],
            "points": [[column(trial.params[key], one) for key, one in space.items()] for trial in trials],
            "values": [sign * trial.value for trial in trials],
        },
        "expected": over_seeds(judge),
    }


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    random.seed(1)
    cases = []
    for name, objective, maximize, sampler, lengths, space in CASES:
        study = optuna.create_study(sampler=sampler(seed=1), direction="maximize" if maximize else "minimize")
        for _ in range(max(lengths)):
            trial = study.ask(space)
            study.tell(trial, objective(trial.params))
        for length in lengths:
            trials = study.trials[:length]
            cases.append(case("regret_bound", f"{name}, {length}", study, trials, space,
                              lambda evaluator: evaluator.evaluate(trials, study.direction)))
        if max(lengths) >= 30:
            trials = study.trials[:30]
            cases.append(case("median_threshold", name, study, trials, space,
                              lambda evaluator: MedianErrorEvaluator(evaluator).evaluate(trials, study.direction)))
    print('{"topic": "regret", "source": "optuna 5.0.0, torch 2.11.0, scipy 1.17.1, numpy 2.4.6; written by regret.py",')
    print('"fields": {"kind=regret_bound": "a history of trials (values: the smaller the better) -> RegretBoundEvaluator, '
          'over 16 seeds", "kind=median_threshold": "the same -> MedianErrorEvaluator"},')
    print('"cases": [')
    print(",\n".join(json.dumps(case) for case in cases))
    print("]}")


if __name__ == "__main__":
    main()
