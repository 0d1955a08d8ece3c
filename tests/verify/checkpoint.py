"""A checkpoint that roux wrote, read by tools that know nothing of roux: safetensors' own library and xxHash's.

usage: checkpoint.py SOURCE_DIR ROUX
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from lib.libraries import with_libraries

RECIPE = """
recipe_version: 1
run_name: verify
device: cpu
data: {train: {type: text, path: recipe.yaml, max_seq_len: 16}}
model: {type: gpt, n_layer: 1, n_head: 2, n_embd: 16}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 3, micro_batch_size: 2}
"""
KEPT_NAMES = {"F32": "float32", "I64": "int64", "U8": "uint8"}


def check_tensors(path):
    """What the library reads is what the header says lies there; the order is the library's own."""
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file, save

    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    assert (8 + length) % 64 == 0, f"{path.name}: the data starts at {8 + length}"
    header = json.loads(raw[8 : 8 + length])
    metadata = header.pop("__metadata__")
    assert metadata["format"] == "pt", metadata
    tensors = load_file(path)
    assert set(tensors) == set(header)
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        expected = numpy.frombuffer(raw[begin:end], KEPT_NAMES[entry["dtype"]]).reshape(entry["shape"])
        assert numpy.array_equal(tensors[name], expected), name
    with safe_open(path, "numpy") as file:
        assert file.metadata() == metadata
    again = save(tensors, metadata)
    (length_again,) = struct.unpack("<Q", again[:8])
    assert raw[8 + length :] == again[8 + length_again :], f"{path.name}: the library would write another order"
    return header


def check_checksums(folder):
    import xxhash

    text = (folder / "manifest.json").read_text()
    manifest = json.loads(text)
    blank = text.replace(manifest["checksum"], "xxh128:" + "0" * 32)
    assert manifest["checksum"] == "xxh128:" + xxhash.xxh3_128(blank.encode()).hexdigest()
    files = {file.name for file in folder.iterdir()} - {"manifest.json"}
    assert set(manifest["files"]) == files, files
    for name, entry in manifest["files"].items():
        data = (folder / name).read_bytes()
        assert entry["bytes"] == len(data), name
        assert entry["checksum"] == "xxh128:" + xxhash.xxh3_128(data).hexdigest(), name
    return manifest


def main():
    with_libraries()
    roux = pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "recipe.yaml").write_text(RECIPE)
        subprocess.run([roux, "run", "recipe.yaml", "--quiet"], cwd=work, check=True)
        (folder,) = pathlib.Path(work).glob("runs/verify-*/checkpoints/step-000003")
        manifest = check_checksums(folder)
        assert manifest["step"] == 3
        model = check_tensors(folder / "model.safetensors")
        assert not any("head" in name for name in model), "the tied head is saved under its owner only"
        check_tensors(folder / "optimizer.safetensors")
        check_tensors(folder / "random_states_0.safetensors")
        trainer = json.loads((folder / "trainer.json").read_text())
        assert set(trainer) == {"format_version", "counters", "ties", "state"}, set(trainer)
        assert set(trainer["ties"].values()) <= set(model), trainer["ties"]
        print(f"read back {len(model)} tensors and {len(manifest['files'])} files of {folder.name}")


main()
