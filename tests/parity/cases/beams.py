"""Records what Transformers generates with beams, and with tokens left out, for tests/golden/torch.

usage: beams.py [--check]

Writes tests/components/generation/recorded/beams.json; --check compares with what is committed. Of each model and settings the texts of PROMPTS, up to the
end token, those of one prompt after each other. A batch of prompts with padding has to give the texts of each prompt
alone, unless tokens of the prompt count: there padding counts, too. Texts that float64 has others of depend on rounding
and are refused.
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

PARITY = pathlib.Path(__file__).resolve().parents[1]
OUTPUT = PARITY.parent / "components/generation/recorded/beams.json"
LENGTHS = (16, 3, 9, 1, 12)  # of the prompts, which are beginnings of the model's records
PADDING = 0

# Models, and tokens that end a text.
MODELS = [("llama-grouped", [2]), ("llama-grouped", [2, 5, 11]), ("qwen3-window", [2, 7]), ("t5-default", [1]),
          ("t5-default", [1, 8, 24]), ("t5-gated", [1, 9])]

# Beside 4 beams and 30 new tokens.
SETTINGS = [
    {},
    {"length_penalty": 2.0},
    {"length_penalty": 0.6},
    {"length_penalty": -1.0, "early_stopping": "never"},
    {"early_stopping": True},
    {"early_stopping": True, "length_penalty": 2.0},
    {"early_stopping": "never"},
    {"early_stopping": "never", "length_penalty": 2.0},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 1, "max_new_tokens": 12},
    {"min_new_tokens": 9},
    {"min_new_tokens": 5, "no_repeat_ngram_size": 3, "repetition_penalty": 1.3},
    {"num_return_sequences": 3},
    {"num_return_sequences": 4, "length_penalty": 0.6, "early_stopping": "never"},
    {"num_beams": 2, "num_return_sequences": 2},
    {"num_beams": 7, "num_return_sequences": 5, "early_stopping": True, "max_new_tokens": 20},
    {"num_beams": 1, "no_repeat_ngram_size": 2, "min_new_tokens": 12},
    {"num_beams": 1, "no_repeat_ngram_size": 3},
]
COUNTS_PROMPT = ("no_repeat_ngram_size", "repetition_penalty")


def read_prompts(folder):
    rows = [json.loads(line)["input_ids"] for line in (folder / "ids.jsonl").read_text().splitlines()]
    return [row[:length] for row, length in zip(rows, LENGTHS, strict=True)]


def texts_of(model, prompts, end_ids, settings):
    """Of prompts in one batch: new tokens up to the end token."""
    has_encoder = model.config.is_encoder_decoder
    longest = max(len(prompt) for prompt in prompts)
    ids, mask = [], []
    for prompt in prompts:
        padding = longest - len(prompt)
        ids.append(prompt + [PADDING] * padding if has_encoder else [PADDING] * padding + prompt)
        real = [1] * len(prompt)
        mask.append(real + [0] * padding if has_encoder else [0] * padding + real)
    config = GenerationConfig(**{"num_beams": 4, "max_new_tokens": 30, **settings}, do_sample=False,
                              eos_token_id=end_ids, pad_token_id=PADDING, decoder_start_token_id=PADDING,
                              use_cache=not has_encoder)  # its cache has no room for a decoder with more layers
    made = model.generate(torch.tensor(ids), attention_mask=torch.tensor(mask), generation_config=config)
    texts = []
    for row in made[:, 1 if has_encoder else longest:].tolist():
        end = next((place + 1 for place, token in enumerate(row) if token in end_ids), len(row))
        texts.append(row[:end])
    return texts


def record(name, end_ids):
    folder = PARITY / "models" / name
    prompts = read_prompts(folder)
    kind = AutoModelForSeq2SeqLM if name.startswith("t5-") else AutoModelForCausalLM
    models = [kind.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
              for dtype in (torch.float32, torch.float64)]
    searches = []
    for settings in SETTINGS:
        texts, exact = ([text for prompt in prompts for text in texts_of(model, [prompt], end_ids, settings)]
                        for model in models)
        if texts != exact:
            raise SystemExit(f"{name} {end_ids} {settings}: texts depend on rounding")
        has_encoder = models[0].config.is_encoder_decoder
        if has_encoder or not any(key in settings for key in COUNTS_PROMPT):
            if texts_of(models[0], prompts, end_ids, settings) != texts:
                raise SystemExit(f"{name} {end_ids} {settings}: a batch has other texts")
        searches.append({"settings": settings, "texts": texts})
    return {"model": name, "end_ids": end_ids, "prompts": prompts, "searches": searches}


def as_text(cases):
    lines = []
    for case in cases:
        head = json.dumps({key: value for key, value in case.items() if key != "searches"})[:-1]
        rows = ",\n".join(f'   {{"settings": {json.dumps(search["settings"])}, "texts": [\n'
                          + ",\n".join(f"    {json.dumps(text)}" for text in search["texts"]) + "]}"
                          for search in case["searches"])
        lines.append(f' {head}, "searches": [\n{rows}]}}')
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main(words):
    torch.set_num_threads(1)
    disable_progress_bar()
    set_verbosity_error()
    text = as_text([record(*model) for model in MODELS])
    if "--check" not in words:
        OUTPUT.write_text(text)
    elif OUTPUT.read_text() != text:
        print(f"{OUTPUT} differs")
        return 1
    ended = [text[-1] in case["end_ids"] for case in json.loads(text) for search in case["searches"]
             for text in search["texts"]]
    print(f"{len(ended)} texts, {sum(ended)} with an end token")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
