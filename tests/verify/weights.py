"""Weights cross between roux and PyTorch: safetensors.torch reads what roux trained and predicts the same, and what
safetensors.torch saved under a torch module's names trains on in roux as it does in torch.

usage: weights.py SOURCE_DIR ROUX
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

from lib.libraries import with_libraries

ROWS = 32
RECIPE = """
run_name: {name}
device: cpu
data:
  train: {{type: csv_table, path: table.csv, target: y}}
  val: {{type: csv_table, path: table.csv, target: y}}
model: {{type: mlp, hidden: [8]}}
loss: mse
optimizer: {{type: sgd, lr: {lr}}}
training: {{max_steps: {steps}, micro_batch_size: 32}}
{more}
"""
# A torch module keeps its layers under `net`, and one that was wrapped for several devices under `module` too.
RENAME = r"rename: {'^module\.net\.0\.': layers.0., '^module\.net\.2\.': layers.1.}"


def write_table(folder):
    draw = random.Random(7)
    rows = [[draw.uniform(-1, 1) for _ in range(3)] for _ in range(ROWS)]
    lines = ["a,b,c,y", *(",".join(f"{v:.6f}" for v in [*row, row[0] * row[1] - row[2]]) for row in rows)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    return [[float(v) for v in line.split(",")] for line in lines[1:]]


class Bench:
    """One folder in which roux runs."""

    def __init__(self, roux, folder):
        self.roux, self.folder, self.count = roux, folder, 0

    def call(self, *words):
        result = subprocess.run([self.roux, *words], cwd=self.folder, capture_output=True, text=True)
        assert result.returncode == 0, (words, result.stdout, result.stderr)
        return result.stdout

    def train(self, lr, steps, more=""):
        """Returns the recipe's file and the folder of the last checkpoint."""
        self.count += 1
        name = f"t{self.count}"
        (self.folder / f"{name}.yaml").write_text(RECIPE.format(name=name, lr=lr, steps=steps, more=more))
        self.call("run", f"{name}.yaml", "--quiet")
        (checkpoint,) = self.folder.glob(f"runs/{name}-*/checkpoints/step-{steps:06d}")
        return f"{name}.yaml", checkpoint


