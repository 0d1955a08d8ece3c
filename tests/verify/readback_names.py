"""Names that files, tables, markup and terminals trip over, for everything that has a name: each tracker of files takes
them, and each tool reads what became of them.

usage: readback_names.py SOURCE_DIR ROUX
"""

import tempfile

import readback_clearml
import readback_comet_ml
import readback_text_files
import readback_wandb
from lib.libraries import with_libraries
from lib.tracked import HOSTILE, TrackedRun, arguments, png, read_back

TRACKERS = ["tensorboard", "csv", "jsonl", "wandb", "dvclive", "comet_ml", "clearml"]


def write(run):
    for step, name in enumerate(HOSTILE, start=1):
        run.log(step, {name: step / 2})
        run.text(step, f"text {name}", name)
        run.histogram(step, f"histogram {name}", 0, 1, [step])
        run.artefact("image", step, f"image {name}", png(2, 2, step), caption=name)
        run.table(step, f"table {name}", [name, "y"], [[name, step]])
        run.artefact("note", step, f"file {name}", name.encode())
        run.log(step, {name: step / 2}, f"context {name}")


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as folder:
        run = TrackedRun(roux, folder, TRACKERS)
        write(run)
        run.finish()
        told = run.sync()
        assert "left out" not in told, told
        count = len(HOSTILE)

        board = read_back(source, "tensorboard", run.path / "tensorboard", "--strict")["."]
        assert len(board["scalars"]) == 2 * count and len(board["images"]) == len(board["histograms"]) == count
        assert len(board["text"]) == 2 * count, "texts and tables"

        names = {line["type"]: set() for line in readback_text_files.objects(run)}
        for line in readback_text_files.objects(run):
            names[line["type"]].add(line.get("name"))
        assert all(names[kind] == {f"{word} {name}" for name in HOSTILE} for kind, word in
                   {"text": "text", "histogram": "histogram", "image": "image", "table": "table", "artifact": "file"}.items())

        (at,) = readback_wandb.folders(run)
        offline = read_back(source, "wandb", at, "--leet", "--sync")
        assert len(offline["files"]) == 3 * count and all(file["exists"] for file in offline["files"])
        assert len({file["path"] for file in offline["files"]}) == 3 * count
        keys = {key for row in offline["sync"]["history"] for key in row} - readback_wandb.ADDED
        assert len(keys) == 6 * count, len(keys)

        read_back(source, "dvclive", run.path / "dvclive")
        live = run.path / "dvclive/plots"
        assert len(list(live.rglob("*.tsv"))) == 2 * count and len(list(live.rglob("*.png"))) == count
        assert len(list((live / "custom").iterdir())) == count

        comet = read_back(source, "comet", readback_comet_ml.archive(run), "--upload")
        assert len(comet["files"]) == len({path for _, path in comet["files"]}) == 4 * count
        imported = read_back(source, "clearml", readback_clearml.archive(run), "--import")["import"]
        assert len(imported["scalars"]) == 2 * count
        kinds = [kind for kind, *_ in imported["other_events"]]
        assert kinds.count("plot") == 2 * count and kinds.count("training_debug_image") == count, kinds
        print(f"{count} hostile names for six kinds of things in {len(TRACKERS)} tools")


if __name__ == "__main__":
    main()
