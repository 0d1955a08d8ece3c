"""Small models of each type under the names that recipes/finetune has them by, in a cache as the Hub's.

usage: hub_models.py CACHE

The folders are those of tests/parity/models, with room for more tokens and positions: a plan reads shapes and no values.
"""

import json
import pathlib
import shutil
import struct
import sys

TREE = pathlib.Path(__file__).resolve().parents[3]
VOCABULARY, POSITIONS = 512, 2048
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}{% endif %}"
)
MODELS = {
    "meta-llama/Llama-3.2-1B-Instruct": "llama-llama3",
    "HuggingFaceTB/SmolLM2-360M-Instruct": "llama-grouped",
    "HuggingFaceTB/SmolLM2-1.7B-Instruct": "llama-grouped",
    "Qwen/Qwen2.5-1.5B-Instruct": "qwen2-tied",
    "Qwen/Qwen3-1.7B": "qwen3-default",
    "mistralai/Mistral-7B-Instruct-v0.3": "mistral-full",
    "mistralai/Mistral-7B-v0.3": "mistral-full",
    "microsoft/Phi-3-mini-4k-instruct": "phi3-default",
    "microsoft/Phi-4-mini-instruct": "phi3-part",
    "google/gemma-3-1b-it": "gemma3_text-default",
    "google/gemma-2-2b-it": "gemma2-default",
    "google/gemma-2b-it": "gemma-default",
    "allenai/OLMo-2-0425-1B-Instruct": "olmo2-default",
    "ibm-granite/granite-3.3-2b-instruct": "granite-default",
    "HuggingFaceTB/SmolLM3-3B": "smollm3-default",
    "openai-community/gpt2": "gpt2-default",
    "openai-community/gpt2-medium": "gpt2-default",
    "google-bert/bert-base-uncased": "bert-masked",
    "google-bert/bert-base-cased": "bert-masked",
    "FacebookAI/roberta-base": "roberta-masked",
    "distilbert/distilbert-base-uncased": "distilbert-masked",
    "answerdotai/ModernBERT-base": "modernbert-masked",
    "sentence-transformers/all-MiniLM-L6-v2": "bert-vectors",
    "google/flan-t5-base": "t5-gated",
    "google-t5/t5-small": "t5-default",
}
# Those that answer in the form of a template; the others have none.
CHAT = ("nstruct", "-it", "Qwen3", "SmolLM3")


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {
        name: (entry["dtype"], entry["shape"], data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]])
        for name, entry in header.items()
    }


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def with_rows(tensor, rows):
    dtype, shape, content = tensor
    row = len(content) // shape[0]
    return dtype, [rows, *shape[1:]], content + bytes(row * (rows - shape[0]))


def write_model(folder, source, is_chat):
    folder.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    tensors = read_safetensors(source / "model.safetensors")
    for name, tensor in tensors.items():
        if "position_embeddings" in name or "wpe" in name:
            tensors[name] = with_rows(tensor, POSITIONS)
        elif tensor[1] and tensor[1][0] == config["vocab_size"] and "mlp" not in name:
            tensors[name] = with_rows(tensor, VOCABULARY)
    config["vocab_size"] = VOCABULARY
    for key in ("max_position_embeddings", "n_positions"):
        if key in config:
            config[key] = POSITIONS
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", tensors)
    for extra in ("modules.json", "1_Pooling", "sentence_bert_config.json"):
        if (source / extra).is_dir():
            shutil.copytree(source / extra, folder / extra)
        elif (source / extra).exists():
            shutil.copy(source / extra, folder / extra)
    shutil.copy(TREE / "recipes/examples/data/tokenizer.json", folder)
    words = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "mask_token": "<|im_start|>"}
    if is_chat:
        words["chat_template"] = TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(words))


def main():
    cache = pathlib.Path(sys.argv[1])
    for name, source in MODELS.items():
        repository = cache / ("models--" + name.replace("/", "--"))
        write_model(repository / "snapshots" / COMMIT, TREE / "tests/parity/models" / source, any(c in name for c in CHAT))
        (repository / "refs").mkdir()
        (repository / "refs/main").write_text(COMMIT)


main()
