"""Compares schemas/words/*.json with the configuration classes of the tools.

usage: words.py axolotl GIT_DIR
       words.py llama_factory GIT_DIR
       words.py llama_factory_v1 GIT_DIR
       words.py trainer FOLDER_OF_TRANSFORMERS
       words.py trl FOLDER_OF_TRL
       words.py accelerate FOLDER_OF_ACCELERATE

GIT_DIR is a git directory of the tool's repository that has the commit of the table's `source`; the folders are those
of the installed packages. Every field of a configuration class has to be an entry of the table. Nothing of the tool is
imported: the classes are read as text.
"""

import ast
import fnmatch
import json
import pathlib
import re
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
    print(f"axolotl: {classes} classes")
    return missing


def words_of(name):
    """The table and its keys, those of the table that it extends included."""
    table = json.loads((WORDS / f"{name}.json").read_text())
    base = words_of(table["extends"])[1] if "extends" in table else {}
    return table, {**base, **table["keys"]}


def missing_of(classes, keys, left_out=()):
    """Fields of {class: fields} without an entry; those that begin with an underscore are the tool's own."""
    return [f"{name}.{field}" for name, fields in classes for field in fields
            if name not in left_out and field not in keys and not field.startswith("_")]


def trainer(folder, keys):
    classes = list(fields_of((pathlib.Path(folder) / "training_args.py").read_text()))
    return missing_of(classes, keys)


def trl(folder, keys):
    """`folder`: of the package. Classes of SFT, DPO, KTO, rewards, CPO and ORPO, of the model and of the data."""
    missing = []
    for path in ("trainer/base_config.py", "trainer/sft_config.py", "trainer/dpo_config.py", "trainer/kto_config.py",
                 "trainer/reward_config.py", "experimental/cpo/cpo_config.py", "experimental/orpo/orpo_config.py",
                 "trainer/model_config.py", "scripts/utils.py"):
        classes = dict(fields_of((pathlib.Path(folder) / path).read_text()))
        inner = classes.pop("DatasetConfig", [])
        missing += missing_of(classes.items(), keys)
        missing += missing_of([("DatasetConfig", inner)], keys["datasets"]["keys"])
    return missing


def has_entry(keys, name):
    return any(fnmatch.fnmatchcase(name, key) for key in keys)


def accelerate(folder, keys):
    """Fields of its file and flags of its launcher, and those of the two plugins in the tables of FSDP and DeepSpeed."""
    folder = pathlib.Path(folder)
    classes = dict(fields_of((folder / "commands/config/config_args.py").read_text()))
    names = [("config", name) for fields in classes.values() for name in fields]
    names += [("flag", flag) for flag in re.findall(r'"--([a-zA-Z0-9_]+)"', (folder / "commands/launch.py").read_text())]
    # What says the script, what prints, and the section of the file that a flag belongs to.
    own = {"help", "positional", "training_script", "training_script_args", "no_tpu_cluster"}
    sections = ("fp8_", "megatron_lm_", "parallelism_config_")
    missing = [f"{kind} {name}" for kind, name in names
               if name not in own and not has_entry(keys, name) and not name.startswith(sections)]
    plugins = dict(fields_of((folder / "utils/dataclasses.py").read_text()))
    for plugin, table in (("FullyShardedDataParallelPlugin", "fsdp"), ("DeepSpeedPlugin", "deepspeed")):
        fields = [field.removeprefix("fsdp_") for field in plugins[plugin]]
        missing += missing_of([(plugin, fields)], words_of(table)[1])
    sizes = dict(fields_of((folder / "parallelism_config.py").read_text()))["ParallelismConfig"]
    written = [name for name in sizes if not name.endswith("_handler")]  # objects of Python
    missing += missing_of([("ParallelismConfig", written)], keys["parallelism_config"]["keys"])
    return missing


def llama_factory(directory, table, keys, folder="src/llamafactory/hparams"):
    commit = table["source"].split()[1]
    missing = []
    for path in git(directory, "ls-tree", "-r", "--name-only", commit, folder).split():
        missing += missing_of(fields_of(git(directory, "show", commit + ":" + path)), keys)
    return missing


def llama_factory_v1(directory, table, keys):
    """The arguments, and the parameters of what peft_config, quant_config and dist_config name."""
    plugins = "src/llamafactory/v1/plugins/"
    missing = llama_factory(directory, table, keys, "src/llamafactory/v1/config")
    for block, path in (("peft_config", "model_plugins/peft.py"), ("quant_config", "model_plugins/quantization.py"),
                        ("dist_config", "trainer_plugins/distributed/interface.py")):
        missing += llama_factory(directory, table, keys[block]["keys"], plugins + path)
    return missing


def main():
    names = ("axolotl", "trainer", "trl", "llama_factory", "llama_factory_v1", "accelerate")
    if len(sys.argv) != 3 or sys.argv[1] not in names:
        sys.exit(__doc__)
    name, place = sys.argv[1:]
    table, keys = words_of(name)
    if name == "axolotl":
        missing = axolotl(place, table)
    elif name == "llama_factory":
        missing = llama_factory(place, table, keys)
    elif name == "llama_factory_v1":
        missing = llama_factory_v1(place, table, keys)
    elif name == "accelerate":
        missing = accelerate(place, keys)
    else:
        missing = trainer(place, keys) if name == "trainer" else trl(place, keys)
    print(f"{name}: {len(keys)} entries, {len(missing)} fields without one")
    for field in missing:
        print("  " + field)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
