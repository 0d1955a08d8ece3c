"""Gives a verify script the Python libraries it reads back with, in a place of its own below the build."""

import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys

MARK = "--installed"


def with_libraries(torch=False):
    """Returns in a Python that has tests/verify/requirements.txt, and torch when it is asked for.

    Starts the script again to get there: call it first. The script's arguments are SOURCE_DIR ROUX.
    """
    if MARK in sys.argv:
        return
    source, roux = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    build = roux.resolve().parent.parent
    with open(build / "verify.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # scripts run side by side
        python = installed(source / "tests/verify/requirements.txt", build / "verify-venv")
        environment = dict(os.environ)
        if torch:
            environment.update(torch_environment(build))
    os.execve(python, [str(python), *sys.argv, MARK], environment)


def installed(requirements, venv):
    python = venv / "bin/python"
    done = venv / "installed.txt"
    if done.exists() and done.read_text() == requirements.read_text():
        return python
    for command in (
        [sys.executable, "-m", "venv", str(venv)],
        [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements)],
    ):
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            print("skipped: the Python libraries could not be installed:", result.stderr.strip()[-300:])
            sys.exit(0)
    done.write_text(requirements.read_text())
    return python


def torch_environment(build):
    """LibTorch as the build uses it is the torch wheel, so Python can import it from there. The wheel also wants the
    CUDA libraries, 3 GB that nothing here calls: they get stand-ins, whose functions exist and fail."""
    cache = (build / "CMakeCache.txt").read_text()
    deps = pathlib.Path(re.search(r"^ROUX_DEPS:PATH=(.*)$", cache, re.MULTILINE).group(1))
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
