"""How fast two processes of roux train over an emulated link, under the peers' names:

    roux_link.py ROUX RECIPE RATE:DELAY [SET...] -> one JSON line

Each process is in a network namespace of its own (peers/link.py; needs root and /dev/net/tun). The value is that of the
median step, the first SKIP (2) left out.
"""
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

roux, recipe, spec, *sets = sys.argv[1:]
WORLD, SKIP = 2, int(os.environ.get("SKIP", "2"))
with tempfile.TemporaryDirectory() as folder, Link(spec, WORLD) as link:
    line = [roux, "run", recipe, "--new", "--quiet", "--output-dir", folder, "--set", f"launch.num_processes={WORLD}"]
    for one in sets:
        line += ["--set", one]
    env = dict(os.environ, OMP_NUM_THREADS="1", WORLD_SIZE=str(WORLD), LOCAL_WORLD_SIZE="1",
               MASTER_ADDR=link.address(0), MASTER_PORT=str(free_port()), GLOO_SOCKET_IFNAME=link.interface)
    ranks = [subprocess.Popen(link.enter(rank) + line, env=dict(env, RANK=str(rank), LOCAL_RANK="0"),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(WORLD)]
    said = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"{' '.join(line)}: exit status {[rank.returncode for rank in ranks]}\n{''.join(said)}")
    with sqlite3.connect(f"file:{next(Path(folder).glob('*/run.db'))}?mode=ro", uri=True) as connection:
        rates = [value for value, in connection.execute(
            "SELECT m.value FROM metrics m JOIN series s ON m.series = s.id WHERE s.name = 'tokens_per_s' ORDER BY m.step")]
print(json.dumps({"tokens_per_s": statistics.median(rates[SKIP:]), "steps": len(rates)}))
