"""Pictures and tables of a real training, stopped and resumed: what each tracker of files made of them, read by the
tools themselves.

usage: readback_media.py SOURCE_DIR ROUX
"""

import hashlib
import json
import pathlib
import subprocess
import tempfile
import zipfile

from lib.libraries import with_libraries
from lib.tracked import arguments, read_back

RECIPE = {
    "run_name": "pictures",
    "seed": 1,
    "device": "cpu",
    "model": {"type": "sequential", "layers": ["flatten", {"type": "linear", "out_features": 3}]},
    "data": {name: {"type": "synthetic_images", "num_samples": count, "num_classes": 3, "height": 6, "width": 6}
             for name, count in (("train", 64), ("val", 12))},
    "loss": "cross_entropy",
    "optimizer": {"type": "sgd", "lr": 0.01},
    "training": {"max_steps": 3, "micro_batch_size": 4},
    "eval": {"eval_steps": 1},
    "callbacks": [{"type": "predictions", "num_samples": 4, "worst": 2}, "confusion_matrix"],
    "trackers": ["tensorboard", "wandb", "comet_ml", "clearml", "dvclive"],
}
ONE_STEP = ["--set", "launch.time_limit=0.01s", "--set", "launch.save_margin=0s"]
STEPS = [1, 2, 3]


def trained(roux, folder):
    """The run's folder, and its pictures and tables: {name: [content of step 1, 2 and 3]}."""
    folder = pathlib.Path(folder)
    recipe = folder / "recipe.json"
    recipe.write_text(json.dumps({**RECIPE, "output_dir": str(folder / "runs")}))
    for options, status in ((ONE_STEP, 75), ([], 0)):
        done = subprocess.run([roux, "run", recipe, *options], capture_output=True, text=True, cwd=folder)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    (run,) = (folder / "runs").glob("pictures-*")
    subprocess.run([roux, "sync", run], check=True, capture_output=True, cwd=folder)
    shown = subprocess.run([roux, "runs", "show", run, "--format", "json"], check=True, capture_output=True, cwd=folder)
    kept = {"image": {}, "table": {}}
    for artefact in json.loads(shown.stdout)["artefacts"]:
        if artefact["kind"] in kept:
            kept[artefact["kind"]].setdefault(artefact["data"]["name"], []).append((run / artefact["path"]).read_bytes())
    for kind, names in (("image", 3), ("table", 4)):
        assert len(kept[kind]) == names and all(len(of) == 3 for of in kept[kind].values()), kept[kind].keys()
    return run, kept["image"], {name: list(map(json.loads, of)) for name, of in kept["table"].items()}


def digests(contents):
    return sorted(hashlib.sha256(content).hexdigest() for content in contents)


def every(by_name):
    return [content for of_steps in by_name.values() for content in of_steps]


def check_tensorboard(source, run, images, tables):
    (found,) = read_back(source, "tensorboard", run / "tensorboard", "--strict").values()
    sizes = {name: [image[::3] for image in of_steps] for name, of_steps in found["images"].items()}
    assert sizes == {name: [[step, len(content)] for step, content in zip(STEPS, of_steps)]
                     for name, of_steps in images.items()}, sizes
    for name, of_steps in tables.items():
        texts = found["text"][f"{name}/text_summary"]
        assert [step for step, _ in texts] == STEPS, texts
        for (_, (text,)), table in zip(texts, of_steps):
            assert text.count("\n") == 1 + len(table["data"]), text


def check_wandb(source, run, images, tables):
    rows, pictures, kept = [], [], []
    for at in sorted((run / "wandb").glob("offline-run-*")):
        found = read_back(source, "wandb", at, "--leet", "--sync")
        rows += found["history"]
        for row in found["history"]:
            for value in row.values():
                if isinstance(value, dict) and value.get("_type") == "images/separated":
                    pictures.append((at / "files" / value["filenames"][0]).read_bytes())
                if isinstance(value, dict) and value.get("_type") == "table-file":
                    kept.append(json.loads((at / "files" / value["path"]).read_text()))
    assert digests(pictures) == digests(every(images))
    assert sorted(map(json.dumps, kept)) == sorted(map(json.dumps, every(tables)))


def check_comet(source, run, images, tables):
    names = {}
    for archive in (run / "comet_ml").glob("*.zip"):
        found = read_back(source, "comet", archive, "--upload")
        with zipfile.ZipFile(archive) as file:
            names.update({path: (kind, file.read(path)) for kind, path in found["files"]})
    assert digests(of for kind, of in names.values() if kind == "visualization") == digests(every(images))
    written = sorted(of.decode().splitlines()[0] for path, (_, of) in names.items() if path.endswith(".csv"))
    assert written == sorted(",".join(table["columns"]) for table in every(tables)), written


def check_clearml(source, run, images, tables):
    titles = {"plot": [], "training_debug_image": []}
    for archive in (run / "clearml").glob("*.zip"):
        found = read_back(source, "clearml", archive, "--import")
        for kind, title, series, step in found["import"]["other_events"]:
            if kind in titles:
                titles[kind].append(step)
    assert sorted(titles["training_debug_image"]) == sorted(STEPS * len(images)), titles
    assert sorted(titles["plot"]) == sorted(STEPS * len(tables)), titles


def check_dvclive(source, run, images, tables):
    read_back(source, "dvclive", run / "dvclive")
    pictures = [path.read_bytes() for path in (run / "dvclive/plots/images").rglob("*.png")]
    assert digests(pictures) == digests(every(images))
    rows = sorted(len(json.loads(path.read_text())) for path in (run / "dvclive/plots/custom").rglob("*.json"))
    assert rows == sorted(len(of_steps[-1]["data"]) for of_steps in tables.values()), rows


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as folder:
        run, images, tables = trained(roux, folder)
        for check in (check_tensorboard, check_wandb, check_comet, check_clearml, check_dvclive):
            check(source, run, images, tables)
    print(f"five tools read {len(every(images))} pictures and {len(every(tables))} tables of a training, each once")


if __name__ == "__main__":
    main()
