"""The cases of make_adapters.py whose model bitsandbytes keeps in 4 bits."""

import torch

QUANTIZED = {  # as transformers.BitsAndBytesConfig has it
    "gpt2-default": {"bnb_4bit_quant_type": "nf4"},
    "gpt2-dora": {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
    "llama-all-linear-rslora": {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
    "llama-default": {"bnb_4bit_quant_type": "fp4"},
    "phi3-all-linear": {"bnb_4bit_quant_type": "nf4"},
    "qwen2-dora": {"bnb_4bit_quant_type": "nf4"},
    "qwen3-default": {"bnb_4bit_quant_type": "fp4"},
    "bert-tags": {"bnb_4bit_quant_type": "nf4", "llm_int8_skip_modules": ["classifier"]},
    "t5-all-linear": {"bnb_4bit_quant_type": "nf4"},
}


def mend_bitsandbytes():
    """Its kernel for the CPU reads wrong scales where rows are not whole blocks, which its plain form does not."""
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute, _get_4bit_code

    def plain(packed, absmax, blocksize, quant_type, shape, dtype):
        code = _get_4bit_code(quant_type, packed.device)
        return _dequantize_4bit_compute(packed.reshape(-1), absmax, code, blocksize, shape, dtype)

    library = torch.library.Library("bitsandbytes", "IMPL")
    library.impl("dequantize_4bit", plain, "CPU", allow_override=True)
    return library
