"""Records what seqeval 1.2.2 makes of random tags, topic entities.

    python3 tests/golden/vectors/entities.py > tests/golden/vectors/entities.json

A tag is its place among `tags`; -100 is none, of what is not the first token of a word. Sentences are those of one set.
"""

import json
import math
import random
import warnings

from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

warnings.simplefilter("ignore")
TYPES = ["LOC", "ORG", "PER", "ORG-X"]


def values(wanted, told, average, strict):
    options = {"mode": "strict", "scheme": IOB2} if strict else {}
    found = [float(score(wanted, told, average=average, zero_division=0, **options))
             for score in (f1_score, precision_score, recall_score)]
    return ["nan" if math.isnan(value) else round(value, 8) for value in found]


def sentence(draw, tags, length, order):
    """Of which `order` is the part that follows IOB2."""
    made = []
    for _ in range(length):
        tag = draw.choice(tags)
        if draw.random() < order and tag.startswith("I-"):
            behind = made and made[-1] != "O" and made[-1][2:] == tag[2:]
            tag = tag if behind else "B-" + tag[2:]
        made.append(tag)
    return made


def make(number):
    draw = random.Random(number)
    types = sorted(draw.sample(TYPES, draw.randint(1, len(TYPES))))
    tags = ["O"] + [f"{mark}-{name}" for name in types for mark in "BI"]
    if number % 9 == 0:
        tags = ["O"] * 1 + [f"B-{name}" for name in types]  # no word goes on
    order = draw.choice([0.0, 0.5, 1.0])
    wanted, told = [], []
    for _ in range(draw.randint(1, 9)):
        length = draw.randint(1, 9)
        wanted.append(["O"] * length if number % 17 == 3 else sentence(draw, tags, length, order))
        told.append([tag if draw.random() < 0.6 else draw.choice(tags) for tag in wanted[-1]])
        if number % 23 == 5:
            told[-1] = ["O"] * length
    expected = {}
    for strict in (False, True):
        if strict and number % 17 == 3 and all(tag == "O" for row in wanted + told for tag in row):
            continue
        for average in ("micro", "macro", "weighted"):
            block = f"{{type: entity_f1, average: {average}, strict: {str(strict).lower()}}}"
            expected[block] = values(wanted, told, average, strict)
    # What is not the first token of a word lies between the others.
    holes = [[draw.random() < 0.2 for _ in row] for row in wanted]

    def widened(rows):
        return [[cell for tag, hole in zip(row, here) for cell in [tags.index(tag)] + [-100] * hole]
                for row, here in zip(rows, holes)]

    return {"kind": "entities", "name": f"set {number}", "expected": expected,
            "input": {"tags": tags, "wanted": widened(wanted), "told": widened(told)}}


cases = [make(number) for number in range(200)]
print('{"topic": "entities", "source": "seqeval 1.2.2; written by entities.py",\n"fields": {"kind=entities": '
      '"the tag of each token, -100: none -> entity_f1, entity_precision, entity_recall of each block"},\n"cases": [')
print(",\n".join(json.dumps(case) for case in cases))
print("]}")