def torch_net(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    wrapped = torch.nn.Module()
    wrapped.net = net
    return net, torch.nn.DataParallel(wrapped)


def fill(net, tensors):
    net.load_state_dict({"0.weight": tensors["layers.0.weight"], "0.bias": tensors["layers.0.bias"],
                         "2.weight": tensors["layers.1.weight"], "2.bias": tensors["layers.1.bias"]})


def weights_of(net):
    state = net.state_dict()
    return {"layers.0.weight": state["0.weight"], "layers.0.bias": state["0.bias"],
            "layers.1.weight": state["2.weight"], "layers.1.bias": state["2.bias"]}


def check_out_of_roux(bench, torch, safetensors, x):
    """Torch, with the weights that roux trained, predicts what roux predicts."""
    recipe, checkpoint = bench.train(0.1, 20)
    tensors = safetensors.load_file(checkpoint / "model.safetensors")
    net, _ = torch_net(torch)
    fill(net, tensors)
    lines = [json.loads(line) for line in bench.call("predict", recipe).splitlines()]
    ours = torch.tensor([[line["prediction"]] for line in sorted(lines, key=lambda line: line["row"])])
    assert torch.allclose(net(x), ours, rtol=1e-5, atol=1e-6), (net(x) - ours).abs().max()
    return len(tensors)


def check_into_roux(bench, torch, safetensors, x, y):
    """A torch state_dict goes in bitwise, and one step of SGD from it is torch's step."""
    torch.manual_seed(3)
    net, wrapped = torch_net(torch)
    file = bench.folder / "torch.safetensors"
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        safetensors.save_file({name: value.to(dtype) for name, value in wrapped.state_dict().items()}, file)
        _, still = bench.train(0.0, 1, f"init_from: {{path: torch.safetensors, {RENAME}}}")
        found = safetensors.load_file(still / "model.safetensors")
        for name, value in weights_of(net).items():
            assert torch.equal(found[name], value.to(dtype).to(torch.float32)), (dtype, name)

    safetensors.save_file(wrapped.state_dict(), file)
    _, moved = bench.train(0.1, 1, f"init_from: {{path: torch.safetensors, {RENAME}}}")
    before = torch.nn.functional.mse_loss(net(x), y)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before.backward()
    optimizer.step()
    found = safetensors.load_file(moved / "model.safetensors")
    for name, value in weights_of(net).items():
        assert torch.allclose(found[name], value, rtol=1e-5, atol=1e-7), (name, (found[name] - value).abs().max())

    _, trained = bench.train(0.1, 200, f"init_from: {{path: torch.safetensors, {RENAME}}}")
    fill(net, safetensors.load_file(trained / "model.safetensors"))
    after = torch.nn.functional.mse_loss(net(x), y)
    assert after < 0.5 * before, (before, after)
    return before.item(), after.item()


def check_shards(bench, torch, safetensors):
    """Shards with an index as transformers writes them."""
    torch.manual_seed(4)
    net, wrapped = torch_net(torch)
    folder = bench.folder / "sharded"
    folder.mkdir()
    items = list(wrapped.state_dict().items())
    weight_map = {}
    for number, part in enumerate((items[:2], items[2:]), 1):
        name = f"model-{number:05d}-of-00002.safetensors"
        safetensors.save_file(dict(part), folder / name, metadata={"format": "pt"})
        weight_map.update({tensor: name for tensor, _ in part})
    index = {"metadata": {"total_size": sum(value.nbytes for _, value in items)}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    for path in ("sharded", "sharded/model.safetensors.index.json"):
        _, still = bench.train(0.0, 1, f"init_from: {{path: {path}, {RENAME}}}")
        found = safetensors.load_file(still / "model.safetensors")
        for name, value in weights_of(net).items():
            assert torch.equal(found[name], value), (path, name)


def check_merged(bench, torch, safetensors):
    """`merge-weights` gives the same tensors in one file, from shards of other programs and from those of roux."""
    state = {}
    for shard in sorted((bench.folder / "sharded").glob("*.safetensors")):
        state.update(safetensors.load_file(shard))
    bench.call("merge-weights", "sharded", "merged")
    _, checkpoint = bench.train(0.1, 1, "checkpoint: {max_shard_size: 128}")
    shards = list(checkpoint.glob("model-*-of-*.safetensors"))
    assert len(shards) > 1, shards
    ours = {name: value for shard in shards for name, value in safetensors.load_file(shard).items()}
    bench.call("merge-weights", f"{checkpoint.parent.parent.name}:last", "ours.safetensors")
    for expected, file in ((state, "merged/model.safetensors"), (ours, "ours.safetensors")):
        found = safetensors.load_file(bench.folder / file)
        assert found.keys() == expected.keys(), (file, found.keys())
        for name, value in expected.items():
            assert found[name].dtype == value.dtype and torch.equal(found[name], value), (file, name)


def main():
    with_libraries(torch=True)
    import safetensors.torch
    import torch

    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        rows = torch.tensor(write_table(folder))
        x, y = rows[:, :3], rows[:, 3:]
        bench = Bench(pathlib.Path(sys.argv[2]).resolve(), folder)
        count = check_out_of_roux(bench, torch, safetensors.torch, x)
        before, after = check_into_roux(bench, torch, safetensors.torch, x, y)
        check_shards(bench, torch, safetensors.torch)
        check_merged(bench, torch, safetensors.torch)
    print(f"torch {torch.__version__} read {count} tensors; its own weights went on in roux from loss {before:.4f} to "
          f"{after:.4f}")


main()
