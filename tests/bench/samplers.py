"""roux's samplers against Optuna's: is roux's best value after as many trials worse on one of the functions?"""
import json
import statistics
import subprocess
from pathlib import Path

from scipy.stats import wilcoxon

PEERS = Path(__file__).resolve().parent / "peers" / "samplers.json"
SIGNIFICANT = 0.05


def peer():
    """{sampler: {function: [best value of each seed]}}, and how many trials each had."""
    known = json.loads(PEERS.read_text())
    return known["best"], known["trials"]


def roux(program, sampler, seeds, trials):
    return json.loads(subprocess.check_output([program, "best", sampler, str(seeds), str(trials)]))


def p_worse(own, others):
    """How likely a difference like this is where roux is as good: Wilcoxon's signed-rank test, seed by seed."""
    if all(a == b for a, b in zip(own, others)):
        return 1.0
    return float(wilcoxon(own, others, alternative="greater").pvalue)


def holm(rows):
    """The rows whose p-values are significant by Holm's step-down correction."""
    worse = []
    for rank, row in enumerate(sorted(rows, key=lambda row: row["p"])):
        if row["p"] > SIGNIFICANT / (len(rows) - rank):
            break
        worse.append(row)
    return worse


def compare(program, samplers=None):
    """Rows of {sampler, function, own, peer, p, worse}; `own` and `peer` are medians."""
    best, trials = peer()
    rows = []
    for sampler in samplers or best:
        seeds = len(next(iter(best[sampler].values())))
        own = roux(program, sampler, seeds, trials)
        for function, values in best[sampler].items():
            rows.append({"sampler": sampler, "function": function, "own": statistics.median(own[function]),
                         "peer": statistics.median(values), "p": p_worse(own[function], values)})
    worse = holm(rows)
    for row in rows:
        row["worse"] = row in worse
    return rows
