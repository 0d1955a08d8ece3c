"""Makes the pinned torch wheel importable where CUDA's libraries are not installed.

usage: torch_stubs.py DEPS FOLDER

Python's torch loads libtorch_cuda.so, and that the libraries of CUDA (3.5 GB). On a processor it is enough that they
exist and define the names, with the versions, that are asked for: each becomes a library of some kilobytes in FOLDER,
which then comes first in LD_LIBRARY_PATH.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# Of the system, or in the wheels beside torch.
INSTALLED = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|cudart|cupti)\.so|ld-linux")
OF_CUDA = re.compile(r"nccl|nvshmem|cu[A-Za-z]")


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def defined(library):
    """The names that a library defines, without versions."""
    return {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).splitlines() if line}


def wanted(library):
    """Pairs of a name and its version, or ""."""
    for line in run("nm", "-D", "--undefined-only", library).splitlines():
        name, _, version = line.split()[-1].partition("@")
        yield name, version.lstrip("@")


def wanted_versions(library):
    """Of each library that it needs."""
    result = collections.defaultdict(set)
    needed = None
    for line in run("readelf", "-VW", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            needed = found[1]
        if needed and (found := re.search(r"Name: (\S+)", line)):
            result[needed].add(found[1])
    return result


def compile_stub(path, names, versions):
    """names: pairs of a name and its version."""
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder, "stub.c"), pathlib.Path(folder, "stub.map")
        functions = "".join(f"int {name}(void) {{ return 1; }}\n" for name, _ in sorted(names))
        source.write_text(functions or "int nothing;\n")
        command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", path, source, f"-Wl,-soname,{path.name}"]
        if versions:
            nodes = []
            for version in sorted(versions):
                listed = "".join(f"{name}; " for name, of in sorted(names) if of == version)
                nodes.append(f"{version} {{ {'global: ' + listed if listed else ''}}};\n")
            script.write_text("".join(nodes))
            command.append(f"-Wl,--version-script,{script}")
        run(*command)


def main(deps, folder):
    deps, folder = pathlib.Path(deps), pathlib.Path(folder)
    shipped = {path.name: path for path in (deps / "torch" / "lib").glob("*.so*")}
    beside = list((deps / "nvidia" / "cu13" / "lib").iterdir())
    known = set().union(*(defined(path) for path in [*shipped.values(), *beside]))

    versions, names, unversioned = collections.defaultdict(set), collections.defaultdict(set), set()
    missing, asked = set(), set()
    for path in shipped.values():
        needed = re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-dW", path))
        missing |= {name for name in needed if name not in shipped and not INSTALLED.match(name)}
        for name, some in wanted_versions(path).items():
            versions[name] |= some
        asked |= set(wanted(path))
    for name, version in asked:
        owner = next((library for library in sorted(missing) if version in versions[library]), None)
        if owner:
            names[owner].add((name, version))
        elif not version and name not in known and OF_CUDA.match(name):
            unversioned.add((name, version))
    missing = sorted(missing)
    names[missing[0]] |= unversioned  # any will do

    folder.mkdir(parents=True, exist_ok=True)
    for library in missing:
        compile_stub(folder / library, names[library], versions[library])


if __name__ == "__main__":
    main(*sys.argv[1:3])
