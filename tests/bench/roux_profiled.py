"""How long a step of roux takes where no profiler records: roux_profiled.py ROUX RECIPE [--set KEY=VALUE]... -> one JSON
line. Only the second half of the steps counts, so that a window of the first half may come before it."""
import json
import os
import subprocess
import sys
import tempfile

STEPS = 40000
roux, recipe, *words = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    def call(*line):
        done = subprocess.run([roux, *line], env=dict(os.environ, OMP_NUM_THREADS="1", ROUX_OUTPUT_DIR=folder),
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"roux {' '.join(line)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout
    call("run", recipe, "--new", "--quiet", "--output-dir", folder, "--set", f"training.max_steps={STEPS}",
         "--set", f"logging_steps={STEPS // 2}", *words)
    points = json.loads(call("runs", "show", "last", "--metric", "samples_per_s", "--format", "json"))
    (rate,) = [value for step, value in points if step == STEPS]
    traces = sum(name.endswith(".pt.trace.json") for _, _, names in os.walk(folder) for name in names)
print(json.dumps({"step_us": 32e6 / rate, "traces": traces}))
