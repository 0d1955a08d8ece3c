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
import time
from pathlib import Path


def finished(line, env):
    """The ended process, and the largest RssAnon that it was seen with, in MB: memory that is no mapped file."""
    with tempfile.TemporaryFile("w+") as text:
        process, peak = subprocess.Popen(line, env=env, stdout=text, stderr=subprocess.STDOUT), 0
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = max([peak, *(int(row.split()[1]) for row in status.splitlines() if row.startswith("RssAnon"))])
            except OSError:
                pass  # it has ended
            time.sleep(0.02)
        text.seek(0)
        return process.returncode, text.read(), peak / 1024


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
    status, text, anonymous = finished(line, dict(os.environ, OMP_NUM_THREADS="2"))
    if status:
        raise SystemExit(f"{' '.join(line)}: exit status {status}\n{text}")
    database = next(Path(folder).glob("*/run.db"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rates, losses = ([value for value, in connection.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = ? ORDER BY m.step", (name,))]
            for name in (series, "loss"))
if len(rates) <= a.warmup:
    raise SystemExit(f"{' '.join(line)}: {len(rates)} points of {series}, and the first {a.warmup} do not count")
print(json.dumps({key or series: statistics.median(rates[a.warmup:]), "steps": len(rates),
                  "first_loss": losses[0], "last_loss": losses[-1], "peak_anonymous_mb": anonymous,
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))
