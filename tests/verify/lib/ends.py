"""What a training or a sweep ended with, as JSON that can be compared: figures, and checksums of the tensors' bytes."""

import hashlib
import json
import os
import pathlib
import struct
import subprocess

# The kernels of every x86-64 processor where they can be chosen, and sums in one order.
PINNED = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE",
          "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


class Roux:
    """The program, run in one folder under PINNED."""

    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ROUX_", "OMP_", "MKL_"))}
        self.environment = {**kept, **PINNED}

    def ended(self, *words):
        """Exit status and everything that it said."""
        done = subprocess.run(["roux", *map(str, words)], executable=self.program, cwd=self.folder,
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def answer(self, *words):
        """Standard output of a command that has to succeed."""
        done = subprocess.run(["roux", *map(str, words)], executable=self.program, cwd=self.folder,
                              env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"roux {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *words):
        return json.loads(self.answer(*words, "--format", "json"))


def checksum_of_tensors(path):
    """Of names, types, shapes and bytes; not of their order in the file, nor of what else its header says."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    checksum = hashlib.sha256()
    for name, entry in sorted(header.items()):
        begin, end = entry["data_offsets"]
        checksum.update(f"{name} {entry['dtype']} {entry['shape']}\n".encode())
        checksum.update(raw[8 + length + begin:8 + length + end])
    return checksum.hexdigest()[:32]


def run_folder(roux, name):
    """Of the only run of that name."""
    (folder,) = [path for path in (roux.folder / "runs").iterdir() if path.name.rpartition("-")[0] == name]
    return folder


def end_of_run(roux, name):
    folder = run_folder(roux, name)
    last = max((folder / "checkpoints").glob("step-*"))
    return {"checkpoint": last.name,
            "series": {metric: roux.json("runs", "show", folder.name.rpartition("-")[2], "--metric", metric)
                       for metric in ("loss", "val/loss")},
            "tensors": {path.name: checksum_of_tensors(path) for path in sorted(last.glob("*.safetensors"))}}


def end_of_sweep(roux):
    """Values are in the order of the parameters, whose names a recipe may spell in more than one way."""
    return [{"state": trial["state"], "value": trial["value"], "step": trial["step"],
             "parameters": list(trial["values"].values()), "curve": trial["curve"]}
            for trial in roux.json("sweep", "export")["trials"]]
