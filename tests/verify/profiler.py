"""A trace of roux holds what torch.profiler writes for the same model: the same fields, event by event, and the same
operations nested in the same ranges.

usage: profiler.py SOURCE_DIR ROUX
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from lib.libraries import with_libraries

ROWS, BATCH, WINDOW, STEPS = 64, 32, 2, 12
SCHEDULE = {"skip_first": 1, "wait": 1, "warmup": 1, "active": 2, "repeat": 2}
RECIPE = """
run_name: traced
device: cpu
data: {{train: {{type: csv_table, path: table.csv, target: y}}}}
model: {{type: sequential, layers: [{{type: linear, out_features: 64}}, tanh, {{type: linear, out_features: 1}}]}}
loss: mse
optimizer: {{type: sgd, lr: 0.1}}
training: {{max_steps: {steps}, micro_batch_size: {batch}, gradient_accumulation_steps: {window}}}
profiler: {profiler}
"""
FLAGS = ({}, {"record_shapes": True}, {"record_shapes": True, "profile_memory": True, "with_flops": True, "with_stack": True,
                                       "with_modules": True})


def write_table(folder):
    draw = random.Random(7)
    rows = [[draw.uniform(-1, 1) for _ in range(4)] for _ in range(ROWS)]
    (folder / "table.csv").write_text("\n".join(["a,b,c,y", *(",".join(f"{v:.6f}" for v in row) for row in rows)]) + "\n")


def roux_traces(roux, folder, flags):
    (folder / "r.yaml").write_text(RECIPE.format(
        steps=STEPS, batch=BATCH, window=WINDOW,
        profiler=json.dumps({"activities": ["cpu"], "schedule": SCHEDULE, **flags})))
    out = folder / f"runs{len(flags)}"
    result = subprocess.run([roux, "run", "r.yaml", "--new", "--output-dir", out], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "ERROR" not in result.stderr and "CPUAllocator" not in result.stderr, result.stderr
    files = sorted(out.glob("traced-*/profile/*.pt.trace.json"))
    assert all(re.fullmatch(r"rank-0\.\d+\.pt\.trace\.json", file.name) for file in files), files
    return [json.loads(file.read_text()) for file in files]


def torch_traces(torch, folder, flags):
    """The loop of the recipe above, as it is written with torch.profiler."""
    files = []

    def ready(profile):
        files.append(folder / f"torch-{len(files)}.json")
        profile.export_chrome_trace(str(files[-1]))

    flags = {name: value for name, value in flags.items() if name != "with_stack"}  # in Python it traces all its calls
    layers = [torch.nn.Linear(3, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    x, y, weight = torch.randn(BATCH, 3), torch.randn(BATCH, 1), torch.tensor(1 / (BATCH * WINDOW))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], on_trace_ready=ready,
                                schedule=torch.profiler.schedule(**SCHEDULE), **flags) as profile:
        for _ in range(STEPS):
            optimizer.zero_grad()
            for _ in range(WINDOW):
                with torch.profiler.record_function("forward"):
                    out = x
                    for number, layer in enumerate(layers):
                        with torch.profiler.record_function(f"layers.{number}"):
                            out = layer(out)
                    loss = torch.nn.functional.mse_loss(out, y, reduction="sum")
                with torch.profiler.record_function("backward"):
                    loss.backward(weight)
            optimizer.step()
            profile.step()
    return [json.loads(file.read_text()) for file in files]


class Tree:
    """The events of one thread by what lies within what."""

    def __init__(self, event):
        self.event, self.name, self.children = event, event["name"], []

    def shape(self):
        return self.name, tuple(child.shape() for child in self.children)

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


def trees(trace):
    """Fails where an event lies only partly within another."""
    roots, stack = [], []
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] in ("cpu_op", "user_annotation")]
    assert len({event["tid"] for event in events}) == 1
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while stack and event["ts"] >= stack[-1].event["ts"] + stack[-1].event["dur"] - 1e-6:
            stack.pop()
        tree = Tree(event)
        if stack:
            parent = stack[-1].event
            assert event["ts"] + event["dur"] <= parent["ts"] + parent["dur"] + 2e-3, (event, parent)
        (stack[-1].children if stack else roots).append(tree)
        stack.append(tree)
    return roots


def fields(trace):
    """(category, phase) and, for operations that both sides have, the name -> all sets of keys that occur."""
    found = {}
    for event in trace["traceEvents"]:
        keys = (frozenset(event), frozenset(event.get("args", {})))
        found.setdefault((event.get("cat"), event["ph"]), set()).add(keys[0])
        if event.get("cat") == "cpu_op" and event["name"].startswith(("aten::addmm", "aten::tanh", "autograd::", "Addmm")):
            found.setdefault(event["name"], set()).add(keys)
        if event.get("cat") in ("user_annotation", "cpu_instant_event", "Trace"):
            found.setdefault((event["cat"], "args"), set()).add(keys[1])
    return found


BLOCKS = ("layers.0", "layers.1", "layers.2")
NODES = tuple(f"autograd::engine::evaluate_function: {name}Backward0" for name in ("Addmm", "Tanh"))


def inner(roots):
    """Step by step, in order: what lies in each block of the forward pass, and in each node of the backward pass."""
    steps = []
    for root in roots:
        assert root.name.startswith("ProfilerStep#"), root.name
        found = []
        for part in (tree for tree in root.children if tree.name in ("forward", "backward")):
            wanted = BLOCKS if part.name == "forward" else NODES
            # A block lies directly in its pass.
            found.append((part.name, [tree.shape() for tree in part.children if tree.name in wanted]))
        steps.append((root.name, found))
    return steps


def dims(roots):
    return [[tree.event["args"].get("Input Dims") for tree in root.walk() if tree.name == "aten::addmm"] for root in roots]


def arrows(trace):
    """From the operation of the forward pass to the node of the backward pass."""
    ends = {"s": set(), "f": set()}
    for event in trace["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            ends[event["ph"]].add(event["id"])
    assert ends["s"] == ends["f"] and ends["s"]
    return len(ends["s"])


def compare(ours, theirs, flags):
    # LibTorch with CUDA on a machine without it notes that as an error; with_stack is left out above.
    ignored = {"ERROR", "with_stack"}
    assert set(ours) - ignored == set(theirs) - ignored, set(ours) ^ set(theirs)
    for name in flags:
        assert ours[name] == 1, name
    our_fields, their_fields = fields(ours), fields(theirs)
    assert our_fields == their_fields, {
        key: (our_fields.get(key), their_fields.get(key))
        for key in our_fields.keys() | their_fields.keys() if our_fields.get(key) != their_fields.get(key)}
    our_trees, their_trees = trees(ours), trees(theirs)
    assert inner(our_trees) == inner(their_trees), (inner(our_trees), inner(their_trees))
    parts = {name for _, step in inner(our_trees) for _, shapes in step for name, children in shapes if children}
    assert parts == {*BLOCKS, *NODES}, parts
    assert dims(our_trees) == dims(their_trees)
    assert arrows(ours) == arrows(theirs)
    for root in our_trees:
        assert [tree.name for tree in root.children if tree.name in ("data", "forward", "backward", "optimizer")] == [
            "data", *["forward", "backward"] * WINDOW, "optimizer"], root.shape()


def main():
    with_libraries(torch=True)
    import torch

    roux = pathlib.Path(sys.argv[2]).resolve()
    count = 0
    for flags in FLAGS:
        with tempfile.TemporaryDirectory() as work:
            folder = pathlib.Path(work)
            write_table(folder)
            ours, theirs = roux_traces(roux, folder, flags), torch_traces(torch, folder, flags)
            assert len(ours) == len(theirs) == SCHEDULE["repeat"]
            for pair in zip(ours, theirs):
                compare(*pair, flags)
                count += len(pair[0]["traceEvents"])
    print(f"{count} events of {len(FLAGS) * SCHEDULE['repeat']} traces have the fields and the nesting of "
          f"torch {torch.__version__}")


main()
