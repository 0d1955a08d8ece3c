#!/usr/bin/env python3
"""Writes spans.json: how many tokens and spans are cut out of texts, masks, and what becomes of texts by them, by the
arithmetic of random_spans_noise_mask, noise_span_to_unique_sentinel and nonnoise_span_to_unique_sentinel of t5
(arXiv:1910.10683). Needs NumPy."""
import json
import pathlib

import numpy as np

SENTINELS, END = [99, 98, 97, 96, 95, 94, 93, 92], 1
numbers = np.random.default_rng(7)


def counts(length, density, mean):
    tokens = min(max(int(np.round(length * density)), 1), length - 1)
    spans = max(int(np.round(min(tokens, length - tokens) / mean)), 1)
    return tokens, spans


def segments(items, count):
    first = np.arange(items - 1) < count - 1
    numbers.shuffle(first)
    return np.bincount(np.cumsum(np.pad(first, [[1, 0]])), minlength=count)


def noise_mask(length, tokens, spans):
    lengths = np.stack([segments(length - tokens, spans), segments(tokens, spans)], axis=1).reshape(-1)
    starts = np.zeros(length, dtype=int)
    starts[np.cumsum(lengths)[:-1]] = 1
    return np.cumsum(starts) % 2 == 1


def with_sentinels(ids, mask):
    """What is masked becomes one sentinel a span."""
    before = np.pad(mask[:-1], [[1, 0]]).astype(bool)
    first, further = mask & ~before, mask & before
    sentinels = np.array(SENTINELS)[np.maximum(np.cumsum(first), 1) - 1]
    return np.where(first, sentinels, ids)[~further].tolist() + [END]


sizes = [[length, density, mean, *counts(length, density, mean)]
         for length in (2, 3, 5, 7, 10, 17, 30, 50, 64, 114, 512, 568, 4096)
         for density in (0.15, 0.05, 0.5, 0.9) for mean in (3.0, 1.0, 1.5, 10.0)]
texts = []
for length in (2, 3, 6, 9, 16, 23, 40):
    for density, mean in ((0.15, 3.0), (0.5, 3.0), (0.4, 2.0)):
        tokens, spans = counts(length, density, mean)
        if spans > len(SENTINELS):
            continue
        mask = noise_mask(length, tokens, spans)
        assert mask.sum() == tokens and not mask[0] and mask[-1]
        ids = numbers.integers(3, 90, length)
        texts.append({"ids": ids.tolist(), "mask": mask.astype(int).tolist(), "tokens": tokens, "spans": spans,
                      "source": with_sentinels(ids, mask), "target": with_sentinels(ids, ~mask)})
out = {"sentinels": SENTINELS, "end": END, "sizes": sizes, "texts": texts}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
