#!/usr/bin/env python3
"""Makes the files here, as PyTorch writes them. Kept so that they can be made again; tests only read them.

    python3 make.py    # with torch (2.11 was used)
"""
import collections
import os

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def state_dict():
    base = torch.arange(12, dtype=torch.float32)
    grid = base.reshape(3, 4)
    state = collections.OrderedDict()
    state["f32"] = grid
    state["transposed"] = grid.t()  # the same storage, in steps
    state["part"] = base[5:9]  # the same storage, from an offset
    state["every_second"] = base[::2]
    state["block"] = torch.arange(24, dtype=torch.int64).reshape(2, 3, 4).permute(2, 0, 1)
    state["scalar"] = torch.tensor(2.5)
    state["empty"] = torch.zeros(0, 5)
    state["repeated"] = torch.tensor([7.0]).expand(3)
    for dtype in ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"):
        state[dtype] = torch.tensor([0, 1, 3]).to(getattr(torch, dtype))
    state["parameter"] = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    state["_extra"] = {"none": None, "text": "t", "list": [1, 2.5, True], "large": 1 << 70}
    return state


def save(name, value, **how):
    torch.save(value, os.path.join(HERE, name), **how)


save("archive.pt", state_dict())
save("stream.bin", state_dict(), _use_new_zipfile_serialization=False)
save("protocol_4.pt", state_dict(), pickle_protocol=4)
save("typed.pt", {"u16": torch.tensor([1, 65535], dtype=torch.uint16),
                  "f8": torch.tensor([1.0, -2.0]).to(torch.float8_e4m3fn)})
save("below_model.pt", {"epoch": 3, "model": torch.nn.BatchNorm1d(2).state_dict(), "loss": 0.5})
save("module.pt", torch.nn.Linear(2, 2))
save("optimizer.pt", torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.1, momentum=0.9).state_dict())
save("mlp.pt", {"model_state_dict": {"layers.0.weight": torch.arange(32, dtype=torch.float64).reshape(8, 4).t(),
                                     "layers.0.bias": torch.arange(4, dtype=torch.float64),
                                     "layers.1.weight": torch.arange(4, dtype=torch.bfloat16).reshape(1, 4),
                                     "layers.1.bias": torch.tensor([0.5])}})
