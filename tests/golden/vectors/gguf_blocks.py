"""Records the blocks that PyPI's gguf makes of random rows, topic gguf_blocks.

    python3 tests/golden/vectors/gguf_blocks.py > tests/golden/vectors/gguf_blocks.json

Needs gguf 0.19.0 and numpy. Numbers are float32 as hexadecimal digits of their bytes.
"""

import json

import gguf
import numpy

TYPES = {"f16": gguf.GGMLQuantizationType.F16, "bf16": gguf.GGMLQuantizationType.BF16,
         "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}


def rows(number):
    draw = numpy.random.default_rng(number)
    values = draw.standard_normal((2, 64)).astype(numpy.float32) * numpy.float32(10.0 ** draw.integers(-6, 3))
    if number % 4 == 1:  # ties, and both signs of the largest
        values = numpy.round(values / values.max() * 8).astype(numpy.float32) / numpy.float32(8)
    if number % 4 == 2:
        values[0, :32] = 0
    if number % 4 == 3:
        values[1] = -numpy.abs(values[1])
    return values


cases = []
for word, kind in TYPES.items():
    for number in range(12):
        values = rows(number)
        blocks = gguf.quants.quantize(values, kind)
        back = gguf.quants.dequantize(blocks, kind)
        cases.append({"kind": "blocks", "name": f"{word} {number}", "input": {"type": word, "values": values.tobytes().hex()},
                      "expected": {"blocks": blocks.tobytes().hex(), "back": back.astype(numpy.float32).tobytes().hex()}})
print(json.dumps({"topic": "gguf_blocks", "source": "gguf 0.19.0",
                  "fields": {"blocks": "what gguf.quants.quantize makes of rows, and dequantize of that; exact"},
                  "cases": cases}))
