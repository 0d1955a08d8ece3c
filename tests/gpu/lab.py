"""What the parts of tests/gpu/run share: running roux and its peers, and recording what they did."""
import contextlib
import ctypes
import importlib.util
import json
import math
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests/bench"
PEERS = BENCH / "peers"
RECIPES = ROOT / "recipes"
# The last one is roux before it starts: a GPU that is too small.
OUT_OF_MEMORY = ("out of memory", "OutOfMemoryError", "not fit into memory", "does not fit", "but training needs about")


class Failed(Exception):
    """A part cannot be finished; the text says why."""


class OutOfMemory(Failed):
    pass


class Record:
    """Findings of one part, as they go into the JSON. A pretended run claims none, and shows that one comes out."""

    def __init__(self, pretend):
        self.pretend = pretend
        self.checks, self.figures, self.notes = [], {}, []

    def check(self, what, value, *, at_most=None, at_least=None):
        """Judges a number by its limit; with --pretend it only has to be one."""
        if not math.isfinite(value):
            return self.expect(f"{what}: {value} is a number", False)
        held = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        limit = {"at_most": at_most} if at_most is not None else {"at_least": at_least}
        self.checks.append({"what": what, "value": None if self.pretend else value, **limit,
                            "passed": self.pretend or held})
        self.say(what, "" if self.pretend else f"{value:.4g}, {'at most' if at_most is not None else 'at least'} "
                                               f"{at_most if at_most is not None else at_least:.4g}")

    def expect(self, what, holds):
        """Judges a statement, with --pretend too."""
        self.checks.append({"what": what, "passed": bool(holds)})
        self.say(what, "")

    def figure(self, name, value):
        self.figures[name] = None if self.pretend else value

    def note(self, text):
        self.notes.append(text)
        print(f"    note: {text}", flush=True)

    def say(self, what, text):
        print(f"    {'ok    ' if self.checks[-1]['passed'] else 'FAILED'} {what}{': ' * bool(text)}{text}", flush=True)

    def passed(self):
        return all(check["passed"] for check in self.checks)


class Run:
    """A finished run of roux."""

    def __init__(self, summary):
        self.summary, self.folder = summary, Path(summary["run_dir"])

    def query(self, text, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.folder / 'run.db'}?mode=ro", uri=True)) as database:
            return database.execute(text, values).fetchall()

    def series(self, name="loss"):
        """{step: value}; where a resume has made a step again, it is that one's."""
        return dict(self.query("SELECT m.step, m.value FROM metrics m JOIN series s ON m.series = s.id "
                               "WHERE s.name = ? ORDER BY m.step, m.row", name))

    def events(self, kind):
        return [json.loads(data) for data, in
                self.query("SELECT data FROM events WHERE kind = ? ORDER BY row", kind)]


