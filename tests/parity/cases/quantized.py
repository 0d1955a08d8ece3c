"""The cases of make_adapters.py whose model bitsandbytes keeps in 4 or 8 bits."""

import torch

NF4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": torch.float32}
FP4 = NF4 | {"bnb_4bit_quant_type": "fp4"}
TWICE = NF4 | {"bnb_4bit_use_double_quant": True}
QUANTIZED = {  # by case and file, as transformers.BitsAndBytesConfig has it
    "bert-tags": {"quantized": NF4 | {"llm_int8_skip_modules": ["classifier"]}},
    "gpt2-default": {"quantized": NF4, "quantized8": {"load_in_8bit": True}},
    "gpt2-dora": {"quantized": TWICE},
    "llama-all-linear-rslora": {"quantized": TWICE, "quantized8": {"load_in_8bit": True, "llm_int8_threshold": 2.0}},
    "llama-default": {"quantized": FP4},
    "phi3-all-linear": {"quantized": NF4},
    "qwen2-dora": {"quantized": NF4},
    "qwen3-default": {"quantized": FP4, "quantized8": {"load_in_8bit": True, "llm_int8_threshold": 0.0}},
    "t5-all-linear": {"quantized": NF4},
}


def mend_bitsandbytes():
    """Its kernel for the CPU reads wrong scales where rows are not whole blocks, which its plain form does not."""
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute, _get_4bit_code

    def plain(packed, absmax, blocksize, quant_type, shape, dtype):
        code = _get_4bit_code(quant_type, packed.device)
        return _dequantize_4bit_compute(packed.reshape(-1).view(torch.uint8), absmax, code, blocksize, shape, dtype)

    library = torch.library.Library("bitsandbytes", "IMPL")
    library.impl("dequantize_4bit", plain, "CPU", allow_override=True)
    return library
