"""Compares schemas/words/*.json with the configuration classes of the tools.

usage: words.py axolotl GIT_DIR

GIT_DIR is a git directory of the tool's repository that has the commit of the table's `source`. Every field of a
schema class has to be an entry of the table. Nothing of the tool is imported: the classes are read as text.
"""

import ast
import json
import pathlib
import subprocess
import sys

WORDS = pathlib.Path(__file__).resolve().parents[2] / "schemas" / "words"

# Classes of Axolotl whose fields stand in a block of the configuration, and the block's key in the table. A block whose
# key is refused or without effect as a whole has no entries.
AXOLOTL_BLOCKS = {
    "SFTDataset": "datasets", "DPODataset": "datasets", "KTODataset": "datasets", "StepwiseSupervisedDataset": "datasets",
    "SyntheticDataset": "datasets", "PretrainingDataset": "datasets", "SpecialTokensConfig": "special_tokens",
    "PeftConfig": "peft", "LoftQConfig": None, "UserDefinedPrompterType": None, "UserDefinedDPOType": None,
    "UserDefinedKTOType": None, "RoleBoundarySpec": None, "LrGroup": None, "SelectiveCheckpointingConfig": None,
    "FSDPConfig": None, "TRLConfig": None, "VllmConfig": None, "EBFTConfig": None, "QATConfig": None, "PTQConfig": None,
    "DynamicCheckpointConfig": None, "GPUCapabilities": None, "EnvCapabilities": None, "DiffusionConfig": None,
    "HatcheryConfig": None, "MoraConfig": None, "CompressionArgs": None,
}


def git(directory, *arguments):
    return subprocess.run(["git", "--git-dir=" + directory, *arguments], check=True, capture_output=True, text=True).stdout


def fields_of(text):
    """Class -> names of its annotated fields and their aliases."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef):
            continue
        names = []
        for field in node.body:
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            names.append(field.target.id)
            if isinstance(field.value, ast.Call):
                names += [word.value.value for word in field.value.keywords
                          if word.arg == "alias" and isinstance(word.value, ast.Constant)]
        if names:
            yield node.name, names


def axolotl(directory, table):
    commit = table["source"].split()[1]
    root = "src/axolotl/"
    listed = git(directory, "ls-tree", "-r", "--name-only", commit, root + "utils/schemas", root + "integrations")
    missing = []
    classes = 0
    for path in listed.split():
        if not path.startswith(root + "utils/schemas/") and not path.endswith("/args.py"):
            continue
        if not path.endswith(".py"):
            continue
        for name, fields in fields_of(git(directory, "show", commit + ":" + path)):
            block = AXOLOTL_BLOCKS.get(name, "")
            if block is None or name.endswith("TrainingArgsMixin"):
                continue
            classes += 1
            keys = table["keys"][block]["keys"] if block else table["keys"]
            missing += [f"{name}.{field}" for field in fields if field not in keys]
    print(f"axolotl: {classes} classes, {len(missing)} fields without an entry")
    return missing


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "axolotl":
        sys.exit(__doc__)
    table = json.loads((WORDS / "axolotl.json").read_text())
    missing = axolotl(sys.argv[2], table)
    for name in missing:
        print("  " + name)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
