"""Steps per second of roux on the workload of peers/step_overhead.py: roux_steps.py ROUX RECIPE [SET...] -> one JSON line."""
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

roux, recipe, *sets = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    summary = Path(folder) / "summary.json"
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    line = [roux, "run", recipe, "--new", "--quiet", "--output-dir", folder, "--summary-json", summary]
    for one in sets:
        line += ["--set", one]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"roux run {recipe}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    figures = json.loads(summary.read_text())
print(json.dumps({"steps_per_s": figures["steps_per_s"], "steps": figures["steps"],
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
