"""What the tracker `clearml` writes, imported by clearml's own Task.import_offline_session into a server that stands in.

usage: readback_clearml.py SOURCE_DIR ROUX
"""

import json
import math
import os
import tempfile
import zipfile

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, read_back, write_everything


def archive(run):
    (path,) = (run.path / "clearml").glob("*.zip")
    return path


def place(name):
    if name.startswith("system/"):
        return ":monitor:machine", name.removeprefix("system/")
    series, slash, title = name.partition("/")
    return (title, series) if slash and series and title else (name, "train")


def expected(run):
    """Where the points are drawn; what is no number is not there."""
    found = {}
    for name, points in run.points().items():
        numbers = {step: value for step, value in points.items() if math.isfinite(value)}
        if numbers:
            found.setdefault(place(name), {}).update(numbers)
    return found


def imported(found):
    points = {}
    for title, series, step, value in found["import"]["scalars"]:
        points.setdefault((title, series), []).append([step, value])
    return points


def check_everything(source, roux, folder):
    environment = {**os.environ, "CLEARML_PROJECT": "from environment"}
    run = TrackedRun(roux, folder, [{"type": "clearml", "project_name": "not this", "tags": "keep"}], environment)
    write_everything(run)
    run.finish()
    run.sync()
    found = read_back(source, "clearml", archive(run), "--import")
    check_points(imported(found), expected(run))
    task = found["task"]
    assert (task["project_name"], task["name"], task["tags"]) == ("from environment", run.path.name, ["keep"]), task
    parameters = {name.replace(".", "/"): value for name, value in run.parameters().items()}
    given = task["hyperparams"]["General"]
    assert set(given) == set(parameters) and given["optimizer/lr"]["value"] == "0.1", set(given) ^ set(parameters)
    arrived = found["import"]["task"]["hyperparams"]["General"]
    assert set(arrived) >= set(parameters), set(parameters) - set(arrived)
    others = {}
    for kind, title, series, step in found["import"]["other_events"]:
        others.setdefault(kind, []).append((title, series, step))
    assert sorted(others["plot"]) == [("confusion", "train", 8), ("weight blocks.0", "train", 6)], others["plot"]
    assert sorted(others["training_debug_image"]) == [(f"picture {i}", "train", 7) for i in range(3)], others
    with zipfile.ZipFile(archive(run)) as file:
        assert file.testzip() is None
        log = [event for line in file.read("log.jsonl").decode().splitlines() for event in json.loads(line)]
        plots = [event for line in file.read("metrics.jsonl").decode().splitlines() for event in json.loads(line)
                 if event["type"] == "plot"]
    assert log[0]["msg"] == "sample at step 5:\nTo be, or *not*\nto | be: 🔥 خسارة", log
    histogram, table = (json.loads(plot["plot_str"])["data"][0] for plot in sorted(plots, key=lambda plot: plot["iter"]))
    assert (histogram["x"], histogram["y"]) == ([-0.75, -0.25, 0.25, 0.75], [1, 2, 3, 4]), histogram
    assert (table["header"]["values"], table["cells"]["values"]) == (["a | b", "count"], [["x", "y\nz"], [1, 2.5]]), table
    return len(found["import"]["scalars"])


def check_resume(source, roux, folder):
    run = TrackedRun(roux, folder, ["clearml"])
    for step in range(1, 9):
        run.log(step, {"loss": step})
    run.commit()
    run.sync()
    with open(next((run.path / "clearml").glob("*/metrics.jsonl")), "a") as file:
        file.write('[{"torn')
    run.kill()
    run.sync()
    check_points(imported(read_back(source, "clearml", archive(run), "--import")), expected(run))
    run.resume(5, 0)
    for step in range(6, 12):
        run.log(step, {"loss": 100 + step})
    run.finish("stopped", "SIGTERM")
    run.sync()
    run.resume(11, 1)
    run.log(12, {"loss": 0.0})
    run.finish()
    run.sync()
    check_points(imported(read_back(source, "clearml", archive(run), "--import")), expected(run))


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as resumed:
        count = check_everything(source, roux, whole)
        check_resume(source, roux, resumed)
    print(f"ClearML takes {count} points, a text, a table, pictures, a histogram and the recipe as run.db has them")


if __name__ == "__main__":
    main()
