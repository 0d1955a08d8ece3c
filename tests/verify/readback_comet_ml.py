"""What the tracker `comet_ml` writes: checked against Comet's own schemas and uploaded by `comet upload` to a server that
stands in.

usage: readback_comet_ml.py SOURCE_DIR ROUX
"""

import os
import tempfile
import zipfile

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, read_back, write_everything


def archive(run):
    (path,) = (run.path / "comet_ml").glob("*.zip")
    return path


def number(value):
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


def points_of(found):
    return {name: [[step, number(value)] for step, value in points] for name, points in found["metrics"].items()}


def uploaded_points(found):
    points = {}
    for name, value, step in found["upload"]["metrics"]:
        points.setdefault(name, []).append([step, number(value)])
    return points


def check_everything(source, roux, folder):
    environment = {**os.environ, "COMET_WORKSPACE": "team", "COMET_PROJECT_NAME": "not this"}
    run = TrackedRun(roux, folder, [{"type": "comet_ml", "project_name": "ours", "tags": "keep"}], environment)
    write_everything(run)
    run.finish()
    run.sync()
    found = read_back(source, "comet", archive(run), "--upload")
    expected = {name.replace("\n", " "): points for name, points in run.points().items()}
    check_points(points_of(found), expected)
    check_points(uploaded_points(found), expected)
    experiment = found["experiment"]
    assert (experiment["workspace"], experiment["project_name"], experiment["tags"]) == ("team", "ours", ["keep"])
    parameters = {name.replace(".", "|"): value for name, value in run.parameters().items()}
    assert found["params"] == parameters, set(found["params"]) ^ set(parameters)
    assert set(found["upload"]["params"]) == set(parameters)
    assert found["other"]["Name"] == run.path.name and found["other"]["val/loss"] == 0.5, found["other"]
    kinds = sorted(kind for kind, _ in found["files"])
    assert kinds == ["asset", "asset", "text-sample", "visualization", "visualization", "visualization"], kinds
    with zipfile.ZipFile(archive(run)) as file:
        assert file.testzip() is None
        contents = {path: file.read(path) for _, path in found["files"]}
    assert contents["sample_5.txt"].decode() == "To be, or *not*\nto | be: 🔥 خسارة"
    assert contents["confusion_8.csv"] == b'a | b,count\r\nx,1\r\n"y\nz",2.5\r\n', contents["confusion_8.csv"]
    return len(found["upload"]["metrics"])


def check_resume(source, roux, folder):
    run = TrackedRun(roux, folder, ["comet_ml"])
    for step in range(1, 9):
        run.log(step, {"loss": step})
    run.commit()
    run.sync()
    with open(next((run.path / "comet_ml").glob("*/messages.json")), "a") as file:
        file.write('{"torn')
    run.kill()
    run.sync()
    check_points(points_of(read_back(source, "comet", archive(run))), run.points())
    run.resume(5, 0)
    for step in range(6, 12):
        run.log(step, {"loss": 100 + step})
    run.finish("stopped", "SIGTERM")
    run.sync()
    run.resume(11, 1)
    run.log(12, {"loss": 0.0})
    run.finish()
    run.sync()
    check_points(uploaded_points(read_back(source, "comet", archive(run), "--upload")), run.points())


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as resumed:
        count = check_everything(source, roux, whole)
        check_resume(source, roux, resumed)
    print(f"Comet takes {count} points, a text, a table, pictures, a file and the recipe as run.db has them")


if __name__ == "__main__":
    main()
