"""How fast roux trains, under the peers' names: roux_throughput.py ROUX RECIPE SERIES[=KEY] [SET...] -> one JSON line.

SERIES is a metric of the run, tokens_per_s or samples_per_s; KEY is what the peer calls it. The value is that of the
median step, the first two left out, as the peers do it.
"""
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

roux, recipe, series, *sets = sys.argv[1:]
series, _, key = series.partition("=")
with tempfile.TemporaryDirectory() as folder:
    line = [roux, "run", recipe, "--new", "--quiet", "--output-dir", folder]
    for one in sets:
        line += ["--set", one]
    done = subprocess.run(line, env=dict(os.environ, OMP_NUM_THREADS="2"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    database = next(Path(folder).glob("*/run.db"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rates = [value for value, in connection.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = ? ORDER BY m.step", (series,))]
if len(rates) < 3:
    raise SystemExit(f"{' '.join(line)}: {len(rates)} points of {series}, and the first two do not count")
print(json.dumps({key or series: statistics.median(rates[2:]), "steps": len(rates),
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
