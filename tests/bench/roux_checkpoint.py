"""Checkpoints of roux on the workload of peers/checkpoint.py:

    roux_checkpoint.py ROUX RECIPE save|beside [--every STEPS] [SET...] -> one JSON line

save    stall_ms  how long the loop stands still for an asynchronous save. The one before is committed by then, as the
                  peers' is: what a save that has to wait for another one costs is not measured
        committed_s  from the step's end until that save is committed: written, fsynced, read back from the disk and
                  renamed; the rests that it takes for the steps' sake included
        rest_s    those rests
        stall_sync_ms  how long the loop stands still with `async_save: false`: until every file is written and fsynced
        synced_s  until such a save is committed: the loop trains on while it is read back
        load_s    how long the start of a run waits for a checkpoint that lies in the page cache: for its verification,
                  which begins before the model is built and reads the files, and for the load of what was read
        read_s    how long that reading takes beside the building of model and data
beside  beside_ratio  a step's duration while a save is written, verified and rotated, divided by that of a step alone
"""
import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))
from common import warm_memory  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("roux")
parser.add_argument("recipe")
parser.add_argument("what", choices=["save", "beside"])
parser.add_argument("--every", type=int, default=40, help="steps from one save to the next")
parser.add_argument("sets", nargs="*")
a = parser.parse_intermixed_args()


def run(folder, *arguments):
    warm_memory()
    line = [a.roux, "run", a.recipe, "--quiet", "--output-dir", folder]
    for one in [*a.sets, *arguments]:
        line += [one] if one.startswith("--") else ["--set", one]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def read(folder, query):
    path = max(Path(folder).glob("*/run.db"), key=lambda p: p.stat().st_mtime)
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return database.execute(query).fetchall()


def events(folder, kind):
    return [dict(json.loads(data), step=step, time_ms=time_ms) for step, time_ms, data in
            read(folder, f"SELECT step, time_ms, data FROM events WHERE kind = '{kind}' ORDER BY row")]


def warm(folder):
    for path in Path(folder).glob("*/checkpoints/*/*"):
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass


def refuse_crowded(saves):
    """A save is asked for when the step before it has ended: by then the one before must be committed and rotated."""
    for one, other in zip(saves, saves[1:]):
        if one["time_ms"] > other["time_ms"] - other["seconds"] * 1e3:
            raise SystemExit(f"the save of step {one['step']} was still under way when step {other['step']} was saved")


def save():
    with tempfile.TemporaryDirectory() as folder:
        run(folder, "--new", f"training.max_steps={3 * a.every + 1}", f"checkpoint.save_steps={a.every}",
            "checkpoint.save_at_end=false")
        saves = events(folder, "checkpoint")
        refuse_crowded(saves)
    with tempfile.TemporaryDirectory() as folder:
        # Reading back and the removal of the checkpoint before, seconds for the disk, end before the next save.
        half = a.every // 2
        run(folder, "--new", f"training.max_steps={3 * half}", f"checkpoint.save_steps={half}",
            "checkpoint.async_save=false")
        synced = events(folder, "checkpoint")
        refuse_crowded(synced)
        warm(folder)
        last = next(Path(folder).glob(f"*/checkpoints/step-{3 * half:06}"))
        run(folder, f"training.max_steps={3 * half + 1}", f"checkpoint.resume_from_checkpoint={last}")
        load = events(folder, "restore")[-1]
    median = lambda rows, key: statistics.median(row[key] for row in rows)
    return {"stall_ms": median(saves, "stall_seconds") * 1e3, "stall_max_ms": max(s["stall_seconds"] for s in saves) * 1e3,
            "committed_s": median(saves, "seconds"), "rest_s": median(saves, "rest_seconds"),
            "stall_sync_ms": median(synced, "stall_seconds") * 1e3, "synced_s": median(synced, "seconds"),
            "load_s": load["seconds"], "read_s": load["read_seconds"],
            "mb": saves[-1]["bytes"] / 1e6}


def beside():
    with tempfile.TemporaryDirectory() as folder:
        run(folder, "--new", f"training.max_steps={3 * a.every + 1}", f"checkpoint.save_steps={a.every}",
            "checkpoint.save_at_end=false")
        saves = events(folder, "checkpoint")
        refuse_crowded(saves)
        ends = dict(read(folder, "SELECT m.step, m.time_ms FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = 'loss'"))
    alone, others = [], []
    for step in range(3, 3 * a.every + 2):
        # The step that follows a save has the stall in front of it; it is not the step's own.
        own = [s for s in saves if s["step"] == step - 1]
        seconds = (ends[step] - ends[step - 1]) / 1e3 - sum(s["stall_seconds"] for s in own)
        during = [s for s in saves if ends[step - 1] < s["time_ms"] and step > s["step"]
                  and ends[step] > s["time_ms"] - s["seconds"] * 1e3]
        (others if during else alone).append(seconds)
    return {"beside_ratio": statistics.median(others) / statistics.median(alone), "steps_beside": len(others),
            "step_ms": statistics.median(alone) * 1e3}


os.environ.setdefault("OMP_NUM_THREADS", "2")
print(json.dumps({"save": save, "beside": beside}[a.what]()))
