"""How fast roux trains, under the peers' names: roux_throughput.py ROUX RECIPE SERIES[=KEY] [SET...] -> one JSON line.

SERIES is a metric of the run, tokens_per_s or samples_per_s; KEY is what the peer calls it. The value is that of the
median step, the first two (or --warmup) left out, as the peers do it; with the losses of the first step and the last.
"""
import argparse
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--warmup", type=int, default=2)
for name in ("roux", "recipe", "series"):
    parser.add_argument(name)
parser.add_argument("sets", nargs="*")
a = parser.parse_args()
series, _, key = a.series.partition("=")
with tempfile.TemporaryDirectory() as folder:
    line = [a.roux, "run", a.recipe, "--new", "--quiet", "--output-dir", folder]
    for one in a.sets:
        line += ["--set", one]
    done = subprocess.run(line, env=dict(os.environ, OMP_NUM_THREADS="2"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    database = next(Path(folder).glob("*/run.db"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rates, losses = ([value for value, in connection.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = ? ORDER BY m.step", (name,))]
            for name in (series, "loss"))
if len(rates) <= a.warmup:
    raise SystemExit(f"{' '.join(line)}: {len(rates)} points of {series}, and the first {a.warmup} do not count")
print(json.dumps({key or series: statistics.median(rates[a.warmup:]), "steps": len(rates),
                  "first_loss": losses[0], "last_loss": losses[-1],
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
