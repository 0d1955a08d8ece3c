"""Records what Transformers makes of conversations, for tests/components/data/language/jsonl_test.cpp.

usage: conversations.py TEMPLATES FILE     writes tests/components/data/recorded/conversations.json; FILE: that file
       needs `pip install xxhash`

TEMPLATES is a folder of the chat templates of real models, FORMAT.jinja or FORMAT-N.jinja for each format of roux
(components/tokenizer/chat). They are their owners', so that only hashes are recorded, of all but the two that are
written below.

The tokenizer is recipes/examples/data/tokenizer.json with the special tokens of all formats. For each template and 200
conversations (with and without a system message, several turns, empty contents, special tokens within the text, white
space around it) it records `refused`, or FNV-1a of: the text of apply_chat_template, the text with
add_generation_prompt, the ids of tokenize=True, and which of them the loss counts: what the assistant says and the token
that ends it. Of the first conversations of each it records the ids and places themselves.
"""
import json
import pathlib
import random
import re
import sys
import tempfile

import jinja2
import xxhash
from transformers import PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
TURN = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
SMOLLM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
DEFAULT = ("{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n" + SMOLLM
           + "<|im_end|>\n' }}{% endif %}")
WRITTEN = {
    "chatml": "{% for message in messages %}" + TURN + "{% endfor %}" + PROMPT,
    "smollm2": "{% for message in messages %}" + DEFAULT + TURN + "{% endfor %}" + PROMPT,
}
CONVERSATIONS, IN_FULL = 200, 8
WORDS = ["hello", "the", "answer", "is", "42", "naïve", "東京", "🙂", "\n", "\n\n", "  ", "<|im_end|>", "<|im_start|>",
         "user", "a\tb", "don't", "x=1;", "é", "ok.", "</s>", "[INST]", "<|eot_id|>", "\u00a0", "\u3000", "\u2028", "<s>"]
TOKENS = ["<s>", "</s>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "[INST]",
          "[/INST]"]
# Beginning and end of what the assistant writes, as the text around a marker shows it.
ENDS = {"chatml": "<|im_end|>", "smollm2": "<|im_end|>", "qwen2": "<|im_end|>", "qwen2_5": "<|im_end|>",
        "llama2": " </s>", "llama3": "<|eot_id|>", "llama3_1": "<|eot_id|>", "mistral": "</s>", "mistral_v0_1": "</s>",
        "mistral_v0_2": "</s>", "mistral_v3": "</s>", "mistral_nemo": "</s>", "zephyr": "</s>"}
STARTS = {"llama2": " ", "mistral": " ", "mistral_v3": " "}
PAIRS = {"llama2": ("<s>", "</s>"), "zephyr": ("<s>", "</s>"), "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
         "llama3_1": ("<|begin_of_text|>", "<|eot_id|>")}
ALWAYS_PROMPTS = "8f20b9eda669ce10b97891b7adc1beb8"  # the first template of Llama 3 writes the prompt in any case
DATE = "26 Jul 2024"  # of Llama 3.1, and of later templates where they are given no other


def special(name):
    if name.startswith("mistral"):
        return "<s>", "</s>"
    return PAIRS.get(name, ("<|im_start|>", "<|im_end|>"))


def content(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.choice([0, 1, 2, 3, 5, 8])))


def conversation(rng):
    messages = [{"role": "system", "content": content(rng)}] if rng.random() < 0.4 else []
    for _ in range(rng.randrange(1, 4)):
        messages += [{"role": "user", "content": content(rng)}, {"role": "assistant", "content": content(rng)}]
    kind = rng.random()
    if kind < 0.15:
        messages.pop()  # a question without its answer
    elif kind < 0.25:
        messages.insert(rng.randrange(1, len(messages) + 1), {"role": "user", "content": content(rng)})
    return messages


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data if isinstance(data, bytes) else data.encode():
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return value


def digest(value):
    return f"{fnv(value) & 0xffffffff:08x}"


def spaced(numbers):
    return " ".join(map(str, numbers))


