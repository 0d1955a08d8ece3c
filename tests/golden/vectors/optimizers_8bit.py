"""Records five steps of bitsandbytes' optimizers with a state in 8 bits, topic optimizers_8bit.

    python3 tests/golden/vectors/optimizers_8bit.py > tests/golden/vectors/optimizers_8bit.json

needs bitsandbytes 0.50.2 and torch. They run on the CPU, with the nearest codes as on GPUs: the library for CPUs puts each
number into one of 65,536 bins first, in which small second moments are lost. Its operation for float64 has no bins.
"""

import json

import bitsandbytes
import torch
from bitsandbytes.backends.cpu import ops

STEPS = 5
SIZES = {"large": [18, 250], "small": [5, 7]}


def quantize(numbers, code, absmax_out, out, blocksize):
    codes, absmax = torch.ops.bitsandbytes.quantize_blockwise(numbers.double(), code, blocksize)
    out.copy_(codes)
    absmax_out.copy_(absmax)


def drawn(count, seed):
    """Between -0.5 and 0.5, exact in float32: the test makes the same numbers."""
    index = torch.arange(count, dtype=torch.int64)
    mixed = ((index + 1) * 2654435761 + seed * 40503 * 65537) % 2**32
    return ((mixed >> 8).double() / 2**24 - 0.5).float()


def gradient(count, seed):
    """Of five sizes, from 0.5 to 5e-5 of powers of two."""
    return drawn(count, seed) * torch.pow(2.0, -3.0 * (torch.arange(count) % 5).float())


def run(name, make, options):
    weights = {key: torch.nn.Parameter(drawn(shape[0] * shape[1], 1).view(shape)) for key, shape in SIZES.items()}
    optimizer = make(weights.values(), **options)
    for step in range(STEPS):
        for weight in weights.values():
            weight.grad = gradient(weight.numel(), 100 + step).view(weight.shape)
        optimizer.step()
    expected = {}
    for key, weight in weights.items():
        state = optimizer.state[weight]
        expected[key] = {"weights": [float(f"{value:.9g}") for value in weight.detach().flatten()[::3]]}
        for number in (1, 2):
            if f"state{number}" not in state:
                continue
            values = state[f"state{number}"].flatten()
            if values.dtype == torch.uint8:
                expected[key][f"codes{number}"] = bytes(values.tolist()).hex()
                expected[key][f"absmax{number}"] = [float(f"{v:.9g}") for v in state[f"absmax{number}"]]
            else:
                expected[key][f"state{number}"] = [float(f"{value:.9g}") for value in values]
    return {"kind": "steps", "name": name, "input": {"type": name.split(" ")[0], "options": options, "sizes": SIZES, "steps": STEPS},
            "expected": expected}


ops._quant_blockwise_fp32_direct = quantize
optim = bitsandbytes.optim
cases = [
    run("adamw_8bit", optim.AdamW8bit, {"lr": 0.01, "weight_decay": 0.1}),
    run("adamw_8bit betas", optim.AdamW8bit, {"lr": 0.003, "betas": [0.8, 0.95], "eps": 1e-4, "weight_decay": 0.0}),
    run("lion_8bit", optim.Lion8bit, {"lr": 0.001, "betas": [0.9, 0.99], "weight_decay": 0.1}),
]
print('{"topic": "optimizers_8bit", "source": "bitsandbytes 0.50.2 on the CPU with the codes of GPUs; written by optimizers_8bit.py",\n'
      '"fields": {"kind=steps": "weights and gradients by formula (drawn, gradient in the script) -> every third weight, and the state: '
      'codes as hexadecimal bytes with the absmax of each block of 256, in float32 where the tensor is small"},\n"cases": [')
print(",\n".join(json.dumps(case) for case in cases))
print("]}")
