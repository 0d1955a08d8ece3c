"""A run as trackers meet it: written through the real store, brought over by `roux sync`, and what run.db then holds."""

import json
import math
import pathlib
import signal
import sqlite3
import struct
import subprocess
import sys
import zlib

RECIPE = {
    "run_name": "tracked",
    "device": "cpu",
    "model": {"type": "mlp", "hidden": [4]},
    "data": {"train": {"type": "synthetic"}},
    "loss": "mse",
    "optimizer": {"type": "sgd", "lr": 0.1},
    "training": {"max_steps": 100, "micro_batch_size": 2},
}

# Names that files, tables, markup and terminals trip over.
HOSTILE = [
    "a/b/c", "quote\"s and 'others'", "comma, semi; tab\tend", "خسارة", "loss 🔥", "../../up", ".", "..", "/", "a//b",
    "back\\slash", "=1+1", "<b>bold</b>", " blanks ", "%2F", "x" * 10_000, "y/" + "z" * 10_000, "line\nbreak", "CON", "-rf",
]
STRANGE = [math.nan, math.inf, -math.inf, 0.1, -0.0, 1e-300, 1e300, 2.0**53, 5e-324]


def arguments():
    """SOURCE_DIR and the program, of the script's command line."""
    return pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def png(width, height, shade, colour_type=2):
    """A picture of one colour. Colour types: 0 grey, 2 colour, 6 colour and opacity."""
    channels = {0: 1, 2: 3, 6: 4}[colour_type]

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = (b"\0" + bytes([shade]) * (width * channels)) * height
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def word(value):
    """A number as write_run takes it."""
    return value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def same(a, b):
    return a == b and math.copysign(1, a) == math.copysign(1, b) or math.isnan(a) and math.isnan(b)


