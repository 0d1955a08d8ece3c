"""Frequencies of rotary positions, ../rope.json."""

import copy
import math

import torch
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from cases.models import rope

# Fields, and the length of a text. Each gives frequencies and the factor of cosine and sine, rope.json.
THETA = 10000.0
YARN = {"factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {"factor": 32.0, "original_max_position_embeddings": 8192, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
ROPES = [
    (rope("default", THETA), 32),
    (rope("linear", THETA, factor=2.5), 32),
    *((rope("dynamic", THETA, factor=2.0), length) for length in (64, 256, 257, 1000)),
    (rope("yarn", THETA, **YARN), 32),
    (rope("yarn", THETA, **YARN, beta_fast=8.0, beta_slow=2.0), 32),
    (rope("yarn", THETA, **YARN, attention_factor=0.75), 32),
    (rope("yarn", THETA, **YARN, mscale=1.0, mscale_all_dim=0.5), 32),
    (rope("yarn", THETA, **YARN, mscale=1.0), 32),
    (rope("yarn", THETA, **YARN, truncate=False), 32),
    (rope("yarn", THETA, factor=4.0), 32),
    (rope("llama3", 500000.0, **LLAMA3), 32),
    (rope("llama3", 500.0, **LLAMA3), 32),
    ({"rope_theta": 1000.0, "rope_scaling": {"type": "linear", "factor": 3.0}}, 32),
    ({"rope_theta": 1000.0, "rope_scaling": {"rope_type": "yarn", "type": "linear", "factor": 3.0}}, 32),
    ({"rope_theta": 1000.0, "rope_parameters": {"rope_theta": 2000.0}}, 32),
    ({"rope_theta": 1000.0, "rope_scaling": None}, 32),
]


def frequencies():
    """Of heads with 32 features, and at most 256 positions."""
    results = []
    for fields, length in ROPES:
        shape = {"hidden_size": 64, "num_attention_heads": 2, "max_position_embeddings": 256}
        config = AutoConfig.for_model("llama", **shape, **copy.deepcopy(fields))
        embedding = LlamaRotaryEmbedding(config)
        embedding(torch.zeros(1), torch.arange(length)[None])
        results.append({"fields": {"head_dim": 32, "max_position_embeddings": 256, **fields}, "length": length,
                        "attention_factor": embedding.attention_scaling, "frequencies": embedding.inv_freq.tolist()})
    return results


def check_frequencies(found, committed):
    if [(each["fields"], each["length"]) for each in found] != [(each["fields"], each["length"]) for each in committed]:
        return ["rope.json: other cases"]
    pairs = [([one["attention_factor"], *one["frequencies"]], [two["attention_factor"], *two["frequencies"]])
             for one, two in zip(found, committed, strict=True)]
    near = [all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(*pair, strict=True)) for pair in pairs]
    return [f"rope.json: {case['fields']} differs" for case, same in zip(found, near, strict=True) if not same]
