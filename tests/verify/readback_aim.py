"""What the tracker `aim` brings to a real Aim server, read with Aim's own package.

usage: readback_aim.py SOURCE_DIR ROUX
"""

import contextlib
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, read_back, write_everything


@contextlib.contextmanager
def aim_server(folder):
    """Its address, once it answers. It takes a free port and says which."""
    aim = pathlib.Path(sys.executable).parent / "aim"
    if not (pathlib.Path(folder) / ".aim").exists():
        subprocess.run([aim, "init"], cwd=folder, check=True, capture_output=True)
    server = subprocess.Popen(
        [aim, "server", "--repo", ".", "--host", "127.0.0.1", "--port", "0", "--log-level", "info"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"})
    drain = threading.Thread(target=server.stdout.read)  # what it says of each request has to go somewhere
    try:
        said = []
        for line in server.stdout:
            said.append(line)
            found = re.search(r"running on http://(127\.0\.0\.1:\d+)", line)
            if found:
                drain.start()
                yield "aim://" + found.group(1)
                break
        else:
            raise AssertionError("aim server did not start: " + "".join(said))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        if drain.is_alive():
            drain.join()
        server.stdout.close()


def metrics_of(found):
    points = {metric["name"]: metric["points"] for metric in found["metrics"]}
    assert len(points) == len(found["metrics"]), "a metric twice"
    return points


def expected_points(run):
    """Aim calls what it shows of the machine `__system__cpu`."""
    return {re.sub("^system/", "__system__", name): points for name, points in run.points().items()}


def figures_of(found, name):
    """The key figures that Aim keeps beside a metric's points."""
    (figures,) = [metric["figures"] for metric in found["metrics"] if metric["name"] == name]
    return {key: figures[key] for key in ("first_step", "first", "last_step", "last", "min", "max")}


def single_run(source, folder):
    (found,) = read_back(source, "aim", folder)
    return found


def check_everything(source, roux, folder):
    with aim_server(folder) as repo:
        block = {"type": "aim", "repo": repo, "experiment": "many 🔥", "run_name": "called so", "description": "*b*",
                 "tags": ["a", "خسارة \"b\""]}
        run = TrackedRun(roux, folder, [block])
        write_everything(run)
        run.commit()
        run.sync()
        run.finish()
        run.sync()
    found = single_run(source, folder)
    check_points(metrics_of(found), expected_points(run))
    assert figures_of(found, "strange") == {"first_step": 1, "first": "nan", "last_step": 9, "last": 5e-324,
                                            "min": "-inf", "max": "inf"}, found
    assert (found["experiment"], found["name"], found["description"]) == ("many 🔥", "called so", "*b*"), found
    assert sorted(found["tags"]) == sorted(["a", "خسارة \"b\""]), found["tags"]
    assert not found["active"] and found["end_time"] > 0, found
    assert found["hparams"] == run.resolved(), found["hparams"]
    assert found["texts"] == [{"name": "sample", "text": "To be, or *not*\nto | be: 🔥 خسارة"}], found["texts"]
    pictures = sorted(found["images"], key=lambda image: image["name"])
    assert pictures == [{"name": f"picture {index}", "size": [3, 2 + index], "caption": "as it is | seen"}
                        for index in range(3)], pictures
    return sum(map(len, metrics_of(found).values()))


class Gate:
    """An address that stays, and leads to a server or, where `to` is None, to a connection that is closed at once."""

    def __init__(self):
        self.to = None
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.repo = "aim://127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.accept_all, daemon=True).start()

    def accept_all(self):
        while True:
            client, _ = self.socket.accept()
            if self.to is None:
                client.close()
                continue
            host, port = self.to.removeprefix("aim://").split(":")
            try:
                server = socket.create_connection((host, int(port)))
            except OSError:
                client.close()
                continue
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.pass_on, args=(source, sink), daemon=True).start()

    @staticmethod
    def pass_on(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def sync_fails(run):
    done = subprocess.run([run.roux, "sync", run.path], capture_output=True, text=True)
    assert done.returncode == 1 and "does not respond" in done.stdout + done.stderr, done


def check_outage(source, roux, folder):
    """No server, then one that is killed, then none, then one again, to which a run comes that was killed, went back
    and ended: in the end there is one run that has each point once."""
    gate = Gate()
    run = TrackedRun(roux, folder, [{"type": "aim", "repo": gate.repo}])

    def log(step, value):
        run.log(step, {"loss": value, f"since {step}": math.nan})
        run.text(step, "said", f"{step}: {value}")
        run.commit()

    log(1, 1.0)
    sync_fails(run)
    with aim_server(folder) as gate.to:
        log(2, -5.0)
        run.sync()
        log(3, 3.0)
        run.sync()
    gate.to = None
    log(4, 4.0)
    sync_fails(run)
    with aim_server(folder) as gate.to:
        run.sync()
        found = single_run(source, folder)
        check_points(metrics_of(found), expected_points(run))
        assert found["active"] is True, found
        assert figures_of(found, "loss") == {"first_step": 1, "first": 1, "last_step": 4, "last": 4,
                                             "min": -5, "max": 4}, found
        log(5, 5.0)
        run.sync()
        run.kill()
        run.resume(2, 0)
        log(3, 33.0)
        run.finish()
        run.sync()
    gate.to = None
    found = single_run(source, folder)
    check_points(metrics_of(found), expected_points(run))
    assert set(metrics_of(found)) == {"loss", "since 1", "since 2", "since 3"}, found
    assert sorted(text["text"] for text in found["texts"]) == ["1: 1.0", "2: -5.0", "3: 33.0"], found["texts"]
    assert not found["active"], found


def main():
    with_libraries()
    os.environ["no_proxy"] = "127.0.0.1"
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as outage:
        count = check_everything(source, roux, whole)
        check_outage(source, roux, outage)
    print(f"an Aim server has {count} points, parameters, tags, texts and pictures as run.db has them")


if __name__ == "__main__":
    main()