class Lab:
    def __init__(self, work, pretend):
        self.work, self.pretend = Path(work), pretend
        self.device = "cpu" if pretend else "cuda"
        self.deadline = time.monotonic()  # each part sets its own
        self.starts = 0  # of programs by call(), which a part's time has to be for
        self.roux = ROOT / "bin/roux"
        found = importlib.util.find_spec("torch")
        if not self.roux.exists() or found is None or not found.submodule_search_locations:
            missing = f"{self.roux}: unpack the archive of tests/gpu/bundle" if not self.roux.exists() else \
                f"torch for {sys.executable}, with which roux trains"
            raise SystemExit(f"error: tests/gpu/run needs {missing}")
        torch = Path(found.submodule_search_locations[0])
        folders = [torch / "lib", *sorted(torch.parent.glob("nvidia/*/lib"))]
        own = os.environ.get("LD_LIBRARY_PATH")  # may lead to the driver
        self.libraries = f"LD_LIBRARY_PATH={':'.join([*map(str, folders), *([own] if own else [])])}"
        self.peers = {name: self.version_of(name) for name in ("torch", "accelerate")}

    def version_of(self, package):
        """"" where this Python cannot use it."""
        done = subprocess.run([sys.executable, "-c", f"import {package}; print({package}.__version__)"],
                              capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    def call(self, words, starts=1, **environment):
        """Its standard output. It runs from the root, in a process group that does not outlive the part's time. `starts`:
        of programs that load CUDA."""
        self.starts += starts
        words = [str(word) for word in words]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **environment}, start_new_session=True)
        try:
            out, errors = process.communicate(timeout=max(1.0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed(f"the time of the part was up during: {' '.join(words)}") from None
        if process.returncode == 0:
            return out
        said = (out + errors).strip()
        kind = OutOfMemory if any(text in said for text in OUT_OF_MEMORY) else Failed
        raise kind(f"exit status {process.returncode}: {' '.join(words)}\n{said[-2000:]}")

    def roux_words(self, *words):
        """roux with LibTorch from this Python; only for roux, so that Python's own search stays what it is."""
        return ["env", self.libraries, self.roux, *words]

    def run(self, recipe, *sets, flags=(), **environment):
        """Trains on the device of this lab, or on that which a later one of `sets` names. A new run, unless `flags` has
        `--checkpoint`, which `--new` would beat."""
        summary = self.work / "summary.json"
        words = ["run", recipe, "--quiet", "--output-dir", self.work / "runs", "--summary-json", summary, *flags]
        if "--checkpoint" not in flags:
            words.append("--new")
        for one in (f"device={self.device}", *sets):
            words += ["--set", one]
        self.call(self.roux_words(*words), **environment)
        return Run(json.loads(summary.read_text()))

    def graphs(self):
        """The setting of a training with CUDA graphs; the CPU has none, so that a pretended one goes without."""
        return f"compile.cuda_graphs={'false' if self.pretend else 'true'}"

    def plan(self, recipe, *sets):
        words = [word for one in (f"device={self.device}", *sets) for word in ("--set", one)]
        return json.loads(self.call(self.roux_words("plan", recipe, "--format", "json", *words)))

    def own(self, script, *words):
        """A script of tests/bench that measures roux."""
        return ["env", self.libraries, sys.executable, BENCH / script, *words]

    def peer(self, script, *words):
        """A peer's command, or None where Python lacks what it needs; --pretend then runs it as far as it goes."""
        if self.peers["accelerate" if "accelerate" in words else "torch"]:
            return [sys.executable, PEERS / script, *words]
        if self.pretend:
            self.call([sys.executable, Path(__file__).with_name("until_torch.py"), PEERS / script, *words], starts=0)
        return None

    def interleave(self, rounds, metrics, commands):
        """{metric: {name: row}} of those that can run; the first command is the reference of every ratio."""
        commands = {name: words for name, words in commands.items() if words}
        line = [sys.executable, PEERS / "interleave.py", "--json", "-n", 1 if self.pretend else rounds, "--warmup", 0,
                "--metric", ",".join(metrics)]
        line += [f"{name}={shlex.join(map(str, words))}" for name, words in commands.items()]
        environment = {"ROUX_MARK_FIRST_STEP": "1"}
        if self.pretend:
            environment["WARM_GB"] = "1"
        table = {}
        for row in last_json(self.call(line, rounds * len(commands), **environment))["rows"]:
            table.setdefault(row["metric"], {})[row["name"]] = row
        return table


class GpuMemory:
    """Peak of what GPU 0 has in use, in bytes, while the block runs: by NVML, since no process says it of another."""

    class Info(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.gpu = ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.gpu)):
            raise Failed("NVML does not show GPU 0")

    def read(self):
        info = self.Info()
        if self.library.nvmlDeviceGetMemoryInfo(self.gpu, ctypes.byref(info)):
            raise Failed("NVML does not show the memory of GPU 0")
        return info

    def __enter__(self):
        self.peak, self.over = self.read().used, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.over.wait(0.005):
            self.peak = max(self.peak, self.read().used)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def last_json(text):
    return json.loads(next(line for line in reversed(text.strip().splitlines()) if line.startswith("{")))
