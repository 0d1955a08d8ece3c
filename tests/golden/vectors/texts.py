"""Records what sacrebleu 2.6.0, rouge-score 0.1.2 and torchmetrics 1.9.0 make of random texts, topic texts.

    python3 tests/golden/vectors/texts.py > tests/golden/vectors/texts.json
"""

import json
import random

import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from torchmetrics.functional.text import squad

WORDS = ["the", "a", "an", "The", "cat", "cats", "sat", "on", "mat", "mat.", "U.S.", "3.14", "1,000", "don't", "co-op", "Ärger",
         "naïve", "ÉTÉ", "东京", "\u212aelvin", "x\u2014y", "(b)", "[c]", "$5", "&amp;", "&lt;tag&gt;", "...", "5-3", "-\n", "#1", "_", "\u00a0z",
         "a_b", "İ", "e\u0301", "\t", "'quoted'", "A,b", ",", ".", "٣", "½", "🙂"]
scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])


def text(draw, most):
    return draw.choice([" ", " ", "  ", "\n"]).join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def changed(draw, words):
    made = [draw.choice(WORDS) if draw.random() < 0.3 else word for word in words.split(" ") if draw.random() < 0.9]
    return " ".join(made)


def make(number):
    draw = random.Random(number)
    most = draw.choice([3, 8, 20])
    right = [text(draw, most) for _ in range(draw.randint(1, 7))]
    told = [one if draw.random() < 0.2 else changed(draw, one) for one in right]
    if number % 19 == 7:
        told = [""] * len(right)
    rouge = [scorer.score(one, other) for one, other in zip(right, told)]
    answers = squad([{"prediction_text": one, "id": str(i)} for i, one in enumerate(told)],
                    [{"answers": {"answer_start": [0], "text": [one]}, "id": str(i)} for i, one in enumerate(right)])
    expected = {
        "bleu": [sacrebleu.corpus_bleu(told, [right]).score],
        "rouge": [sum(one[name].fmeasure for one in rouge) / len(rouge) for name in ("rouge1", "rouge2", "rougeL")],
        "squad_f1": [float(answers["f1"]), float(answers["exact_match"])],
    }
    expected = {name: [float(f"{value:.8g}") for value in values] for name, values in expected.items()}
    return {"kind": "texts", "name": f"set {number}", "input": {"told": told, "right": right}, "expected": expected}


cases = [make(number) for number in range(200)]
print('{"topic": "texts", "source": "sacrebleu 2.6.0, rouge-score 0.1.2, torchmetrics 1.9.0; written by texts.py",\n'
      '"fields": {"kind=texts": "generated texts and their references -> the values of each metric"},\n"cases": [')
print(",\n".join(json.dumps(case) for case in cases))
print("]}")
