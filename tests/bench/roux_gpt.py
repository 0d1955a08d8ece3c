"""Tokens per second of roux on the workloads of peers/gpt.py: roux_gpt.py ROUX RECIPE [SET...] -> one JSON line.

The median step of a run, its first two left out, as the peer does it.
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

roux, recipe, *sets = sys.argv[1:]
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
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = 'tokens_per_s' ORDER BY m.step")]
print(json.dumps({"tokens_per_s": statistics.median(rates[2:]), "steps": len(rates),
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
