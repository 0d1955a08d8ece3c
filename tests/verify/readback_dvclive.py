"""What the tracker `dvclive` writes, read by `dvc` in a repository of its own.

usage: readback_dvclive.py SOURCE_DIR ROUX
"""

import csv
import json
import tempfile

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, read_back, write_everything


def points_of(folder):
    """Of the files themselves, by the names that metrics.json gives them; a name with a slash may be a folder."""
    found = {}
    for path in (folder / "plots/metrics").rglob("*.tsv"):
        with open(path, newline="") as file:
            rows = list(csv.reader(file, delimiter="\t"))
        assert rows[0][0] == "step", path
        below = path.relative_to(folder / "plots/metrics")
        found[str(below.with_suffix(""))[:30]] = (rows[0][1], [[int(step), value] for step, value in rows[1:]])
    return found


def by_name(run, folder):
    """The files of the metrics, which may bear a shorter name and a checksum."""
    left, found = points_of(folder), {}
    for name, points in run.points().items():
        last = name.rsplit("/", 1)[-1]
        fits = [key for key, (column, rows) in left.items()
                if column == last and [row[0] for row in rows] == sorted(points)
                and all(float(row[1]) == points[row[0]] or points[row[0]] != points[row[0]] for row in rows)]
        assert fits, (name[:40], list(left))
        found[name] = left.pop(fits[0])[1]
    assert not left, list(left)
    return found


def flat(values, path=""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{path}{key}/")
        else:
            yield path + key, value


def check_everything(source, roux, folder):
    run = TrackedRun(roux, folder, ["dvclive"])
    write_everything(run)
    run.finish()
    run.sync()
    at = run.path / "dvclive"
    found = read_back(source, "dvclive", at)
    check_points(by_name(run, at), run.points())
    (metrics,) = found["metrics"].values()
    last = dict(flat(metrics["data"]["metrics.json"]["data"]))
    assert last.pop("step") == 20
    points = run.points()
    assert set(last) == set(points), set(last) ^ set(points)
    assert all(float(last[name]) == points[name][max(points[name])] for name in points), last
    from ruamel.yaml import YAML  # as dvc reads it: YAML 1.2

    params = YAML(typ="safe").load(at / "params.yaml")
    wanted = run.resolved()
    assert params == wanted, [(key, params.get(key), wanted[key]) for key in wanted if params.get(key) != wanted[key]]
    shown = {name: change["new"] for name, change in found["params"]["params.yaml"].items()}
    assert shown["optimizer.lr"] == 0.1 and shown["training.max_steps"] == 100, shown
    series = found["plots"]["series"]
    pictures = [name for name in series if name.startswith("plots/images/picture_") and name.endswith("/7.png")]
    assert len(pictures) == 3, list(series)
    losses = next(values for name, values in series.items() if name.endswith("plots/metrics/loss.tsv") or name == "loss")
    assert [float(row["loss"]) for row in losses if "val" not in row.get("filename", "")][:3] == [1.0, 0.5, 1 / 3], losses
    table = json.loads(next((at / "plots/custom").iterdir()).read_text())
    assert table == [{"a | b": "x", "count": 1}, {"a | b": "y\nz", "count": 2.5}], table
    return sum(map(len, points.values()))


def check_resume(source, roux, folder):
    run = TrackedRun(roux, folder, ["dvclive"])
    for step in range(1, 9):
        run.log(step, {"loss": step, "val/loss": step})
    run.commit()
    run.sync()
    with open(run.path / "dvclive/plots/metrics/loss.tsv", "a") as file:
        file.write("9\t1")
    run.kill()
    run.sync()
    check_points(by_name(run, run.path / "dvclive"), run.points())
    run.resume(5, 0)
    for step in range(6, 12):
        run.log(step, {"loss": 100 + step})
    run.finish()
    run.sync()
    check_points(by_name(run, run.path / "dvclive"), run.points())
    read_back(source, "dvclive", run.path / "dvclive")


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as resumed:
        count = check_everything(source, roux, whole)
        check_resume(source, roux, resumed)
    print(f"dvc shows {count} points, pictures, a table and the recipe as run.db has them")


if __name__ == "__main__":
    main()
