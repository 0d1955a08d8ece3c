"""How fast processes of roux train over an emulated link or the loopback interface, under the peers' names:

    roux_link.py [--world N] ROUX RECIPE RATE:DELAY|loopback [SET...] -> one JSON line

With a link each process is in a network namespace of its own (peers/link.py; needs root and /dev/net/tun). The value is
that of the median step, the first SKIP (2) left out. Memory is the largest that each process was resident with.
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
from ddp import free_port  # noqa: E402
from link import Link  # noqa: E402


def ended(process, text):
    """What it said, and its largest resident memory in MB."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text.seek(0)
    return text.read(), used.ru_maxrss / 1024


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--world", type=int, default=2)
for name in ("roux", "recipe", "spec"):
    parser.add_argument(name)
parser.add_argument("sets", nargs="*")
a = parser.parse_args()
SKIP = int(os.environ.get("SKIP", "2"))
with tempfile.TemporaryDirectory() as folder, Link(None if a.spec == "loopback" else a.spec, a.world) as link:
    summary = Path(folder) / "summary.json"
    line = [a.roux, "run", a.recipe, "--new", "--quiet", "--output-dir", folder, "--summary-json", str(summary),
            "--set", f"launch.num_processes={a.world}"]
    for one in a.sets:
        line += ["--set", one]
    env = dict(os.environ, OMP_NUM_THREADS="1", WORLD_SIZE=str(a.world), LOCAL_WORLD_SIZE="1",
               MASTER_ADDR=link.address(0), MASTER_PORT=str(free_port()), GLOO_SOCKET_IFNAME=link.interface)
    texts = [tempfile.TemporaryFile("w+") for _ in range(a.world)]
    ranks = [subprocess.Popen(link.enter(rank) + line, env=dict(env, RANK=str(rank), LOCAL_RANK="0"), stdout=texts[rank],
                              stderr=subprocess.STDOUT, text=True) for rank in range(a.world)]
    said, memory = zip(*[ended(rank, text) for rank, text in zip(ranks, texts)])
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"{' '.join(line)}: exit status {[rank.returncode for rank in ranks]}\n{''.join(said)}")
    with sqlite3.connect(f"file:{next(Path(folder).glob('*/run.db'))}?mode=ro", uri=True) as connection:
        rates, losses = ([value for value, in connection.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = ? ORDER BY m.step", (name,))]
            for name in ("tokens_per_s", "loss"))
    figures = json.loads(summary.read_text())
rate = statistics.median(rates[SKIP:])
print(json.dumps({"tokens_per_s": rate, "steps_per_s": rate * figures["steps"] / figures["tokens"], "steps": len(rates),
                  "first_loss": losses[0], "last_loss": losses[-1], **{f"rank_{i}_rss_mb": one for i, one in enumerate(memory)}, "peak_rss_mb": max(memory)}))
