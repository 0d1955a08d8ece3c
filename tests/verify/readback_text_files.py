"""What the trackers `csv` and `jsonl` write, read by Python's own readers.

usage: readback_text_files.py SOURCE_DIR ROUX
"""

import csv
import json
import math
import tempfile

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, same, write_everything

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def check_csv(run):
    with open(run.path / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        found.setdefault(row["metric"], []).append([int(row["step"]), float(row["value"])])
    check_points(found, run.points())
    return len(rows)


def refuse(token):
    raise ValueError(f"{token} is no JSON")


def objects(run):
    with open(run.path / "metrics.jsonl") as file:
        return [json.loads(line, parse_constant=refuse) for line in file]


def jsonl_points(lines):
    """As a reader that follows `rewind` sees them."""
    found = {}
    for line in lines:
        if line["type"] == "metric":
            value = line["value"]
            found.setdefault(line["name"], {})[line["step"]] = WORDS[value] if isinstance(value, str) else value
        elif line["type"] == "rewind":
            found = {name: {s: v for s, v in points.items() if s <= line["step"]} for name, points in found.items()}
    return {name: list(points.items()) for name, points in found.items() if points}


def check_everything(roux, folder):
    run = TrackedRun(roux, folder, ["csv", "jsonl"])
    write_everything(run)
    run.finish()
    run.sync()
    points = check_csv(run)
    lines = objects(run)
    check_points(jsonl_points(lines), run.points())
    of = {}
    for line in lines:
        of.setdefault(line["type"], []).append(line)
    assert lines[0]["config"] == run.resolved() and len(of["start"]) == 1, lines[0]
    (text,), (histogram,), (table,), (file,), (end,) = (of[k] for k in ("text", "histogram", "table", "artifact", "end"))
    assert (text["step"], text["name"]) == (5, "sample") and text["text"].endswith("🔥 خسارة"), text
    assert (histogram["least"], histogram["most"], histogram["counts"]) == (-1, 1, [1, 2, 3, 4]), histogram
    assert table["table"] == {"columns": ["a | b", "count"], "data": [["x", 1], ["y\nz", 2.5]]}, table
    assert [image["caption"] for image in of["image"]] == ["as it is | seen"] * 3, of["image"]
    assert (file["kind"], file["name"], file["path"].endswith("/media/5")) == ("profile", "trace.json", True), file
    assert (end["ending"], end["summary"]) == ("finished", {"steps": 20, "val/loss": 0.5}), end
    return points


def check_resume(roux, folder):
    """Killed at step 8, resumed from step 5, then from where it stopped."""
    run = TrackedRun(roux, folder, ["csv", "jsonl"])
    for step in range(1, 9):
        run.log(step, {"loss": step})
    run.commit()
    run.sync()
    with open(run.path / "metrics.csv", "a") as file:
        file.write("torn")
    run.kill()
    run.resume(5, 0)
    for step in range(6, 12):
        run.log(step, {"loss": 100 + step})
    run.finish("stopped", "SIGTERM")
    run.sync()
    run.resume(11, 1)
    run.log(12, {"loss": 0.0})
    run.finish()
    run.sync()
    check_csv(run)
    lines = objects(run)
    check_points(jsonl_points(lines), run.points())
    assert [line["step"] for line in lines if line["type"] == "rewind"] == [5]
    assert [line["ending"] for line in lines if line["type"] == "end"] == ["stopped", "finished"]
    assert same(run.points()["loss"][8], 108.0)


def main():
    with_libraries()
    _, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as resumed:
        count = check_everything(roux, whole)
        check_resume(roux, resumed)
    print(f"csv and jsonl hold {count} points as run.db has them")


if __name__ == "__main__":
    main()