class TrackedRun:
    def __init__(self, roux, folder, trackers, environment=None):
        self.roux, self.folder = roux, pathlib.Path(folder)
        self.environment = environment
        recipe = self.folder / "recipe.json"
        recipe.write_text(json.dumps({**RECIPE, "output_dir": str(self.folder / "runs"), "trackers": trackers}))
        resolved = self.folder / "resolved.json"
        resolved.write_text(self.program("resolve", recipe, "--format", "json"))
        self.start("new", self.folder / "runs", "tracked", resolved)
        self.files = 0

    def program(self, *words):
        done = subprocess.run([self.roux, *words], capture_output=True, text=True, cwd=self.folder, env=self.environment)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def start(self, *words):
        self.writer = subprocess.Popen([self.roux.parent / "write_run", *words], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.path = pathlib.Path(self.writer.stdout.readline().strip())
        assert self.path.is_dir(), words

    def tell(self, *words):
        self.writer.stdin.write(json.dumps(words) + "\n")

    def log(self, step, values, context="train"):
        self.tell("log", step, {name: word(value) for name, value in values.items()}, context)

    def text(self, step, name, text):
        self.tell("event", "text", step, {"name": name, "text": text})

    def histogram(self, step, name, least, most, counts):
        self.tell("event", "histogram", step, {"name": name, "min": least, "max": most, "counts": counts})

    def artefact(self, kind, step, name, content, **data):
        self.files += 1
        path = self.path / "media" / f"{self.files}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        self.tell("artefact", kind, step, str(path), {"name": name, **data})

    def table(self, step, name, columns, rows):
        self.artefact("table", step, name, json.dumps({"columns": columns, "data": rows}).encode())

    def commit(self):
        self.tell("commit")
        self.writer.stdin.flush()
        assert self.writer.stdout.readline() == "committed\n"

    def finish(self, status="finished", reason=""):
        self.tell("finish", status, reason)
        self.leave()

    def leave(self):
        self.writer.stdin.close()
        assert self.writer.wait() == 0
        self.writer.stdout.close()

    def kill(self):
        """As after a power cut: what was committed is there."""
        self.writer.send_signal(signal.SIGKILL)
        self.writer.wait()
        self.writer.stdout.close()

    def resume(self, step, branch):
        self.start("resume", self.path, str(step), str(branch))

    def sync(self, *words):
        return self.program("sync", self.path, *words)

    def resolved(self):
        return json.loads((self.path / "resolved.json").read_text())

    def query(self, sql, *values):
        database = sqlite3.connect(f"file:{self.path}/run.db?mode=ro", uri=True)
        try:
            return database.execute(sql, values).fetchall()
        finally:
            database.close()

    def counting(self, table, columns):
        """The rows of the newest branch's lineage, the oldest first: what a branch logged beyond the step at which the
        next one left it does not count."""
        branches = {row[0]: row[1:] for row in self.query("SELECT id, parent, step FROM branches")}
        branch, last, stretches = max(branches), math.inf, []
        while branch is not None:
            stretches.append((branch, last))
            branch, step = branches[branch]
            last = min(last, step)
        rows = self.query(f"SELECT branch, step, {columns} FROM {table} ORDER BY row")
        return [row[1:] for branch, last in reversed(stretches) for row in rows if row[0] == branch and row[1] <= last]

    def points(self):
        """{name: {step: value}}, as run.db holds them."""
        names = {id: name if context == "train" else f"{context}/{name}"
                 for id, name, context in self.query("SELECT id, name, context FROM series")}
        found = {}
        for step, series, value in self.counting("metrics", "series, value"):
            found.setdefault(names[series], {})[step] = math.nan if value is None else value
        return found

    def parameters(self):
        """{"optimizer.lr": 0.1, ...}: the resolved recipe, flat, without what is not set."""
        found = {}

        def collect(path, value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    collect(f"{path}.{key}" if path else key, inner)
            elif isinstance(value, list):
                for index, inner in enumerate(value):
                    collect(f"{path}.{index}", inner)
            elif value is not None:
                found[path] = value

        collect("", self.resolved())
        return found


def write_everything(run):
    """Each kind of thing that a run tells of, and names and numbers that are hard to hold."""
    for step in range(1, 21):
        run.log(step, {"loss": 1 / step, "lr": 0.1})
        run.log(step, {"cpu": 50.0 + step}, "system")
    for step, value in enumerate(STRANGE, start=1):
        run.log(step, {"strange": value})
    run.log(10, {"loss": 0.5, "accuracy": 0.75}, "val")
    for index, name in enumerate(HOSTILE):
        run.log(3, {name: index + 0.5})
    run.text(5, "sample", "To be, or *not*\nto | be: 🔥 خسارة")
    run.histogram(6, "weight blocks.0", -1.0, 1.0, [1, 2, 3, 4])
    for index, colour_type in enumerate((0, 2, 6)):
        run.artefact("image", 7, f"picture {index}", png(3, 2 + index, 90, colour_type), caption="as it is | seen")
    run.table(8, "confusion", ["a | b", "count"], [["x", 1], ["y\nz", 2.5]])
    run.artefact("profile", 9, "trace.json", b"{}")
    run.tell("summary", {"steps": 20, "val/loss": 0.5})


def check_points(found, expected, keep=lambda value: value):
    """`found`: {name: [[step, value], ...]}. Each point once, and each of them; `keep`: what the tool makes of a value."""
    assert set(found) == set(expected), (sorted(set(found) ^ set(expected)))
    for name, points in expected.items():
        steps = [step for step, _ in found[name]]
        assert sorted(steps) == sorted(points), (name, steps, sorted(points))
        for step, value in found[name]:
            assert same(float(value), keep(points[step])), (name, step, value, points[step])


def read_back(source, tool, *words, whole=True):
    """What tests/verify/tools/verify_TOOL.py prints; it fails where the data are not whole."""
    script = source / "tests/verify/tools" / f"verify_{tool}.py"
    done = subprocess.run([sys.executable, script, *map(str, words)], capture_output=True, text=True)
    complaints = [line for line in done.stdout.splitlines() if "rror" in line or "problem" in line]
    assert done.returncode == 0 or not whole, (tool, words, complaints[:20], done.stdout[-300:], done.stderr[-3000:])
    return json.loads(done.stdout)
