"""What the tracker `mlflow` brings to a real MLflow server, read with MLflow's own client.

usage: readback_mlflow.py SOURCE_DIR ROUX
"""

import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from lib.libraries import with_libraries
from lib.servers import mlflow_server
from lib.tracked import HOSTILE, TrackedRun, arguments, read_back, same, write_everything


def as_mlflow_gives_it(value):
    """Its databases keep an infinity as the largest number."""
    return math.copysign(sys.float_info.max, value) if math.isinf(value) else value


def check_points(run, found):
    expected = run.points()
    assert len(found) == len(expected), (len(found), len(expected))
    for name, points in expected.items():
        if name in HOSTILE and name not in found:
            continue  # spelled as MLflow takes it; counted above, and its value below
        history = {step: float(value) for step, value, _ in found[name]}
        assert len(history) == len(found[name]), (name, "a step twice", found[name])
        assert set(history) == set(points), (name, history, points)
        for step, value in points.items():
            assert same(history[step], as_mlflow_gives_it(value)), (name, step, history[step], value)
    spelled = sorted(float(points[0][1]) for name, points in found.items() if name not in expected)
    hostile = sorted(points[3] for name, points in expected.items() if name in HOSTILE and name not in found)
    assert spelled == hostile, (spelled, hostile)


def run_of_experiment(source, uri, experiment):
    (found,) = [run for run in read_back(source, "mlflow", uri) if run["experiment"] == experiment]
    return found


def check_everything(source, roux, folder, uri):
    block = {"type": "mlflow", "tracking_uri": uri, "experiment_name": "many", "tags": {"team": "a"}, "description": "*b*"}
    run = TrackedRun(roux, folder, [block])
    write_everything(run)
    run.commit()
    run.sync()
    run.finish()
    run.sync()
    found = run_of_experiment(source, uri, "many")
    check_points(run, found["history"])
    assert found["status"] == "FINISHED", found
    parameters = run.parameters()
    assert set(found["params"]) == set(parameters), set(found["params"]) ^ set(parameters)
    assert found["tags"]["team"] == "a" and found["tags"]["mlflow.note.content"] == "*b*", found["tags"]
    files = sorted(found["artifacts"])
    assert [name for name in files if name.startswith("texts/")] == ["texts/sample/step-5.txt"], files
    assert [name for name in files if name.startswith("tables/")] == ["tables/confusion/step-8.json"], files
    assert [name for name in files if name.startswith("histograms/")] == ["histograms/weight blocks.0/step-6.json"]
    assert found["artifacts"]["profile/trace.json"] == 2, files
    assert sum(name.startswith("images/picture ") for name in files) == 3, files
    assert found["datasets"] == ["synthetic"], found["datasets"]
    return sum(map(len, found["history"].values()))


def check_import(roux, folder, uri):
    """What a server holds comes back as it was: every run of it, one experiment's, one run; each once."""
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    others = sum(len(client.search_runs([experiment.experiment_id])) for experiment in client.search_experiments())
    experiments = [client.create_experiment(name) for name in ("one", "two")]
    points = [(step, [0.1, math.nan, -2.5, 1e-300][step % 4]) for step in range(1, 8)]
    ids = []
    for index in range(12):
        experiment = experiments[index % 4 == 3]
        ids.append(client.create_run(experiment, start_time=1_700_000_000_000 + index, run_name=f"run {index}").info.run_id)
    metrics = [Metric(name, value, 1_700_000_000_000 + step, step) for name in ("loss", "val/loss") for step, value in points]
    tags = [RunTag("team", "blue"), RunTag("mlflow.note.content", "it is *good*")]
    client.log_batch(ids[3], metrics, [Param("optimizer.lr", "0.1"), Param("name", "no number")], tags)
    # More than a server gives at once.
    many = [Metric("many", step / 7, 1_700_000_000_000 + step, step) for step in range(27_000)]
    for begin in range(0, len(many), 1000):
        client.log_batch(ids[8], many[begin:begin + 1000])
    client.set_terminated(ids[3], "FAILED", 1_700_000_009_000)

    def imported(output_dir, *words):
        words = ["runs", "import", *words, "--output-dir", str(output_dir)]
        return subprocess.run([roux, *words], check=True, capture_output=True, text=True, cwd=folder).stdout.splitlines()

    whole = imported("whole", uri)
    assert len(whole) == len(ids) + others, len(whole)
    assert all("imported before" in line for line in imported("whole", uri))
    assert len(imported("two", f"{uri}/#/experiments/{experiments[1]}?viewStateShareKey=x")) == 3
    assert len(imported("single", f"{uri}/#/experiments/{experiments[1]}/runs/{ids[3]}")) == 1

    def exported(output_dir):
        words = ["runs", "export", "last", "--format", "json", "--output-dir", str(output_dir)]
        (run,) = json.loads(subprocess.run([roux, *words], check=True, capture_output=True, cwd=folder).stdout)
        return run

    run = exported("single")
    assert (run["status"], run["tags"]) == ("failed", ["imported", "team=blue"]), run
    assert run["recipe"]["params"] == {"optimizer.lr": 0.1, "name": "no number"}, run["recipe"]
    for name in ("loss", "val/loss"):
        assert [point[0] for point in run["points"][name]] == [step for step, _ in points], run["points"]
        for (_, value), point in zip(points, run["points"][name]):
            assert same(float(point[2]), value), (value, point)
    listed = json.loads(subprocess.run([roux, "runs", "list", "--all", "--output-dir", "whole", "--filter", "many > 0",
                                        "--format", "json"], check=True, capture_output=True, cwd=folder).stdout)
    assert len(listed) == 1 and listed[0]["metrics"]["many"] == 26_999 / 7, listed


def check_outage(source, roux, folder, uri):
    """No server at first, then one, then none, then one at another address: in the end it has each point once."""
    environment = dict(os.environ)
    run = TrackedRun(roux, folder, ["mlflow"], environment)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen: whoever connects is refused
        down = "http://127.0.0.1:%d" % closed.getsockname()[1]

        def sync_fails():
            environment["MLFLOW_TRACKING_URI"] = down
            assert subprocess.run([roux, "sync", run.path], capture_output=True, env=environment).returncode == 1

        for begin, address in ((1, uri), (3, uri.replace("127.0.0.1", "localhost"))):
            run.log(begin, {"loss": begin})
            run.commit()
            sync_fails()
            run.log(begin + 1, {"loss": begin + 1})
            run.commit()
            if begin == 3:
                run.finish()
                sync_fails()
            environment["MLFLOW_TRACKING_URI"] = address
            run.sync()
    found = run_of_experiment(source, uri, "tracked")
    check_points(run, found["history"])
    assert found["status"] == "FINISHED", found["status"]


def main():
    with_libraries()
    os.environ["no_proxy"] = "127.0.0.1,localhost"
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as folder, mlflow_server(folder) as uri:
        folders = [pathlib.Path(folder, name) for name in ("everything", "outage", "import")]
        for path in folders:
            path.mkdir()
        count = check_everything(source, roux, folders[0], uri)
        check_outage(source, roux, folders[1], uri)
        check_import(roux, folders[2], uri)
    print(f"an MLflow server has {count} points, parameters, tags, texts, tables, pictures and files as run.db has them")


if __name__ == "__main__":
    main()
