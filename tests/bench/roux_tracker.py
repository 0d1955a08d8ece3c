"""Points per second that a file tracker takes from a run: roux_tracker.py ROUX BENCH_STORE RECIPE TRACKER POINTS -> one
JSON line. The run is there already; what is timed is `roux sync`, from its start until all is on disk."""
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

roux, bench_store, recipe, tracker, points = sys.argv[1:6]

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([roux, "run", recipe, "--quiet", "--new", "--output-dir", folder, "--set", f"trackers=[{tracker}]"],
                   stdout=subprocess.DEVNULL, check=True)
    run = next(path.parent for path in Path(folder).glob("*/run.db"))
    subprocess.run([bench_store, "fill", run, points], stdout=subprocess.DEVNULL, check=True)
    begin = time.perf_counter()
    subprocess.run([roux, "--quiet", "sync", run, "--tracker", tracker], check=True)
    seconds = time.perf_counter() - begin
    print(json.dumps({"points_per_s": int(points) / seconds}))
