"""Two hundred processes write a run each, while `roux runs list` reads them; beside them a run.db that is damaged, files
of other people, a run with a full disk and one that is read-only.

usage: readback_crowd.py SOURCE_DIR ROUX
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from lib.tracked import TrackedRun, arguments

RUNS, POINTS = 200, 50


class Crowd:
    def __init__(self, roux, folder):
        self.roux, self.folder = roux, pathlib.Path(folder)
        self.output = self.folder / "runs"
        first = TrackedRun(roux, folder, [])  # gives the resolved recipe that all of them have
        first.log(1, {"loss": 1.0})
        first.finish()
        self.first = first.path
        self.has_ended = False

    def writer(self, *words, orders=subprocess.PIPE):
        return subprocess.Popen([self.roux.parent / "write_run", *map(str, words)], stdin=orders,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def listed(self):
        """{folder: row}; what is wrong with the list itself fails here."""
        done = subprocess.run([self.roux, "--output-dir", self.output, "runs", "list", "--limit", "9999", "--format", "json"],
                              capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, (done.stdout[-500:], done.stderr)
        return {pathlib.Path(row["run_dir"]).name: row for row in json.loads(done.stdout)}

    def copy_of_first(self, name):
        shutil.copytree(self.first, self.output / name)
        return self.output / name


@contextlib.contextmanager
def small_disk(folder):
    """A file system of a megabyte there; false where this user may not mount one (root may)."""
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    try:
        yield made.returncode == 0
    finally:
        if made.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)


def forbid_writing(folder):
    done = subprocess.run(["mount", "-o", "remount,ro", folder], capture_output=True)
    assert done.returncode == 0, done.stderr


def steps(first, last):
    return "".join(json.dumps(["log", step, {"loss": step}, "train"]) + "\n" for step in range(first, last + 1))


def look_on(crowd):
    """How often, until all have ended."""
    looks = 0
    while not crowd.has_ended:
        for name, row in crowd.listed().items():
            assert row["status"] != "unreadable" or name in ("tracked-damaged", "foreign"), (name, row)
        looks += 1
    return looks


def write_together(crowd):
    writers = [crowd.writer("new", crowd.output, "tracked", crowd.first / "resolved.json") for _ in range(RUNS)]
    tell(writers, steps(1, POINTS // 2) + '["commit"]\n')
    for writer in writers:
        writer.stdout.readline(), writer.stdout.readline()  # its folder, and that it has committed
    running = [row for row in crowd.listed().values() if row["status"] == "running"]
    assert len(running) >= RUNS, len(running)
    tell(writers, steps(POINTS // 2 + 1, POINTS) + '["finish", "finished", ""]\n')
    for writer in writers:
        _, complaint = writer.communicate()
        assert writer.returncode == 0 and complaint == "", complaint


def tell(writers, text):
    for writer in writers:
        writer.stdin.write(text)
        writer.stdin.flush()


def check(crowd, disk, nobody_writes):
    damaged = crowd.copy_of_first("tracked-damaged")
    (damaged / "run.db").write_bytes(b"SQLite format 3\0" + os.urandom(8192))
    (crowd.output / "notes.txt").write_text("of another")
    foreign = crowd.output / "foreign"
    foreign.mkdir()
    (foreign / "run.db").write_text("not a database")
    many = crowd.folder / "many.jsonl"
    many.write_text(steps(2, 200_000) + '["commit"]\n')
    with open(many) as orders:
        full = crowd.writer("resume", disk, 1, 0, orders=orders) if disk else None
    locked = crowd.writer("resume", nobody_writes, 1, 0) if nobody_writes else None
    with concurrent.futures.ThreadPoolExecutor() as reader:
        looking = reader.submit(look_on, crowd)
        try:
            write_together(crowd)
        finally:
            crowd.has_ended = True
        looks = looking.result()
    for process, words in ((full, "full"), (locked, "Read-only file system")):
        if process is not None:
            _, complaint = process.communicate(timeout=300)
            assert process.returncode != 0 and words in complaint, (words, complaint)
    rows = crowd.listed()
    whole = [row for row in rows.values() if row["status"] == "finished" and row["metrics"].get("loss") == POINTS]
    assert len(whole) == RUNS, (len(whole), len(rows))
    assert rows["tracked-damaged"]["status"] == "unreadable", rows["tracked-damaged"]
    return looks


def main():
    _, roux = arguments()
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd(roux, folder)
        small, kept = crowd.output / "tracked-small", crowd.output / "tracked-kept"
        small.mkdir(), kept.mkdir()
        with small_disk(small) as mounted, small_disk(kept):
            if mounted:
                for place in (small, kept):
                    shutil.copytree(crowd.first, place, dirs_exist_ok=True)
                forbid_writing(kept)
            looks = check(crowd, small if mounted else None, kept if mounted else None)
    print(f"{RUNS} processes have written {POINTS} points each, listed {looks} times meanwhile"
          + ("" if mounted else "; left out: a full and a read-only disk, which root can mount"))


main()
