"""How long a step of roux takes while its metrics are kept at every tenth: roux_outage.py ROUX RECIPE [--set KEY=VALUE]...
-> one JSON line. The second half of the steps counts, in which a tracker that is told to is trying."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = 40000
roux, recipe, *words = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run(
        [roux, "run", recipe, "--new", "--quiet", "--output-dir", folder, "--set", f"training.max_steps={STEPS}",
         "--set", "logging_steps=10", *words],
        env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"roux run: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    (path,) = Path(folder).glob("*/run.db")
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    times = dict(database.execute("SELECT step, max(time_ms) FROM metrics WHERE step IN (?, ?) GROUP BY step",
                                  (STEPS // 2, STEPS)))
    database.close()
print(json.dumps({"step_us": (times[STEPS] - times[STEPS // 2]) * 1e3 / (STEPS // 2)}))
