"""Studies of Optuna become sweeps, and sweeps studies that Optuna loads; nothing is trained.

usage: readback_optuna.py SOURCE_DIR ROUX
"""

import json
import math
import os
import pathlib
import subprocess
import tempfile

from lib.libraries import with_libraries
from lib.tracked import arguments

RECIPE = {
    "run_name": "swept",
    "model": {"type": "mlp", "hidden": [4]},
    "data": {"train": {"type": "synthetic", "task": "regression"}, "val": {"type": "synthetic", "task": "regression"}},
    "loss": "mse",
    "optimizer": {"type": "sgd", "lr": 0.1},
    "training": {"max_steps": 1, "micro_batch_size": 1},
    "sweep": {
        "n_trials": 40,
        "parameters": {
            "optimizer.type": {"values": ["sgd", "adamw"]},
            "optimizer.lr": {"distribution": "log_uniform", "min": 1e-4, "max": 1e-1},
            "optimizer.momentum": {"min": 0, "max": 0.9, "when": 'optimizer.type == "sgd"'},
            "training.max_steps": {"min": 1, "max": 9, "q": 2},
            "model.hidden": {"values": [[4], [8, 8]]},
        },
    },
}


def objective(trial):
    """Over the parameters of RECIPE, which Optuna calls lr and so on; lists are texts to it."""
    import optuna

    kind = trial.suggest_categorical("optimizer.type", ["sgd", "adamw"])
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    momentum = trial.suggest_float("optimizer.momentum", 0, 0.9) if kind == "sgd" else 0
    steps = trial.suggest_int("training.max_steps", 1, 9, step=2)
    hidden = trial.suggest_categorical("model.hidden", ["[4]", "[8, 8]"])
    value = (math.log10(lr) + 2) ** 2 + momentum + 1 / steps + len(hidden)
    trial.report(value * 2, 1)
    if trial.number % 7 == 3:
        raise optuna.TrialPruned()
    if trial.number % 7 == 5:
        raise ArithmeticError
    trial.report(value, steps + 1)
    return value


def new_study(path):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="tuning",
                                sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=30, catch=ArithmeticError)
    study.ask()  # one that has not ended
    return study


class Roux:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


def ended(study):
    return [trial for trial in study.trials if trial.state.is_finished()]


def check_same_trials(got, wanted, renamed):
    assert len(got) == len(wanted), (len(got), len(wanted))
    for ours, theirs in zip(got, wanted):
        assert ours.state == theirs.state, (ours, theirs)
        assert ours.params == {renamed.get(name, name): value for name, value in theirs.params.items()}, (ours, theirs)
        assert ours.intermediate_values == theirs.intermediate_values, (ours, theirs)
        if theirs.state.name == "COMPLETE":
            assert ours.value == theirs.value
        for a, b in ((ours.datetime_start, theirs.datetime_start), (ours.datetime_complete, theirs.datetime_complete)):
            assert abs((a - b).total_seconds()) < 0.01, (a, b)


def check_with_recipe(roux, study):
    """The trials become those of the recipe's own sweep, and come back as they were."""
    import optuna

    (roux.folder / "recipe.json").write_text(json.dumps(RECIPE))
    said = roux("sweep", "import", "recipe.json", "--optuna", "study.db", "--map", "lr=optimizer.lr")
    assert "30 trials of study tuning" in said, said
    shown = json.loads(roux("sweep", "export", "--format", "json"))["trials"]
    assert [trial["state"] for trial in shown] == [
        {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}[trial.state.name] for trial in ended(study)]
    assert shown[0]["values"]["model.hidden"] in ([4], [8, 8])
    roux("sweep", "export", "--optuna", "back.db")
    back = optuna.load_study(study_name=None, storage=f"sqlite:///{roux.folder / 'back.db'}")
    check_same_trials(back.trials, ended(study), {"lr": "optimizer.lr"})
    assert back.direction == study.direction
    assert back.best_trial.number == study.best_trial.number
    assert set(back.best_trial.user_attrs) >= {"run", "variant", "seed"}
    for name, distribution in study.best_trial.distributions.items():
        assert back.best_trial.distributions[{"lr": "optimizer.lr"}.get(name, name)] == distribution, name
    back.optimize(lambda trial: trial.suggest_float("optimizer.lr", 1e-4, 1e-1, log=True), n_trials=1)  # it goes on


