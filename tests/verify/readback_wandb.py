"""What the tracker `wandb` writes, read by W&B's own tools: `wandb leet`, and `wandb sync` to a server that stands in.

usage: readback_wandb.py SOURCE_DIR ROUX
"""

import json
import os
import pathlib
import tempfile

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, read_back, write_everything

ADDED = {"_step", "_timestamp", "_runtime"}


def folders(run, below="wandb"):
    return sorted((run.path / below).glob("offline-run-*"))


def points_of(history):
    """Numbers only; each row says its step once, and steps rise."""
    found = {}
    for row in history:
        for key, value in row.items():
            if key not in ADDED and isinstance(value, (int, float)):
                found.setdefault(key, []).append([row["_step"], value])
    return found


def without_machine(points):
    return {name: values for name, values in points.items() if not name.startswith("system/")}


def check_everything(source, roux, folder):
    environment = {**os.environ, "WANDB_PROJECT": "from-environment", "WANDB_TAGS": "a,b", "WANDB_NAME": "not this"}
    run = TrackedRun(roux, folder, [{"type": "wandb", "run_name": "called so", "group": "g"}], environment)
    write_everything(run)
    run.finish()
    run.sync()
    (at,) = folders(run)
    found = read_back(source, "wandb", at, "--leet", "--sync")
    check_points(points_of([{k: v for k, v in row.items() if k != "step"} for row in found["history"]]),
                 without_machine(run.points()))
    check_points(points_of(found["sync"]["history"]), without_machine(run.points()))
    about = found["run"]
    assert (about["project"], about["name"], about["group"]) == ("from-environment", "called so", "g"), about
    assert about["tags"] == ["a", "b"] and about["id"] == run.path.name.rsplit("-", 1)[1], about
    expected = {key: value for key, value in run.resolved().items() if value is not None}
    assert found["config"] == expected, found["config"]
    machine = [value for row in found["stats"] for value in row.items()]
    assert machine == [("cpu", 50.0 + step) for step in range(1, 21)], machine
    media = {key: value for row in found["history"] for key, value in row.items() if isinstance(value, (dict, str))}
    assert media["sample"] == "To be, or *not*\nto | be: 🔥 خسارة", media
    histogram = {"_type": "histogram", "values": [1, 2, 3, 4], "bins": [-1, -0.5, 0, 0.5, 1]}
    assert media["weight blocks.0"] == histogram, media
    for index in range(3):
        picture = media[f"picture {index}"]
        assert (picture["width"], picture["height"], picture["captions"]) == (3, 2 + index, ["as it is | seen"]), picture
        assert (at / "files" / picture["filenames"][0]).read_bytes().startswith(b"\x89PNG")
    table = json.loads((at / "files" / media["confusion"]["path"]).read_text())
    assert table == {"columns": ["a | b", "count"], "data": [["x", 1], ["y\nz", 2.5]]}, table
    uploaded = {pathlib.PurePath(name).name.split("_")[0] for name in found["sync"]["files"]}
    assert {"confusion", "trace.json"} < uploaded and all(file["exists"] for file in found["files"]), found["sync"]["files"]
    for summary in (found["summary"], found["sync"]["summary"]):
        assert summary["loss"] == 1 / 20 and summary["val/loss"] == 0.5 and summary["steps"] == 20, summary
    assert found["exit"]["code"] == 0 and found["sync"]["exitcode"] == 0, found["exit"]
    return sum(map(len, points_of(found["sync"]["history"]).values()))


def check_resume(source, roux, folder):
    run = TrackedRun(roux, folder, ["wandb"])
    for step in range(1, 9):
        run.log(step, {"loss": step})
    run.commit()
    run.sync()
    (first,) = folders(run)
    live = read_back(source, "wandb", first, "--leet")
    assert [row["step"] for row in live["history"]] == list(range(1, 8)), "the newest step may still grow"
    with open(next(first.glob("*.wandb")), "ab") as file:
        file.write(b"torn")
    run.kill()
    run.sync()
    crashed = read_back(source, "wandb", first, "--leet", "--sync")
    assert crashed["exit"]["code"] == 1
    check_points(points_of(crashed["sync"]["history"]), run.points())
    # What lies beyond step 5 is taken back: one folder, rewritten.
    run.resume(5, 0)
    for step in range(6, 12):
        run.log(step, {"loss": 100 + step})
    run.finish("stopped", "SIGTERM")
    run.sync()
    (second,) = folders(run)
    second_run = read_back(source, "wandb", second, "--leet", "--sync")
    check_points(points_of(second_run["sync"]["history"]), run.points())
    assert second_run["exit"]["code"] == 75
    # Closed, then resumed: a second folder of the same run, which says that it is resumed.
    run.resume(11, 1)
    run.log(12, {"loss": 0.0})
    run.finish()
    run.sync()
    parts = [read_back(source, "wandb", at, "--leet", "--sync") for at in folders(run)]
    assert [part["run"]["id"] for part in parts] == [second_run["run"]["id"]] * 2, parts
    check_points(points_of([row for part in parts for row in part["sync"]["history"]]), run.points())


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as resumed:
        count = check_everything(source, roux, whole)
        check_resume(source, roux, resumed)
    print(f"W&B takes {count} points, a text, a table, pictures, a histogram, a file and the recipe as run.db has them")


if __name__ == "__main__":
    main()
