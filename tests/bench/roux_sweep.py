"""Trials per second of roux on the workload of peers/sweep.py: roux_sweep.py ROUX RECIPE FOLDER [SET...] -> one JSON line.

From the start of the first trial to the end of the last, as the sweep has recorded them; like the import of the peer's
modules, the start of LibTorch in the worker and the look at the variants beforehand come before that. Each trial has to
be a finished run with a run.db of its own. They stay in FOLDER: a file system that has just been told to remove thousands of
files makes new ones more slowly for a while (ext4 without a journal by half a millisecond a trial)."""
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

roux, recipe, parent, *sets = sys.argv[1:]
folder = tempfile.mkdtemp(dir=parent)


def ask(*words):
    done = subprocess.run([roux, *words, "--output-dir", folder], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"roux {' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


flags = [word for one in sets for word in ("--set", one)]
ask("sweep", "run", recipe, "--new", "--quiet", *flags)
trials = json.loads(ask("sweep", "export", "--format", "json"))["trials"]
runs = [run for run in json.loads(ask("runs", "list", "--format", "json")) if run["status"] == "finished"]
databases = len(list(Path(folder).glob("*/run.db")))
complete = sum(trial["state"] == "complete" for trial in trials)
if not complete == len(trials) == len(runs) == databases:
    raise SystemExit(f"{len(trials)} trials, {complete} complete, {len(runs)} runs, {databases} databases")
seconds = (max(t["ended_ms"] for t in trials) - min(t["started_ms"] for t in trials)) / 1000
print(json.dumps({"trials_per_s": len(trials) / seconds, "trials": len(trials),
                  "cpu_ms": 1000 * sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) / len(trials),
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
