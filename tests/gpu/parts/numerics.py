"""Does training on the GPU give what it gives on the CPU, the same after a resume, and the same in 16 bits?"""
import math
import statistics

from lab import BENCH, RECIPES

NO_SAVES = ["checkpoint.save_at_end=false", "logging_steps=1"]


def furthest(found, wanted):
    """(relative distance, step) where two curves are furthest apart; both must have the same steps."""
    if not wanted or found.keys() != wanted.keys():
        return math.nan, 0
    return max((abs(found[step] - wanted[step]) / abs(wanted[step]), step) for step in wanted)


def smoke(lab, record):
    """In float32 with TF32 off, which is the default of matmul_precision; the smoke recipes have no dropout."""
    sets = [f"training.max_steps={14 if lab.pretend else 50}", "training.max_epochs=null", *NO_SAVES]
    for recipe in sorted((RECIPES / "smoke").glob("*.yaml")):
        on_cpu = lab.run(recipe, *sets, "training.fused_kernels=false", "device=cpu").series()
        distance, step = furthest(lab.run(recipe, *sets).series(), on_cpu)
        record.check(f"{recipe.stem}: furthest from the CPU's losses, relative", distance, at_most=1e-4)
        record.figure(f"{recipe.stem}: at step", step)


def resume(lab, record):
    """Dropout draws from the GPU's generator, which is part of the state."""
    proved = {
        RECIPES / "smoke/gpt.yaml": ["model.dropout=0.1", "training.max_steps=12"],
        RECIPES / "smoke/weight_average.yaml": ["training.max_steps=12", "weight_averaging.start_step=4"],
        BENCH / "recipes/resnet18.yaml": ["training.max_steps=6", "data.train.num_samples=64",
                                          f"training.micro_batch_size={2 if lab.pretend else 16}"],
        RECIPES / "smoke/images.yaml": ["training.max_steps=6"],
    }
    for recipe, sets in proved.items():
        kills = "3,5" if recipe.stem == "gpt" and not lab.pretend else "3"
        sets = [f"device={lab.device}", "deterministic=true", "checkpoint.save_steps=2", *sets]
        words = [word for one in sets for word in ("--set", one)]
        lab.call(lab.roux_words("prove-resume", recipe, "--kill-at", kills, "--output-dir", lab.work / "prove", *words),
                 starts=3 + kills.count(",") * 2)
        record.expect(f"{recipe.stem}: killed and resumed runs end bit-identical", True)  # else the exit status is 1
    moves(lab, record)


def moves(lab, record):
    """A checkpoint of one device is resumed on the other."""
    for begin, end in ((lab.device, "cpu"), ("cpu", lab.device)):
        recipe = RECIPES / "smoke/gpt.yaml"
        sets = ["training.max_steps=12", "checkpoint.save_steps=6", "logging_steps=1"]
        whole = lab.run(recipe, f"device={begin}", *sets)
        saved = whole.folder / "checkpoints/step-000006"
        wanted = {step: loss for step, loss in whole.series().items() if step > 6}
        resumed = lab.run(recipe, f"device={end}", *sets, flags=["--checkpoint", saved, "--allow-change", "device"])
        moved = {step: loss for step, loss in resumed.series().items() if step > 6}
        record.expect(f"a checkpoint of {begin} is what the training on {end} begins with", resumed.events("restore"))
        record.check(f"a checkpoint of {begin} resumed on {end}: furthest from the run that stayed",
                     furthest(moved, wanted)[0], at_most=1e-4)


def precision(lab, record):
    """Curves in 16 bits beside float32 from the same three seeds, and a loss scale that overflows."""
    steps, window = (8, 4) if lab.pretend else (300, 20)
    sets = [f"training.max_steps={steps}", "callbacks=[]", "checkpoint.save_steps=null", "checkpoint.save_best=false",
            "eval.eval_steps=null", *NO_SAVES]
    if lab.pretend:
        sets += ["model.n_layer=1", "model.n_embd=32", "data.train.max_seq_len=16", "data.val.max_seq_len=16"]

    def curve(seed, mode):
        """Means of `window` steps."""
        run = lab.run(RECIPES / "quickstart.yaml", *sets, f"seed={seed}", f"precision.mode={mode}")
        losses = list(run.series().values())
        return [statistics.mean(losses[i:i + window]) for i in range(0, len(losses), window)]

    seeds = (1, 2, 3)
    exact = [curve(seed, "32-true") for seed in seeds]
    noise = statistics.mean(max(at) - min(at) for at in zip(*exact))
    record.figure("noise of three seeds in float32, nats", noise)
    for mode in ("bf16-mixed", "16-mixed", "bf16-true"):
        short = [curve(seed, mode) for seed in seeds]
        apart = max(abs(statistics.mean(a - b for a, b in zip(*at))) for at in zip(zip(*short), zip(*exact)))
        record.check(f"{mode}: mean distance from float32 with the same seeds, in units of the seeds' noise",
                     apart / noise, at_most=1.0)
        record.figure(f"{mode}: last losses", [one[-1] for one in short])
    drill = lab.run(RECIPES / "smoke/gpt.yaml", "precision.mode=16-mixed", "precision.scaler.init_scale=1e9",
                    "training.max_steps=20", *NO_SAVES)
    losses = drill.series()
    scales = [event["next_loss_scale"] for event in drill.events("overflow")]
    record.expect("overflow drill: steps are skipped, each with half the scale",
                  scales and all(a == 2 * b for a, b in zip(scales, scales[1:])))
    record.expect("overflow drill: trains on to the last step, and the loss falls",
                  len(losses) == 20 and losses[20] < losses[1])
    record.figure("overflow drill: loss scale that fits", scales[-1] if scales else None)


def graphs(lab, record):
    """CUDA graphs give the losses of the same training without them: the rate alone is rounded differently."""
    graph = lab.graphs()
    recipes = {
        RECIPES / "smoke/gpt.yaml": ["model.dropout=0.1", "training.gradient_accumulation_steps=2"],
        RECIPES / "smoke/images.yaml": [],
        RECIPES / "smoke/spirals.yaml": [],
        RECIPES / "smoke/table.yaml": [],
        RECIPES / "smoke/weight_average.yaml": [],
    }
    for recipe, sets in recipes.items():
        sets = [f"training.max_steps={14 if lab.pretend else 50}", "training.max_epochs=null", *NO_SAVES, *sets]
        run = lab.run(recipe, *sets, graph)
        distance, step = furthest(run.series(), lab.run(recipe, *sets).series())
        record.check(f"{recipe.stem}: furthest from the losses without a graph, relative", distance, at_most=1e-4)
        record.figure(f"{recipe.stem}: at step", step)
        log = (run.folder / "logs/rank-0.log").read_text()
        record.expect(f"{recipe.stem}: a graph was replayed", lab.pretend or "replayed as a CUDA graph" in log)
    sets = [f"device={lab.device}", graph, "deterministic=true", "model.dropout=0.1", "training.max_steps=12",
            "checkpoint.save_steps=2"]
    words = [word for one in sets for word in ("--set", one)]
    lab.call(lab.roux_words("prove-resume", RECIPES / "smoke/gpt.yaml", "--kill-at", "7", "--output-dir",
                            lab.work / "prove", *words), starts=3)
    record.expect("gpt: a killed and resumed run with graphs ends bit-identical", True)  # else the exit status is 1
