"""Runs a script up to its first call of torch, on a machine that has none: until_torch.py SCRIPT [ARGUMENT...]

Its syntax, its imports and its flags are good then, and the exit status is 0.
"""
import runpy
import sys
import types
from pathlib import Path


class Torch(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        return Torch(name)

    def __call__(self, *_, **__):
        sys.exit(0)


for name in ("torch", "torch.nn", "torch.nn.functional", "accelerate"):
    sys.modules[name] = Torch(name)
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
sys.exit(f"{sys.argv[0]} ended without a call of torch")
