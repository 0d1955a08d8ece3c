#!/usr/bin/env python3
"""Sharded trainings that are stopped, killed and continued, on up to four processes of this machine. By name: minutes.

    resumes   a training of 4, 3, 1 processes is continued by 3, 4, 1, 2 x 2 and by one that shards nothing: the loss of
              one process that ran through, to 1e-5
    prove     roux prove-resume for each kind of sharding at 2 and 4 processes
    flipped   a byte flipped in each part of a checkpoint is found under the part's name
    kills     a drawn process, or the store that they meet at, gets SIGKILL in a drawn moment of a save: every checkpoint
              that is there is intact, the run ends within a minute, and the next run comes to the same bits

usage: sharded_saves.py ROUX [--json FILE] [--kills 12] [--seed 1] [--only PART ...]
"""
import argparse
import datetime
import glob
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

KINDS = ("optimizer", "gradients", "parameters")
LOSS, BOUND_S = 1e-5, 60
RECIPE = """
run_name: t
seed: 3
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 36, vocab_size: 256}
data: {train: {type: text, path: r.yaml, max_seq_len: 8}}
loss: cross_entropy
optimizer: {type: adamw, lr: 0.01, no_decay: [1d]}
training: {max_steps: 8, global_batch_size: 12, micro_batch_size: 1, clip_grad_norm: 1.0}
checkpoint: {save_steps: 4}
"""
SAVES_OFTEN = ("training.max_steps=12", "checkpoint.save_steps=1", "checkpoint.save_total_limit=3",
               "model.n_embd=256", "model.n_head=4", "training.global_batch_size=4")


class Place:
    """A folder with the recipe, in which the program runs."""

    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        (self.folder / "r.yaml").write_text(RECIPE)

    def command(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def must(self, *words):
        code, text = self.command(*words)
        if code:
            raise SystemExit(f"roux {' '.join(words)}: exit status {code}\n{text}")
        return text

    def words(self, name, processes, kind, *sets):
        sets = [f"run_name={name}", f"launch.num_processes={processes}",
                *([f"parallelism.shard={kind}"] if kind else []), *sets]
        return ["r.yaml", "--quiet", *(word for one in sets for word in ("--set", one))]

    def loss(self, name):
        return json.loads(self.must("runs", "show", name, "--format", "json"))["summary"]["loss"]

    def checkpoints(self, name):
        return sorted(glob.glob(str(self.folder / f"runs/{name}-*/checkpoints/step-*")))


def resumes(place, found, _):
    place.must("run", *place.words("one", 1, None))
    wanted = place.loss("one")
    ways = [(4, 3, ""), (3, 4, ""), (4, 1, ""), (1, 4, ""), (4, 4, "2 x 2"), (4, 2, "nothing"), (2, 3, "another")]
    for kind in KINDS:
        for before, after, how in ways:
            name = f"{kind}-{before}-{after}-{how.replace(' ', '') or 'same'}"
            place.must("run", *place.words(name, before, kind if before > 1 else None, "training.max_steps=4"))
            then = {"nothing": "null", "another": KINDS[(KINDS.index(kind) + 1) % 3]}.get(how, kind)
            sets = ["training.max_steps=8", f"launch.num_processes={after}",
                    f"parallelism.shard={then if after > 1 else 'null'}"]
            if how == "2 x 2":
                sets.append("parallelism.dp_replicate_size=2")
            allowed = ["--allow-change", "launch.num_processes"] if before != after else []
            place.must("resume", name, "--quiet", "--checkpoint", "last", *allowed,
                       *(word for one in sets for word in ("--set", one)))
            apart = abs(place.loss(name) - wanted) / wanted
            found.append({"kind": kind, "from": before, "to": after, "as": how or "the same", "apart": apart,
                          "holds": apart <= LOSS})
            print(f"{kind}: {before} to {after} {how}: {apart:.1e}", flush=True)


def prove(place, found, _):
    for kind in KINDS:
        for processes in (2, 4):
            code, text = place.command("prove-resume", "r.yaml", f"launch.num_processes={processes}",
                                       f"parallelism.shard={kind}", "--kill-at", "2,5")
            found.append({"kind": kind, "processes": processes, "says": text.strip().splitlines()[-1],
                          "holds": code == 0})
            print(f"{kind}, {processes} processes: {found[-1]['says']}", flush=True)


def flipped(place, found, draw):
    place.must("run", *place.words("flip", 4, "parameters"))
    for part in sorted(pathlib.Path(place.checkpoints("flip")[-1]).glob("shard-*.safetensors")):
        whole = part.read_bytes()
        at = draw.randrange(8, len(whole))
        part.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1:])
        code, text = place.command("checkpoints", "verify", "flip")
        resumed, said = place.command("resume", "flip", "--quiet", "--checkpoint", part.parent.name, "--set",
                                      "training.max_steps=9")
        part.write_bytes(whole)
        found.append({"part": part.name, "byte": at,
                      "holds": code != 0 and part.name in text and resumed != 0 and part.name in said})
        print(f"{part.name}, byte {at}: {'named' if found[-1]['holds'] else text + said}", flush=True)


