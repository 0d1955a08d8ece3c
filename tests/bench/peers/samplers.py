"""Best value after some trials of Optuna's samplers on standard functions, one study a seed.

    python samplers.py --write samplers.json     all of them, kept for tests/bench/samplers.py (hours: GP is slow)
    python samplers.py --sampler tpe --seeds 3   a few, to look at

The functions are those of tests/bench/samplers.cpp; what is there already is not made again.
"""
import argparse
import json
import math
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")


def reals(trial, count, low, high):
    return [trial.suggest_float(f"x{i}", low, high) for i in range(count)]


def branin(trial):
    x, y = trial.suggest_float("x0", -5, 10), trial.suggest_float("x1", 0, 15)
    return (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6)**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


HEIGHTS = [1.0, 1.2, 3.0, 3.2]
HARTMANN3 = ([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]],
             [[0.3689, 0.1170, 0.2673], [0.4699, 0.4387, 0.7470], [0.1091, 0.8732, 0.5547], [0.0381, 0.5743, 0.8828]])
HARTMANN6 = ([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
              [17, 8, 0.05, 10, 0.1, 14]],
             [[0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
              [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]])


def hartmann(trial, steepness, centres):
    x = reals(trial, len(steepness[0]), 0, 1)
    return -sum(h * math.exp(-sum(s * (v - c)**2 for s, v, c in zip(row, x, centre)))
                for h, row, centre in zip(HEIGHTS, steepness, centres))


def rosenbrock(trial):
    x = reals(trial, 4, -5, 10)
    return sum(100 * (b - a * a)**2 + (1 - a)**2 for a, b in zip(x, x[1:]))


def ackley(trial):
    x = reals(trial, 5, -32.768, 32.768)
    return 20 + math.e - 20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / len(x))) \
        - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / len(x))


def rastrigin(trial):
    return sum(10 + v * v - 10 * math.cos(2 * math.pi * v) for v in reals(trial, 4, -5.12, 5.12))


def levy(trial):
    w = [1 + (v - 1) / 4 for v in reals(trial, 4, -10, 10)]
    return math.sin(math.pi * w[0])**2 \
        + sum((v - 1)**2 * (1 + 10 * math.sin(math.pi * v + 1)**2) for v in w[:-1]) \
        + (w[-1] - 1)**2 * (1 + math.sin(2 * math.pi * w[-1])**2)


def styblinski_tang(trial):
    return sum(v**4 - 16 * v * v + 5 * v for v in reals(trial, 4, -5, 5)) / 2


def mixed(trial):
    """As a small network answers to its hyperparameters: a rate, a depth, a width, a share and a choice."""
    rate, share = trial.suggest_float("rate", 1e-5, 1e-1, log=True), trial.suggest_float("share", 0, 0.9)
    depth, width = trial.suggest_int("depth", 1, 8), trial.suggest_int("width", 8, 512, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b", "c", "d"])
    best_rate, offset = {"a": (-3.0, 0.0), "b": (-2.0, 0.3), "c": (-4.0, 0.15), "d": (-1.5, 0.6)}[kind]
    size = math.log2(width) - 7
    return (math.log10(rate) - best_rate + 0.3 * size)**2 + offset + 2 * (share - 0.2 - 0.05 * depth)**2 \
        + 0.1 * abs(depth - 4) + 0.2 * size * size


def conditional(trial):
    """Three methods, each with parameters of its own beside a shared one."""
    shared = trial.suggest_float("shared", -2, 2)
    method = trial.suggest_categorical("method", ["a", "b", "c"])
    if method == "a":
        x, y = trial.suggest_float("a.x", -5, 5), trial.suggest_float("a.y", -5, 5)
        return 0.2 + 0.3 * (shared - 1)**2 + 0.1 * (x - 2)**2 + 0.1 * (y + 1 - 0.5 * x)**2
    if method == "b":
        rate, count = trial.suggest_float("b.rate", 1e-4, 1, log=True), trial.suggest_int("b.count", 1, 20)
        return 0.3 * (shared + 0.5)**2 + 0.5 * (math.log10(rate) + 2)**2 + 0.02 * (count - 13)**2
    x = trial.suggest_float("c.x", 0, 1)
    return 0.5 + 0.1 * (shared - x)**2 + abs(x - 0.7)


FUNCTIONS = {
    "branin": branin,
    "hartmann3": lambda trial: hartmann(trial, *HARTMANN3),
    "hartmann6": lambda trial: hartmann(trial, *HARTMANN6),
    "rosenbrock": rosenbrock,
    "ackley": ackley,
    "rastrigin": rastrigin,
    "levy": levy,
    "styblinski_tang": styblinski_tang,
    "mixed": mixed,
    "conditional": conditional,
}


def best(sampler, function, seed, trials):
    import optuna
    kinds = {"tpe": optuna.samplers.TPESampler, "cma_es": optuna.samplers.CmaEsSampler,
             "gp": optuna.samplers.GPSampler, "random": optuna.samplers.RandomSampler}
    study = optuna.create_study(sampler=kinds[sampler](seed=seed))
    study.optimize(FUNCTIONS[function], n_trials=trials)
    return study.best_value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sampler", action="append", choices=["tpe", "cma_es", "gp", "random"])
    parser.add_argument("--function", action="append", choices=list(FUNCTIONS))
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--write", type=Path, metavar="FILE")
    a = parser.parse_args()
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    version = f"optuna {optuna.__version__}"
    known = {"made_by": version, "trials": a.trials, "best": {}}
    if a.write and a.write.exists():
        known = json.loads(a.write.read_text())
        if known["made_by"] != version or known["trials"] != a.trials:
            sys.exit(f"{a.write} is of {known['made_by']} and {known['trials']} trials: remove it first")
    for seed in range(a.seeds):
        for sampler in a.sampler or ["tpe", "cma_es", "gp"]:
            for function in a.function or FUNCTIONS:
                values = known["best"].setdefault(sampler, {}).setdefault(function, [])
                if seed >= len(values):
                    values.append(float(f"{best(sampler, function, seed, a.trials):.10g}"))
        if a.write:
            lines = [f'  "{s}": {{\n' + ",\n".join(f'    "{f}": {json.dumps(v)}' for f, v in by.items()) + "\n  }"
                     for s, by in known["best"].items()]
            a.write.write_text(f'{{"made_by": "{known["made_by"]}", "trials": {known["trials"]}, "best": {{\n'
                               + ",\n".join(lines) + "\n}}\n")
    for sampler, by in known["best"].items():
        for function, values in by.items():
            print(f"{sampler:8} {function:16} median {sorted(values)[len(values) // 2]:.6g}  of {len(values)}")


if __name__ == "__main__":
    main()
