"""Does what tests/gpu/run needs of a GPU on the pretended one: `--pretend`, which trains on the CPU, cannot show it.

on_pretended.py FOLDER, with the roux of the pretended GPU on PATH and a driver that has one (tests/cli/run/
pretended_gpu.cli). Each check prints a line; the exit status is 1 when one failed.
"""
import sys
import time
from pathlib import Path

from lab import RECIPES, Lab, Record
from parts import numerics, speed

LIMIT_S = 100


class Pretended(Lab):
    """A lab whose program brings its own LibTorch."""

    def __init__(self, work):
        self.work, self.pretend, self.device, self.starts = Path(work), False, "cuda", 0
        self.deadline = time.monotonic() + LIMIT_S

    def roux_words(self, *words):
        return ["roux", *words]


def too_wide(lab, record):
    """roux refuses before it starts what a GPU of 2.1 GB cannot hold, and a search for what fits continues."""
    def command(width):
        return lab.roux_words("run", RECIPES / "smoke/table.yaml", "--new", "--quiet", "--output-dir", lab.work / "runs",
                              "--set", "device=cuda", "--set", f"model.hidden=[{width},{width}]",
                              "--set", "training.max_steps=1", "--set", "checkpoint.save_at_end=false")

    record.expect("the largest size is found", speed.largest(lab, (32768, 16384, 16, 8), command) == 16)


def main():
    lab, record = Pretended(sys.argv[1]), Record(pretend=False)
    numerics.moves(lab, record)
    too_wide(lab, record)
    return 0 if record.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
