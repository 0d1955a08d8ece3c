"""Run and trackers are killed at moments of all kinds, and the run resumes from a checkpoint: every file can be read at any
time, and in the end each tool has every point of run.db once.

usage: readback_killed.py SOURCE_DIR ROUX
"""

import json
import math
import os
import random
import signal
import subprocess
import tempfile

import readback_clearml
import readback_comet_ml
import readback_dvclive
import readback_tensorboard
import readback_text_files
import readback_wandb
from lib.libraries import with_libraries
from lib.tracked import HOSTILE, TrackedRun, arguments, check_points, read_back

TRACKERS = ["tensorboard", "csv", "jsonl", "wandb", "dvclive", "comet_ml", "clearml"]
ROUNDS, SEED = 4, 20261122


def follow(run):
    return [subprocess.Popen([run.roux, "--quiet", "sync", run.path, "--tracker", name, "--follow"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for name in TRACKERS]


def readable(source, run):
    """While it goes on: what is there, as far as each tool has come. A kill in the middle of a write leaves a torn end,
    which the tools leave out."""
    at = run.path
    if list(at.glob("tensorboard/*tfevents*")):
        read_back(source, "tensorboard", at / "tensorboard")
    if (at / "dvclive/dvc.yaml").exists():
        read_back(source, "dvclive", at / "dvclive")
    for file in at.glob("wandb/*/*.wandb"):
        if file.stat().st_size > 0:
            found = read_back(source, "wandb", file.parent, whole=False)
            assert all(problem.startswith("truncated") for problem in found["problems"]), found["problems"]
    for path in at.glob("metrics.jsonl"):
        for line in path.read_text().split("\n")[:-1]:
            json.loads(line)


def complete(source, run):
    points = run.points()
    # TensorBoard reads the files of the lives by their names: in their order, though many begin within one second.
    names = [file.name.split(".") for file in sorted((run.path / "tensorboard").iterdir())]
    assert [int(name[-1]) for name in names] == sorted(int(name[-1]) for name in names), names
    assert len({name[3] for name in names}) == len(names), names
    tensorboard = read_back(source, "tensorboard", run.path / "tensorboard")["."]
    readback_tensorboard.check_points_of(run, tensorboard)
    readback_text_files.check_csv(run)
    check_points(readback_text_files.jsonl_points(readback_text_files.objects(run)), points)
    parts = [read_back(source, "wandb", folder, "--leet", "--sync") for folder in readback_wandb.folders(run)]
    check_points(readback_wandb.points_of([row for part in parts for row in part["sync"]["history"]]), points)
    check_points(readback_dvclive.by_name(run, run.path / "dvclive"), points)
    comet = read_back(source, "comet", readback_comet_ml.archive(run), "--upload")
    check_points(readback_comet_ml.uploaded_points(comet), points)
    clearml = read_back(source, "clearml", readback_clearml.archive(run), "--import")
    check_points(readback_clearml.imported(clearml), readback_clearml.expected(run))


def main():
    with_libraries()
    source, roux = arguments()
    draw = random.Random(int(os.environ.get("SEED", SEED)))
    with tempfile.TemporaryDirectory() as folder:
        run = TrackedRun(roux, folder, TRACKERS)
        step = 0
        for branch in range(ROUNDS):
            followers = follow(run)
            for _ in range(draw.randrange(1, 6)):
                for _ in range(draw.randrange(1, 40)):
                    step += 1
                    run.log(step, {"loss": step + branch / 10, "val/loss": draw.choice([math.nan, 1.5, math.inf]),
                                   draw.choice([name for name in HOSTILE if "\n" not in name]): step / 8})
                run.commit()
            for process in draw.sample([*followers, run.writer], len(followers) + 1):
                process.send_signal(signal.SIGKILL)
            for process in followers:
                process.wait()
            run.kill()
            readable(source, run)
            if draw.random() < 0.5:
                run.sync()
            step -= draw.randrange(0, min(step, 20))
            run.resume(step, branch)
        run.log(step + 1, {"loss": 0.0})
        run.finish()
        run.sync()
        complete(source, run)
        print(f"{ROUNDS} kills: {sum(map(len, run.points().values()))} points once in each of {len(TRACKERS)} tools")


if __name__ == "__main__":
    main()
