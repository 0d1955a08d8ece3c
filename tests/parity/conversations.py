"""Records what Transformers makes of conversations, for tests/components/data/jsonl_test.cpp.

usage: conversations.py FILE     writes tests/components/data/recorded/conversations.json; FILE: that file

The tokenizer is recipes/examples/data/tokenizer.json. For each format: the template, and of 60 conversations (with and
without a system message, several turns, empty contents, special tokens within the text) the ids of
apply_chat_template(tokenize=True) and which of them the loss counts: what the assistant says and the token that ends it.
"""
import json
import pathlib
import random
import sys

from transformers import PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parents[2]
TURN = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
SMOLLM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
DEFAULT = ("{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n" + SMOLLM
           + "<|im_end|>\n' }}{% endif %}")
TEMPLATES = {
    "chatml": "{% for message in messages %}" + TURN + "{% endfor %}" + PROMPT,
    "smollm2": "{% for message in messages %}" + DEFAULT + TURN + "{% endfor %}" + PROMPT,
}
WORDS = ["hello", "the", "answer", "is", "42", "naïve", "東京", "🙂", "\n", "\n\n", "  ", "<|im_end|>", "<|im_start|>",
         "user", "a\tb", "don't", "x=1;", "é", "ok."]


def content(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 9)))


def conversation(rng):
    messages = [{"role": "system", "content": content(rng)}] if rng.random() < 0.4 else []
    for _ in range(rng.randrange(1, 4)):
        messages += [{"role": "user", "content": content(rng)}, {"role": "assistant", "content": content(rng)}]
    return messages


def answers(messages, default):
    """Characters that the assistant writes, by what the template is said to write."""
    text, spans = "", []
    if default and messages[0]["role"] != "system":
        text += "<|im_start|>system\n" + default + "<|im_end|>\n"
    for message in messages:
        text += "<|im_start|>" + message["role"] + "\n"
        begin = len(text)
        text += message["content"] + "<|im_end|>"
        if message["role"] == "assistant":
            spans.append((begin, len(text)))
        text += "\n"
    return text, spans


def main():
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "recipes/examples/data/tokenizer.json"))
    rng = random.Random(7)
    recorded = {}
    for name, template in TEMPLATES.items():
        default = SMOLLM if name == "smollm2" else ""
        cases = []
        for _ in range(60):
            messages = conversation(rng)
            ids = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=True, return_dict=False)
            text, spans = answers(messages, default)
            assert text == tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
            encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            assert encoded["input_ids"] == ids
            counted = [i for i, (a, b) in enumerate(encoded["offset_mapping"])
                       if any(a < end and b > begin for begin, end in spans)]
            cases.append({"messages": messages, "ids": ids, "counted": counted})
        recorded[name] = {"template": template, "cases": cases}
    lines = [f'"{name}": {{"template": {json.dumps(of["template"])}, "cases": [\n'
             + ",\n".join(json.dumps(case) for case in of["cases"]) + "\n]}" for name, of in recorded.items()]
    pathlib.Path(sys.argv[1]).write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
