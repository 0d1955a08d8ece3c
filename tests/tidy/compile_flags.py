#!/usr/bin/env python3
"""Compares how two builds compile the kernels: the order of flags counts, folders of the machine do not.

usage: compile_flags.py BEFORE AFTER [FOLDER]

BEFORE and AFTER are build folders or their compile_commands.json; FOLDER (components/kernels) is taken from the root of
each tree. Exits with 1 when flags differ, or when an object is in one build only.
"""

import json
import os
import shlex
import sys

NOT_CODE = {"-Werror", "-Wno-error"}  # what a warning leads to


def flags_of_objects(path, folder):
    """Of each source: the command without the compiler cache, output, source and the folders of the machine."""
    if os.path.isdir(path):
        path = os.path.join(path, "compile_commands.json")
    with open(path) as file:
        entries = json.load(file)
    objects = {}
    for entry in entries:
        build = entry["directory"]
        root = os.path.dirname(os.path.dirname(build))
        source = os.path.relpath(entry["file"], root)
        if not source.startswith(folder + "/"):
            continue
        words = shlex.split(entry["command"])
        names = [os.path.basename(word) for word in words]
        compiler = next(i for i, name in enumerate(names) if name.startswith(("c++", "g++", "clang++")))
        flags, rest = [], iter(words[compiler:])
        for word in rest:
            if word in ("-o", "-c"):
                next(rest)
            elif word not in NOT_CODE:
                flags.append(word.replace(build, "BUILD").replace(root, "ROOT"))
        if source in objects:
            sys.exit(f"compile_flags.py: error: {path} compiles {source} more than once")
        objects[source] = flags
    if not objects:
        sys.exit(f"compile_flags.py: error: {path} compiles nothing in {folder}")
    return objects


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    folder = sys.argv[3].rstrip("/") if len(sys.argv) == 4 else "components/kernels"
    before, after = (flags_of_objects(path, folder) for path in sys.argv[1:3])
    different = 0
    for source in sorted(before | after):
        old, new = before.get(source), after.get(source)
        if old == new:
            continue
        different += 1
        if old is None or new is None:
            print(f"{source}: only in {'the second' if old is None else 'the first'} build")
            continue
        changes = [f"without {flag}" for flag in old if flag not in new]
        changes += [f"with {flag}" for flag in new if flag not in old]
        print(f"{source}: {', '.join(changes) or 'the same flags in another order or number'}")
    sets = len({tuple(flags) for flags in after.values()})
    print(f"{len(before | after)} objects of {folder}, {sets} sets of flags, {different} differ")
    sys.exit(1 if different else 0)


main()
