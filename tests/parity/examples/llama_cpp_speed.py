"""Decoding of weights in 4 and 8 bits beside llama.cpp, on two threads, in interleaved rounds.

usage: examples/llama_cpp_speed.py ROUX FOLDER PACKAGES [--rounds 3] [--tokens 100] [--output FILE.json]

FOLDER, PACKAGES  as for llama_cpp.py. Needs PyPI's gguf, which writes llama.cpp's file: the linear layers in Q4_0 or Q8_0, and
                  the embedding, which the head shares, in BF16. roux keeps the same weights in nf4 or in int8

The bytes of weights that a token reads are told for both, and have to be equal to 5 %. It fails where roux decodes fewer
than 0.9 times (4 bits) or 1.0 times (8 bits) as many tokens a second.
"""
import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy

FIRST = "The capital of France is"
FORMS = {"4 bits": ("Q4_0", "load_in_4bit: true, bnb_4bit_quant_type: nf4", 0.9),
         "8 bits": ("Q8_0", "load_in_8bit: true, llm_int8_threshold: 0", 1.0)}


def call(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more)


def write_file(source, target, kind):
    """The float32 file of roux once more, with its matrices in that type. Returns the bytes of its weights."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], inner)
    size = 0
    for tensor in reader.tensors:
        values = numpy.array(tensor.data)
        as_type = gguf.GGMLQuantizationType.F32
        if values.ndim == 2:
            as_type = gguf.GGMLQuantizationType["BF16" if tensor.name == "token_embd.weight" else kind]
        packed = gguf.quantize(values, as_type)
        size += packed.nbytes
        writer.add_tensor(tensor.name, packed, raw_dtype=as_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return size


def bytes_of_roux(folder, form):
    """The linear layers as bitsandbytes keeps them, and all others in bfloat16."""
    name = next(Path(folder).glob("*.safetensors"))
    with open(name, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    size = 0
    for tensor, told in header.items():
        if tensor == "__metadata__":
            continue
        count = int(numpy.prod(told["shape"]))
        if len(told["shape"]) < 2 or "embed" in tensor:
            size += 2 * count
        elif "4bit" in form:
            size += count // 2 + 4 * (count // 64)
        else:
            size += count + 4 * told["shape"][0]
    return size


def main():
    parser = argparse.ArgumentParser()
    for name in ("roux", "folder", "packages"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--output")
    options = parser.parse_args()
    roux = Path(options.roux).resolve()
    result, problems = {}, []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        call(roux, "export", options.folder, folder / "whole.gguf", "--type", "f32")
        ids = json.loads(call(roux, "tokenizer", "encode", options.folder, "--no-special-tokens", "--format", "json",
                              input=FIRST).stdout)["ids"]
        for what, (kind, form, least) in FORMS.items():
            theirs = write_file(folder / "whole.gguf", folder / f"{kind}.gguf", kind)
            ours = bytes_of_roux(options.folder, form)
            rates = {"roux": [], "llama.cpp": []}
            for _ in range(options.rounds):
                told = call(roux, "generate", options.folder, "--prompt", FIRST, "--max-new-tokens", options.tokens,
                            "--precision", "bf16-mixed", "--eos-token-id", 0, f"quantization={{{form}}}").stderr
                rates["roux"].append(float(re.search(r"generated: \d+ tokens \(([0-9.]+) tokens/s\)", told)[1]))
                rates["llama.cpp"].append(float(call("node", Path(__file__).with_name("llama_cpp_speed.mjs"), options.packages,
                                                     folder / f"{kind}.gguf", 2, options.tokens, *ids).stdout))
            times = statistics.median(rates["roux"]) / statistics.median(rates["llama.cpp"])
            result[what] = {"file": kind, "bytes_a_token": {"roux": ours, "llama.cpp": theirs}, "tokens_per_s": rates,
                            "times": times}
            if abs(ours / theirs - 1) > 0.05:
                problems.append(f"{what}: {ours} and {theirs} bytes a token")
            if times < least:
                problems.append(f"{what}: {times:.2f} times llama.cpp, {least} is the least")
    result |= {"model": Path(options.folder).name, "machine": platform.processor() or platform.machine(),
               "commit": call("git", "-C", Path(__file__).parent, "rev-parse", "--short=12", "HEAD").stdout.strip(),
               "problems": problems}
    print(json.dumps(result, indent=1))
    if options.output:
        Path(options.output).write_text(json.dumps(result, indent=1) + "\n")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
