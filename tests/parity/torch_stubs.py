#!/usr/bin/env python3
"""Makes libraries that stand in for CUDA's, so that Python can import the torch wheel on a machine without them.

usage: torch_stubs.py DEPS OUT

DEPS holds the wheel of torch. Its Python part links libtorch_cuda.so, which wants about ten libraries of CUDA, 3.5 GB
together. On the CPU nothing of them is called: it is enough that they exist in LD_LIBRARY_PATH with the names and the
versions that the loader looks for. Each becomes one of some kilobytes in OUT. Needs gcc, nm and readelf.
"""

import collections
import pathlib
import re
import subprocess
import sys

LINKS_CUDA = ["libtorch_cuda.so", "libtorch_python.so", "libtorch_nvshmem.so", "libc10_cuda.so", "libtorch.so"]
# What the system or DEPS has.
PRESENT = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|cudart|cupti)\.so|ld-linux")
OF_CUDA = re.compile(r"nccl|nvshmem|cu[A-Za-z]")


def lines_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout.splitlines()


def symbols_of(kind, path):
    """(name, version), the version empty where there is none."""
    for line in filter(None, lines_of("nm", "-D", kind, path)):
        name, _, version = line.split()[-1].partition("@")
        yield name, version.lstrip("@")


def needed_by(path):
    return re.findall(r"NEEDED.*\[(.*?)\]", "\n".join(lines_of("readelf", "-dW", path)))


def versions_needed_by(path):
    """(library, version) of each version of a symbol that the loader will check."""
    library = None
    for line in lines_of("readelf", "-VW", path):
        file, name = re.search(r"File: (\S+)", line), re.search(r"Name: (\S+)", line)
        library = file[1] if file else library
        if name and library:
            yield library, name[1]


def compile_stub(path, symbols, versions):
    """symbols: pairs of name and version."""
    source, script = path.with_suffix(".c"), path.with_suffix(".map")
    source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name, _ in sorted(symbols)) or "int nothing;\n")
    nodes = []
    for version in sorted(versions):
        names = "".join(f" {name};" for name, of in sorted(symbols) if of == version)
        nodes.append(f"{version} {{ {'global:' + names if names else ''} }};\n")
    script.write_text("".join(nodes))
    options = [f"-Wl,--version-script={script}"] if versions else []
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", path, source, f"-Wl,-soname,{path.name}",
                    *options], check=True)
    source.unlink()
    script.unlink()


def main(deps, out):
    folder = pathlib.Path(deps) / "torch/lib"
    shipped = {path.name for path in folder.iterdir()}
    users = [folder / name for name in LINKS_CUDA if name in shipped]
    libraries = sorted(folder.glob("*.so")) + sorted(pathlib.Path(deps).glob("nvidia/*/lib/*.so*"))
    provided = {name for path in libraries for name, _ in symbols_of("--defined-only", path)}

    missing = sorted({name for path in users for name in needed_by(path)
                      if name not in shipped and not PRESENT.match(name)})
    versions = collections.defaultdict(set)
    for path in users:
        for library, version in versions_needed_by(path):
            versions[library].add(version)
    symbols = collections.defaultdict(set)
    for name, version in {symbol for path in users for symbol in symbols_of("--undefined-only", path)}:
        owner = next((library for library in missing if version and version in versions[library]), None)
        if owner:
            symbols[owner].add((name, version))
        elif not version and name not in provided and OF_CUDA.match(name):
            symbols[missing[0]].add((name, ""))  # without a version any library will do

    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    for library in missing:
        compile_stub(pathlib.Path(out) / library, symbols[library], versions[library])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: torch_stubs.py DEPS OUT")
    main(*sys.argv[1:])