def check_alone(roux, study):
    """Without a recipe: what looks at sweeps takes them."""
    import optuna

    roux("sweep", "import", "--optuna", "study.db", "--study", "tuning", "--output-dir", "alone")
    at = ("--output-dir", "alone")
    best = roux("sweep", "best", *at)
    assert f"{study.best_value:.5g}" in best, (best, study.best_value)
    assert str(study.best_value)[:12] in roux("sweep", "list", "--format", "json", *at)
    shares = json.loads(roux("sweep", "importance", "--format", "json", *at))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    for name, share in optuna.importance.get_param_importances(study, evaluator=evaluator).items():
        ours = shares["vars." + name.replace(".", "_")]
        assert abs(ours - share) < 0.1, (name, ours, share)  # of 21 trials, where a forest's seed matters
    for kind in ("history", "intermediate", "parallel", "slice", "contour", "rank", "edf", "timeline"):
        roux("sweep", "plot", kind, *at, "--svg", f"{kind}.svg")
        assert (roux.folder / f"{kind}.svg").read_text().endswith("</svg>\n")
    assert len(roux("sweep", "show", *at, "--filter", "state == complete", "--format", "csv").splitlines()) == 1 + sum(
        trial.state.name == "COMPLETE" for trial in study.trials)


TWO = {**RECIPE, "run_name": "two", "sweep": {
    "n_trials": 60, "objectives": [{"name": "val/loss"}, {"name": "val/loss", "goal": "maximize"}],
    "parameters": {"optimizer.lr": {"min": 0, "max": 1}, "optimizer.momentum": {"min": 0, "max": 0.9}}}}


def new_study_of_two(path):
    """Mixed goals, equal values, one that is no number, and names that are the same but for a sign."""
    import optuna

    def objectives(trial):
        lr, momentum = trial.suggest_float("optimizer.lr", 0, 1), trial.suggest_float("optimizer-lr", 0, 0.9)
        if trial.number % 7 == 3:
            return math.nan, 1.0
        if trial.number % 7 == 5:
            raise ArithmeticError
        return round(lr, 1), round(lr + momentum * (1 - lr), 1)

    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="two", directions=["minimize", "maximize"],
                                sampler=optuna.samplers.RandomSampler(seed=2))
    study.optimize(objectives, n_trials=40, catch=ArithmeticError)
    return study


def front(roux, *words):
    """Numbers of the trials that `roux sweep best` shows."""
    lines = [line.split() for line in roux("sweep", "best", *words).splitlines()]
    return [int(words[1]) for words in lines if words and words[0] == "trial"]


def check_several_objectives(roux):
    """The front is Optuna's, with a recipe and without one, and comes back."""
    import optuna

    study = new_study_of_two(roux.folder / "two.db")
    wanted = sorted(trial.number for trial in study.best_trials)
    assert len(wanted) > 3, wanted
    (roux.folder / "two.json").write_text(json.dumps(TWO))
    roux("sweep", "import", "two.json", "--optuna", "two.db", "--map", "optimizer-lr=optimizer.momentum")
    assert front(roux) == wanted, (front(roux), wanted)
    roux("sweep", "export", "--optuna", "two_back.db")
    back = optuna.load_study(study_name=None, storage=f"sqlite:///{roux.folder / 'two_back.db'}")
    assert back.directions == study.directions
    assert back.metric_names == ["val/loss", "val/loss"]
    assert sorted(trial.number for trial in back.best_trials) == wanted
    assert [trial.values for trial in back.best_trials] == [trial.values for trial in study.best_trials]
    roux("sweep", "import", "--optuna", "two.db", "--output-dir", "two_alone")
    at = ("--output-dir", "two_alone")
    assert front(roux, *at) == wanted
    roux("sweep", "plot", "pareto", *at, "--svg", "pareto.svg", "--png", "pareto.png")
    assert (roux.folder / "pareto.svg").read_text().endswith("</svg>\n")
    header = roux("sweep", "export", *at).splitlines()[0]
    assert "vars.optimizer_lr,vars.optimizer_lr_2" in header, header


def main():
    with_libraries()
    _, program = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        study = new_study(folder / "study.db")
        roux = Roux(program, folder)
        os.environ.pop("ROUX_OUTPUT_DIR", None)
        check_with_recipe(roux, study)
        check_alone(roux, study)
        check_several_objectives(roux)
        print(f"{len(ended(study))} trials of Optuna are the same after a way there and back")


if __name__ == "__main__":
    main()
