"""Prints what the order of the sums can change in PowerSGD's results in fp16 (and, for the same gradients, in bf16).

usage: python ddp_comm_hooks_orders.py [DRAWS]    (the standard library alone)

Three ranks' numbers are added up in an order that depends on the place in the buffer, and each addition rounds. This
computes the case of ddp_comm_hooks.json that has three ranks and a wrapper, DRAWS times (20,000) with an order drawn
for each sum, and prints how far two results are apart at most, and how near the vector the nearest one is. The unit is
one rounding, 2^-11 in fp16 and 2^-8 in bf16, of a parameter's largest number.
"""

import json
import math
import pathlib
import random
import struct
import sys


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def fp16(x):
    return struct.unpack("e", struct.pack("e", x))[0]


def bf16(x):
    bits = struct.unpack("I", struct.pack("f", x))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", bits))[0]


class Mt19937:
    """torch's CPU generator."""

    def __init__(self, seed):
        self.state = [seed & 0xFFFFFFFF]
        for i in range(1, 624):
            self.state.append((1812433253 * (self.state[-1] ^ (self.state[-1] >> 30)) + i) & 0xFFFFFFFF)
        self.next, self.cached = 624, None

    def bits(self):
        if self.next == 624:
            m = self.state
            for k in range(624):
                y = (m[k] & 0x80000000) | (m[(k + 1) % 624] & 0x7FFFFFFF)
                m[k] = m[(k + 397) % 624] ^ (y >> 1) ^ (0x9908B0DF if y & 1 else 0)
            self.next = 0
        y = self.state[self.next]
        self.next += 1
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        return y ^ (y >> 18)

    def uniform(self):
        return (((self.bits() << 32) | self.bits()) & ((1 << 53) - 1)) / 2**53

    def normal(self):
        if self.cached is not None:
            value, self.cached = self.cached, None
            return value
        angle, radius = 2 * math.pi * self.uniform(), math.sqrt(-2 * math.log1p(-self.uniform()))
        self.cached = radius * math.sin(angle)
        return radius * math.cos(angle)


def flat(nested):
    return [x for item in nested for x in flat(item)] if isinstance(nested, list) else [float(nested)]


class PowerSgd:
    """Rank 1 with error feedback and warm start, on parameters [[6, 5], [6], [5, 6]]: the second is not compressed."""

    MATRICES = {2: (5, 6), 0: (6, 5)}  # in the order of the bucket

    def __init__(self, case, rounded, orders):
        self.grads, self.start = case["input"]["grads"], case["input"]["options"]["start_powerSGD_iter"]
        self.ranks, self.rounded, self.orders = case["input"]["num_processes"], rounded, orders
        generator = Mt19937(case["expected"]["q_seeds"][0])
        self.q = {k: [rounded(generator.normal()) for _ in range(m)] for k, (_, m) in self.MATRICES.items()}
        self.errors = [{} for _ in range(self.ranks)]

    def sum(self, parts):
        self.orders.shuffle(parts)
        total = parts[0]
        for part in parts[1:]:
            total = self.rounded(total + part)
        return total

    def dot(self, a, b):
        total = 0.0
        for x, y in zip(a, b):
            total = float32(total + float32(x * y))
        return self.rounded(total)

    def unit(self, vector):
        norm = self.rounded(math.sqrt(sum(x * x for x in vector)))
        return [self.rounded(x / norm) for x in vector]

    def steps(self):
        return [self.step(number, step) for number, step in enumerate(self.grads)]

    def step(self, number, step):
        own = [[[self.rounded(float32(x)) for x in flat(of_rank[k])] for k in range(3)] for of_rank in step]
        if number < self.start:
            return [[self.sum([self.rounded(g[k][j] / self.ranks) for g in own]) for j in range(len(own[0][k]))]
                    for k in range(3)]
        for gradients, errors in zip(own, self.errors):
            for k, error in errors.items():
                gradients[k] = [self.rounded(a + b) for a, b in zip(gradients[k], error)]
        result = [None, [self.rounded(self.sum([g[1][j] for g in own]) / self.ranks) for j in range(len(own[0][1]))],
                  None]
        for k, (n, m) in self.MATRICES.items():
            q = self.unit(self.q[k])
            p = self.unit([self.sum([self.dot(g[k][i * m:(i + 1) * m], q) for g in own]) for i in range(n)])
            self.q[k] = [self.rounded(self.sum([self.dot(g[k][j::m], p) for g in own]) / self.ranks)
                         for j in range(m)]
            result[k] = [self.rounded(p[i] * self.q[k][j]) for i in range(n) for j in range(m)]
        self.errors = [{k: [self.rounded(a - b) for a, b in zip(g[k], result[k])] for k in range(3)} for g in own]
        return result


def main():
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    vectors = json.loads((pathlib.Path(__file__).parent / "ddp_comm_hooks.json").read_text())
    case = next(c for c in vectors["cases"] if c["input"]["num_processes"] == 3 and c["input"]["wrapper"] == "fp16"
                and c["input"]["hook"] == "power_sgd")
    orders = random.Random(1)
    for name, rounded, unit in (("fp16", fp16, 2**-11), ("bf16", bf16, 2**-8)):
        runs = [PowerSgd(case, rounded, orders).steps() for _ in range(draws)]
        for step, of_step in enumerate(case["expected"]["result"]):
            for k in range(3):
                expected = flat(of_step[k])
                scale = max(abs(x) for x in expected) * unit
                apart = max(max(numbers) - min(numbers) for numbers in zip(*(run[step][k] for run in runs)))
                nearest = min(max(abs(a - b) for a, b in zip(run[step][k], expected)) for run in runs)
                near = f", nearest to the vector {nearest / scale:.2f}" if name == "fp16" else ""
                print(f"{name} step {step} parameter {k}: at most {apart / scale:.2f} apart{near}")


main()
