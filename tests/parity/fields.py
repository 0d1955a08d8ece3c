#!/usr/bin/env python3
"""Compares the tables of components/model/names with the configuration classes of the installed Transformers.

usage: fields.py

Every field that a configuration writes or that its class declares is named under "fields" of its table or matches one of
the patterns under "metadata", and a field that roux reads has the default of its class. What the tables name beyond
that, from older versions, is fine. Run by the Python of tests/parity/setup; exits 1 with a line for each difference.
"""

import dataclasses
import fnmatch
import json
import pathlib
import sys

from transformers import CONFIG_MAPPING, __version__

TABLES = pathlib.Path(__file__).resolve().parents[2] / "components/model/names"
ROPE = {"rope_parameters", "rope_scaling", "rope_theta"}  # version 5 moved them about
TYPE = "model_type"                                       # chooses the table


def declared_default(field):
    """The default of a field of a dataclass; MISSING when it has none."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def differences(table):
    kind = CONFIG_MAPPING[table["model_type"]]
    declared = {field.name: declared_default(field) for field in dataclasses.fields(kind)}
    named = table["fields"]
    for name in sorted((declared.keys() | kind().to_dict().keys()) - named.keys() - {TYPE}):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in table["metadata"]):
            yield f"{name} is missing, {declared.get(name, kind().to_dict().get(name))!r} by default"
    for name, field in named.items():
        if field["use"] != "read" or name in ROPE or name not in declared:
            continue
        default = declared[name]
        # True equals 1 in Python, so the kinds count too; 0 and 0.0 are one number.
        same = field["default"] == default and isinstance(field["default"], bool) == isinstance(default, bool)
        if not same:
            yield f"{name} has the default {field['default']!r}, in Transformers {default!r}"


def main():
    paths = sorted(TABLES.glob("*.json"))
    wrong = [f"{path.name}: {text}" for path in paths for text in differences(json.loads(path.read_text()))]
    for text in wrong:
        print(text)
    print(f"{len(paths)} tables, Transformers {__version__}, {len(wrong)} differences")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
