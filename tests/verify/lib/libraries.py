"""Gives a verify script the Python libraries that it reads back with: those that tests/run has put beside .deps."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from lib.skip import skipped

MARK = "--installed"


def with_libraries(torch=False):
    """Returns in a Python that has tests/verify/requirements.txt, and torch when it is asked for.

    Starts the script again to get there: call it first. The script's arguments are SOURCE_DIR ROUX.
    """
    if MARK in sys.argv:
        return
    source, roux = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    build = roux.resolve().parent.parent
    venv = pathlib.Path(str(deps_of(build)) + "-verify")
    wanted = "".join((source / "tests/verify" / name).read_text() for name in ("requirements.txt", "constraints.txt"))
    pins = venv / "roux-pins.txt"
    if not pins.exists() or pins.read_text() != wanted:
        sys.exit(skipped(f"{venv} has not the libraries of tests/verify/requirements.txt (tests/run verify)"))
    environment = dict(os.environ)
    if torch:
        environment.update(torch_environment(build))
    python = venv / "bin/python"
    os.execve(python, [str(python), *sys.argv, MARK], environment)


def deps_of(build):
    cache = (build / "CMakeCache.txt").read_text()
    return pathlib.Path(re.search(r"^ROUX_DEPS:PATH=(.*)$", cache, re.MULTILINE).group(1))


def torch_environment(build):
    """LibTorch as the build uses it is the torch wheel, so Python can import it from there. The wheel also wants the
    CUDA libraries, 3 GB that nothing here calls: they get stand-ins, whose functions exist and fail."""
    deps = deps_of(build)
    stubs = build / "verify-torch"
    if not stubs.exists():
        partial = build / "verify-torch.partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        write_stand_ins(deps, partial)
        partial.rename(stubs)
    return {"PYTHONPATH": str(deps), "LD_LIBRARY_PATH": str(stubs)}


# What the libraries without symbol versions define begins with this.
PREFIXES = {"libnccl": "nccl", "libcufft": "cufft", "libcurand": "curand", "libcufile": "cuFile",
            "libcusparseLt": "cusparseLt", "libnvshmem_host": "nvshmem"}


def write_stand_ins(deps, folder):
    def readelf(option, path):
        return subprocess.run(["readelf", "-W", option, str(path)], capture_output=True, text=True, check=True).stdout

    present = {path.name for path in deps.rglob("*.so*")}
    wanted, undefined = set(), set()
    for library in (deps / "torch/lib").glob("*.so"):
        needed = re.findall(r"NEEDED.*\[(lib(?:cu|nccl|nvshmem).*)\]", readelf("-d", library))
        wanted.update(name for name in needed if name not in present)
        for line in readelf("--dyn-syms", library).splitlines():
            fields = line.split()
            if len(fields) > 7 and fields[6] == "UND":
                undefined.add(fields[7])
    for name in wanted:
        stem = name.split(".so")[0]
        symbols = {}
        for symbol in undefined:
            function, _, version = symbol.partition("@")
            prefix = PREFIXES.get(stem)
            if version == name or (version in ("", "NVSHMEM") and prefix and function.startswith(prefix)):
                symbols.setdefault(version, []).append(function)
        functions = sorted(function for group in symbols.values() for function in group)
        labels = "".join(f".globl {function}\n.type {function},@function\n{function}:\n" for function in functions)
        (folder / "stand_in.s").write_text(
            f'.text\n{labels}mov $1, %eax\nret\n.section .note.GNU-stack,"",@progbits\n')
        (folder / "stand_in.map").write_text("".join(
            f"{version} {{ global: {'; '.join(sorted(group))}; }};\n" for version, group in symbols.items() if version))
        versions = [f"-Wl,--version-script={folder}/stand_in.map"] if any(symbols) else []
        subprocess.run(["cc", "-shared", "-nostdlib", *versions, f"-Wl,-soname,{name}", "-o", str(folder / name),
                        str(folder / "stand_in.s")], check=True)
