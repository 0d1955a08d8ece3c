"""What an earlier roux wrote (tests/fixtures/format_1) is listed, shown, compared and filtered; its runs are resumed
and its sweep is continued to the bits that the earlier program came to, without --allow-change; one of its runs is
reproduced.

usage: earlier_runs.py SOURCE_DIR ROUX
"""

import json
import pathlib
import shutil
import sys
import tempfile

from lib.ends import Roux, end_of_run, end_of_sweep, run_folder

# On a processor that sums in another order than the one the fixture was made on, figures are compared instead of bits;
# Muon multiplies in bfloat16.
TOLERANCE = 1e-2


def same(found, wanted, exact, what):
    """Everything is the same, but for the last digits of figures where the processor is another one."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), f"{what}: {sorted(found)}, expected {sorted(wanted)}"
        for key in wanted:
            same(found[key], wanted[key], exact, f"{what}: {key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), f"{what}: {found}, expected {wanted}"
        for number, (one, other) in enumerate(zip(found, wanted)):
            same(one, other, exact, f"{what}[{number}]")
    elif isinstance(wanted, float) and not exact:
        assert abs(found - wanted) <= TOLERANCE * abs(wanted), f"{what}: {found}, expected {wanted}"
    elif exact or "safetensors" not in what:
        assert found == wanted, f"{what}: {found}, expected {wanted}"


class Place:
    """A copy of the fixture, of which one thing is tried."""

    def __init__(self, source, program, expected):
        self.expected = expected
        self.folder = tempfile.TemporaryDirectory()
        copy = pathlib.Path(self.folder.name) / "place"
        shutil.copytree(source / "tests/fixtures/format_1/place", copy)
        self.roux = Roux(program, copy)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def look(place):
    roux, runs = place.roux, place.expected["runs"]
    found = {run["name"]: run for run in roux.json("runs", "list")}
    assert found.keys() == runs.keys(), (sorted(found), sorted(runs))
    for name, run in runs.items():
        same({key: found[name][key] for key in run}, run, True, name)
        shown = roux.answer("runs", "show", run["id"])
        assert name in shown and run["status"] in shown and run["recipe_hash"] in shown, shown
    for text, names in place.expected["filters"].items():
        kept = sorted(run["name"] for run in roux.json("runs", "list", "--filter", text))
        assert kept == names, f"--filter {text}: {kept}, expected {names}"
    # By a word that has been renamed since, and by the new one.
    for key in ("loader.pad_in_loss", "loader.count_repeated_samples"):
        kept = {run["name"] for run in roux.json("runs", "list", "--filter", f"{key} == false")}
        assert kept == runs.keys(), f"{key}: {sorted(kept)}"
    assert "the one to keep" in roux.answer("runs", "show", "finished-a")
    compared = roux.answer("runs", "compare", "finished-a", "finished-b")
    assert ["seed", "11", "12"] in [line.split() for line in compared.splitlines()], compared
    assert "optimizer.type" in roux.answer("runs", "compare", "muon", "adamw-ema")
    status, said = roux.ended("runs", "diff", "finished-a", "finished-b")
    assert "seed" in said, (status, said)
    for run in ("adamw-ema", "power-sgd"):
        assert "step-0000" in roux.answer("checkpoints", "list", run)
        roux.answer("checkpoints", "verify", run)


def read_recipes(place):
    """As they were written, and as they were settled; both come to the same recipe."""
    roux = place.roux
    recipes = sorted(path.relative_to(roux.folder) for path in (roux.folder / "recipes").glob("*.yaml"))
    settled = sorted(path.relative_to(roux.folder) for path in (roux.folder / "resolved").glob("*.json"))
    assert len(recipes) == 7 and len(settled) > 20, (recipes, settled)
    for path in [*recipes, *settled]:
        roux.answer("validate", path)
    for recipe in recipes:
        written, settled = roux.json("resolve", recipe), roux.json("resolve", f"resolved/{recipe.stem}.json")
        for values in (written, settled):
            # An earlier roux counted the batches of one process, which matters where eval.max_batches counts any.
            if values["eval"]["max_batches"] is None:
                del values["eval"]["counted_batch_size"]
            # Where it is unset an earlier roux took 10, and recorded it so.
            if values["logging_steps"] is None:
                values["logging_steps"] = 10
        same(written, settled, True, str(recipe))


def know_commands(place):
    """An unknown word leaves the help of the command above it."""
    for command in place.expected["commands"]:
        words = command.split()
        help_ = place.roux.answer(*words, "--help")
        assert help_ != place.roux.answer(*words[:-1], "--help"), f"`roux {command}` is no command any more"


def resume(place, by_recipe):
    """To the bits of a training without a stop. True: where this processor's sums are those of the fixture's."""
    roux, exact = place.roux, True
    for name, end in place.expected["ends"].items():
        words = ["run", f"recipes/{name.replace('-', '_')}.yaml"] if by_recipe else ["resume", name]
        status, said = roux.ended(*words)
        if status == 2 and "cpu_capability was" in said:
            exact = False
            status, said = roux.ended(*words, "--allow-change", "cpu_capability")
        assert status == 0 and "resuming runs/" in said, f"roux {' '.join(words)}: {status}\n{said}"
        assert run_folder(roux, name).name.endswith(place.expected["runs"][name]["id"])
        same(end_of_run(roux, name), end, exact, name)
    return exact


def continue_sweep(place, words, exact):
    roux = place.roux
    roux.answer("sweep", *words)
    same(end_of_sweep(roux), place.expected["sweep"], exact, "sweep")
    complete = [trial["value"] for trial in place.expected["sweep"] if trial["state"] == "complete"]
    best = [trial["value"] for trial in place.expected["sweep"]].index(min(complete))
    assert f"trial    {best}\n" in roux.answer("sweep", "best")
    roux.answer("sweep", "show")


def reproduce(place, exact):
    """That the program's source is another one is told; the recorded recipe is as it was, and so are losses and weights.
    Metrics are not: they were sums of float32 then."""
    _, said = place.roux.ended("reproduce", "finished-a")
    if exact:
        same(*(end_of_run(place.roux, run) for run in ("finished-a-again", "finished-a")), exact, "reproduced")
    assert "resolved.json (hash" not in said, said
    was, now = (json.loads((run_folder(place.roux, run) / "capsule.json").read_text())["source"]
                for run in ("finished-a", "finished-a-again"))
    assert was == now or f"{was} and is {now}" in said, said


def main():
    source, program = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    expected = json.loads((source / "tests/fixtures/format_1/expected.json").read_text())

    def place():
        return Place(source, program, expected)

    with place() as one:
        look(one)
        read_recipes(one)
        know_commands(one)
        exact = resume(one, by_recipe=False)
        continue_sweep(one, ["resume"], exact)
        reproduce(one, exact)
        runs = {run["name"]: run["status"] for run in one.roux.json("runs", "list")}
        # A pruned trial is told to stop while it trains on: a busy machine finds it in time.
        pruned = {f"sweep-1qjtrvxyb64-{number}" for number, trial in enumerate(expected["sweep"])
                  if trial["state"] == "pruned"}
        assert {status for name, status in runs.items() if name not in pruned} == {"finished"}, runs
        assert {runs[name] for name in pruned} <= {"finished", "stopped"}, runs
    with place() as other:
        resume(other, by_recipe=True)
        continue_sweep(other, ["run", "recipes/sweep.yaml"], exact)
    print("to the same bits" if exact else f"within {TOLERANCE}: not the processor that the fixture was made on")


if __name__ == "__main__":
    main()