def children(process):
    return [int(one) for one in subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True).stdout.split()]


def role(process):
    """What a child is, and whether it still runs."""
    try:
        folder = pathlib.Path(f"/proc/{process}")
        variables = dict(one.partition("=")[::2] for one in folder.joinpath("environ").read_text().split("\0"))
        ended = folder.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
        name = f"process {variables['RANK']}" if "RANK" in variables else "the store"
    except OSError:
        return "nothing: it had ended"
    return "nothing: it had ended" if ended else name


def killed(place, name, kind, draw):
    """Runs until a drawn save is being written, and kills one process in a drawn moment of it."""
    running = subprocess.Popen([place.program, "run", *place.words(name, 4, kind, *SAVES_OFTEN)], cwd=place.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wanted, seen, last, since, victim = draw.randint(1, 8), 0, None, None, "nothing: no save was seen in time"
    while running.poll() is None and since is None:
        drafts = glob.glob(str(place.folder / f"runs/{name}-*/checkpoints/.step-*"))
        if not drafts or drafts[0] == last:
            continue
        last, seen = drafts[0], seen + 1
        if seen < wanted:
            continue
        time.sleep(draw.random() * 0.03)
        found = children(running.pid)
        if found:
            victim = role(chosen := draw.choice(found))
            try:
                os.kill(chosen, signal.SIGKILL)
            except ProcessLookupError:
                victim = "nothing: it had ended"
        since = time.monotonic()
    text = running.communicate(timeout=10 * BOUND_S)[0]
    return running.returncode, text, time.monotonic() - since if since else None, victim


def kills(place, found, draw, count):
    straight = {}
    for number in range(count):
        kind = KINDS[number % 3]
        if kind not in straight:
            place.must("run", *place.words(f"straight-{kind}", 4, kind, *SAVES_OFTEN))
            straight[kind] = place.checkpoints(f"straight-{kind}")[-1]
        name = f"killed-{number}"
        code, text, seconds, victim = killed(place, name, kind, draw)
        _, verified = place.command("checkpoints", "verify", name)
        again, said = place.command("run", *place.words(name, 4, kind, *SAVES_OFTEN))
        _, compared = place.command("checkpoints", "diff", straight[kind], (place.checkpoints(name) or ["none"])[-1])
        left = glob.glob(str(place.folder / f"runs/{name}-*/checkpoints/.*"))
        row = {"kind": kind, "killed": victim, "exit": code, "seconds": seconds and round(seconds, 1),
               "said": next((line for line in text.splitlines() if line.startswith("error")), ""),
               "intact": "damaged" not in verified, "same bits": again == 0 and "the same" in compared, "left": len(left)}
        row["holds"] = (row["intact"] and row["same bits"] and not left and (seconds is None or seconds < BOUND_S)
                        and (code == 0 or bool(row["said"])))
        found.append(row)
        print(f"{name}: {json.dumps(row)}" + ("" if row["holds"] else f"\n{text}\n{said}\n{compared}"), flush=True)


def machine(program):
    info = pathlib.Path("/proc/cpuinfo").read_text()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    here = pathlib.Path(__file__).parent
    commit = subprocess.run(["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    return {"commit": commit.strip(), "date": datetime.date.today().isoformat(), "processor": next((line.partition(":")[2].strip() for line in info.splitlines()
                               if line.startswith("model name")), ""), "cores": os.cpu_count(), "program": version}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roux")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parts = {"resumes": resumes, "prove": prove, "flipped": flipped,
             "kills": lambda place, found, draw: kills(place, found, draw, a.kills)}
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    a = parser.parse_args()
    draw, results = random.Random(a.seed), {}
    for name in a.only:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Place(a.roux, folder), results.setdefault(name, []), draw)
    if a.json:
        a.json.write_text(json.dumps({**machine(a.roux), "seed": a.seed, "results": results}, indent=1) + "\n")
    failed = sum(not row["holds"] for rows in results.values() for row in rows)
    print(f"{sum(map(len, results.values())) - failed} hold, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