def tokenizer_with(folder):
    of_examples = json.loads((ROOT / "recipes/examples/data/tokenizer.json").read_text())
    first = max(max(of_examples["model"]["vocab"].values()), max(t["id"] for t in of_examples["added_tokens"])) + 1
    for number, token in enumerate(TOKENS):
        of_examples["added_tokens"].append({"id": first + number, "content": token, "single_word": False,
                                            "lstrip": False, "rstrip": False, "normalized": False, "special": True})
    file = pathlib.Path(folder) / "tokenizer.json"
    file.write_text(json.dumps(of_examples))
    return PreTrainedTokenizerFast(tokenizer_file=str(file)), [t for t in of_examples["added_tokens"] if t["id"] >= first]


def rendered(tokenizer, messages, template, **more):
    return tokenizer.apply_chat_template(messages, chat_template=template, date_string=DATE, **more)


def answers(tokenizer, name, messages, template):
    """Characters that the assistant writes: the text up to each answer is that of the messages before, with a prompt."""
    spans, prefix = [], "\u0001"
    marked = [dict(m, content=prefix + str(i) + prefix) if m["role"] == "assistant" else m for i, m in enumerate(messages)]
    text = rendered(tokenizer, marked, template, tokenize=False)
    shift = 0
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        mark = prefix + str(i) + prefix
        stripped = message["content"].strip() if name in ("llama2", "llama3", "llama3_1") else message["content"]
        at = text.index(mark)
        begin, end = at + shift - len(STARTS.get(name, "")), at + shift + len(stripped) + len(ENDS[name])
        assert text[at + len(mark):].startswith(ENDS[name]), (name, text)
        spans.append((begin, end))
        shift += len(stripped) - len(mark)
    return spans


def record(tokenizer, name, template, conversations):
    tokenizer.bos_token, tokenizer.eos_token = special(name)
    always = xxhash.xxh3_128_hexdigest(template.encode()) == ALWAYS_PROMPTS
    cases = []
    for messages in conversations:
        try:
            text = rendered(tokenizer, messages, template, tokenize=False)
        except jinja2.exceptions.TemplateError:
            cases.append("refused")
            continue
        prompted = rendered(tokenizer, messages, template, tokenize=False, add_generation_prompt=True)
        ids = rendered(tokenizer, messages, template, tokenize=True, return_dict=False)
        if always:  # without the prompt, as the second template has it
            text = text.removesuffix("<|start_header_id|>assistant<|end_header_id|>\n\n")
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        spans = answers(tokenizer, name, messages, template)
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        assert encoded["input_ids"] == ids
        counted = [i for i, (a, b) in enumerate(encoded["offset_mapping"])
                   if any(a < end and b > begin for begin, end in spans)]
        hashed = "".join(digest(part) for part in (text, prompted, spaced(ids), spaced(counted)))
        cases.append([hashed, ids, counted] if len(cases) < IN_FULL else hashed)
    return cases


def main():
    templates = {name: [text] for name, text in WRITTEN.items()}
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        templates.setdefault(re.sub(r"-\d+$", "", file.stem), []).append(file.read_text())
    rng = random.Random(7)
    conversations = [conversation(rng) for _ in range(CONVERSATIONS)]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer, added = tokenizer_with(folder)
        lines = []
        for name, texts in templates.items():
            of_each = [record(tokenizer, name, text, conversations) for text in texts]
            assert all(cases == of_each[0] for cases in of_each), name  # forms of one template
            bos, eos = special(name)
            of = {"bos": bos, "eos": eos}
            if name in WRITTEN:
                of["template"] = WRITTEN[name]
            lines.append(f'"{name}": {json.dumps(of)[:-1]}, "cases": [\n'
                         + ",\n".join(json.dumps(c, separators=(",", ":")) for c in of_each[0]) + "\n]}")
    whole = ('{"added_tokens": ' + json.dumps(added) + ',\n"conversations": [\n'
             + ",\n".join(json.dumps([[m["role"], m["content"]] for m in c], ensure_ascii=False, separators=(",", ":"))
                          for c in conversations)
             + '\n],\n"formats": {' + ",\n".join(lines) + "}}\n")
    pathlib.Path(sys.argv[2]).write_text(whole)


if __name__ == "__main__":
    main()
