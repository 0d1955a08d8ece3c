"""Records windows of questions and the answers that logits of them give, as Transformers' examples run_qa.py and
utils_qa.py compute both (prepare_train_features, postprocess_qa_predictions): recorded/answers.json of
tests/components/data/language.

usage: answers.py [--check]
"""

import json
import pathlib
import sys

import numpy
from transformers import PreTrainedTokenizerFast

TESTS = pathlib.Path(__file__).resolve().parents[2] / "components"
RECORDED = TESTS / "data" / "language" / "recorded" / "answers.json"
TOKENIZERS = ("bert.json", "cased.json")
LENGTH, STRIDE = 16, 4
N_BEST, LONGEST = 20, 30
CONTEXT = "the people of the world, we the people of the world of the people: the wörld of people."
RECORDS = [
    {"id": "a", "question": " who of the people", "context": CONTEXT, "answers": {"text": ["wörld of"], "answer_start": [70]}},
    {"id": "b", "question": "we", "context": "the people of the world", "answers": {"text": ["people", "the people"], "answer_start": [4, 0]}},
    {"id": "c", "question": "of the", "context": CONTEXT, "answers": {"text": [], "answer_start": []}},
    {"id": "d", "question": "the people", "context": CONTEXT, "answers": {"text": ["the people of the world"], "answer_start": [0]}},
]


def windows_of(tokenizer, record):
    encoded = tokenizer(record["question"].lstrip(), record["context"], truncation="only_second", max_length=LENGTH,
                        stride=STRIDE, return_overflowing_tokens=True, return_offsets_mapping=True)
    answers, windows = record["answers"], []
    for number, ids in enumerate(encoded["input_ids"]):
        origins = encoded.sequence_ids(number)
        offsets = [list(place) if origin == 1 else None
                   for place, origin in zip(encoded["offset_mapping"][number], origins)]
        span = [0, 0]
        if answers["text"]:
            begin = answers["answer_start"][0]
            end = begin + len(answers["text"][0])
            first, last = origins.index(1), len(origins) - 1 - origins[::-1].index(1)
            if offsets[first][0] <= begin and offsets[last][1] >= end:
                # Not behind the context, where the example may go.
                while first <= last and offsets[first][0] <= begin:
                    first += 1
                while offsets[last][1] >= end:
                    last -= 1
                span = [first - 1, last + 1]
        windows.append({"ids": ids, "offsets": offsets, "span": span})
    return windows


def answer(record, windows, logits, may_have_none):
    """Text and score."""
    none, found = None, []
    for window, (starts, ends) in zip(windows, logits):
        null = starts[0] + ends[0]
        none = null if none is None else min(none, null)
        for first in numpy.argsort(starts)[-1:-N_BEST - 1:-1].tolist():
            for last in numpy.argsort(ends)[-1:-N_BEST - 1:-1].tolist():
                if window["offsets"][first] is None or window["offsets"][last] is None:
                    continue
                if last < first or last - first + 1 > LONGEST:
                    continue
                found.append((starts[first] + ends[last], window["offsets"][first][0], window["offsets"][last][1]))
    found.sort(key=lambda one: one[0], reverse=True)
    score, begin, end = found[0]
    if may_have_none and none > score:
        return {"text": "", "score": float(none)}
    return {"text": record["context"][begin:end], "score": float(score)}


def cases():
    generator = numpy.random.default_rng(7)
    for file in TOKENIZERS:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TESTS / "tokenizer" / "files" / file))
        for record in RECORDS:
            windows = windows_of(tokenizer, record)
            logits = [[numpy.float32(generator.normal(size=len(window["ids"])).round(3)) for _ in range(2)]
                      for window in windows]
            for side in (0, 1):
                for window in logits if record["id"] == "c" else []:
                    window[side][0] += numpy.float32(4)  # that there is no answer
            yield {"file": file, "record": record, "windows": windows,
                   "logits": [[[round(float(one), 3) for one in side] for side in window] for window in logits],
                   "answer": answer(record, windows, logits, False), "or_none": answer(record, windows, logits, True)}


def main(words):
    text = json.dumps({"max_length": LENGTH, "stride": STRIDE, "cases": list(cases())}, ensure_ascii=False) + "\n"
    if words == ["--check"]:
        print("done" if RECORDED.read_text() == text else "answers.json differs")
        return RECORDED.read_text() != text
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
