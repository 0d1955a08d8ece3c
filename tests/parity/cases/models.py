"""Configurations of the models that ../make.py writes."""

VOCABULARY = 40

GPT2 = {"vocab_size": VOCABULARY, "n_positions": 20, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 24,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "bos_token_id": 1,
         "eos_token_id": 2}
THREE = {"num_hidden_layers": 3, "pad_token_id": None}
WIDE_HEADS = {**LLAMA, "num_attention_heads": 2, "num_key_value_heads": 1}  # 8 features: 4 frequencies
BERT = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 24, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0}
DISTILBERT = {"vocab_size": VOCABULARY, "dim": 16, "hidden_dim": 20, "n_layers": 2, "n_heads": 4,
              "max_position_embeddings": 24, "dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0}
MODERNBERT = {"vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 4,
              "num_attention_heads": 2, "max_position_embeddings": 24, "pad_token_id": 3, "local_attention": 6,
              "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
MIXTRAL = {**LLAMA, "pad_token_id": None, "num_local_experts": 4, "num_experts_per_tok": 2}
QWEN3_MOE = {**LLAMA, "head_dim": 6, "moe_intermediate_size": 12, "num_experts": 5, "num_experts_per_tok": 2}
BALANCED = {"output_router_logits": True, "router_aux_loss_coef": 0.3}
T5 = {"vocab_size": VOCABULARY, "d_model": 16, "d_kv": 6, "d_ff": 20, "num_layers": 2, "num_heads": 4,
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12, "dropout_rate": 0.0,
      "pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}


def rope(kind, theta=100.0, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **more}}


# A folder's name is the model_type up to the first dash. A new one goes to the end: seeds follow from the order.
CASES = {
    "gpt2-default": {**GPT2, "n_inner": None},
    "gpt2-relu-inverse-layer": {**GPT2, "activation_function": "relu", "scale_attn_by_inverse_layer_idx": True},
    "gpt2-gelu-unscaled": {**GPT2, "activation_function": "gelu", "scale_attn_weights": False,
                           "layer_norm_epsilon": 1e-3},
    "gpt2-untied": {**GPT2, "tie_word_embeddings": False},
    "gpt2-bare": GPT2,
    "llama-grouped": LLAMA,
    "llama-multi-query-tied": {**LLAMA, "num_key_value_heads": 1, "tie_word_embeddings": True},
    "llama-biases": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "llama-head-dim": {**LLAMA, "head_dim": 6, "rms_norm_eps": 1e-3},
    "llama-gelu": {**LLAMA, "hidden_act": "gelu"},
    "llama-pad-token": {**LLAMA, "pad_token_id": 3},  # the text holds it, too
    "llama-linear": {**WIDE_HEADS, **rope("linear", factor=4.0)},
    "llama-dynamic": {**WIDE_HEADS, "max_position_embeddings": 10, **rope("dynamic", factor=3.0)},
    "llama-yarn": {**WIDE_HEADS, **rope("yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=2.0,
                                        beta_slow=0.25)},
    "llama-llama3": {**WIDE_HEADS, **rope("llama3", factor=4.0, original_max_position_embeddings=24,
                                          low_freq_factor=1.0, high_freq_factor=2.0)},
    "llama-version4-sharded": {**WIDE_HEADS, "torch_dtype": "bfloat16", "rope_theta": 500.0,
                               "rope_scaling": {"type": "linear", "factor": 2.0}},
    "mistral-window": {**LLAMA, "sliding_window": 6},
    "mistral-full": {**LLAMA, "sliding_window": None, "head_dim": 6},
    "qwen2-default": LLAMA,
    "qwen2-window": {**LLAMA, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
    "qwen2-layer-types": {**LLAMA, "use_sliding_window": True, "sliding_window": 6,
                          "layer_types": ["sliding_attention", "full_attention"]},
    "qwen2-tied": {**LLAMA, "tie_word_embeddings": True},
    "qwen3-default": {**LLAMA, "head_dim": 6},
    "qwen3-window": {**LLAMA, "head_dim": 4, "attention_bias": True, "use_sliding_window": True, "sliding_window": 6,
                     "max_window_layers": 1, "tie_word_embeddings": True},
    "olmo2-default": {**LLAMA, "pad_token_id": None},
    "granite-default": {**LLAMA, "attention_bias": True, "mlp_bias": True, "embedding_multiplier": 3.0,
                        "attention_multiplier": 0.3, "residual_multiplier": 0.4, "logits_scaling": 2.5},
    "smollm3-default": {**LLAMA, **THREE, "no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": 6},
    "smollm3-listed": {**LLAMA, **THREE, "no_rope_layers": [0, 1, 1], "attention_bias": True, "mlp_bias": True},
    "phi3-default": {**LLAMA, "pad_token_id": None, "sliding_window": 6},
    "phi3-longrope": {**WIDE_HEADS, "pad_token_id": None, "original_max_position_embeddings": 10,
                      **rope("longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0])},
    "phi3-part": {**WIDE_HEADS, "pad_token_id": None, "partial_rotary_factor": 0.5},
    "gemma-default": {**LLAMA, "head_dim": 6, "pad_token_id": None},
    "gemma2-default": {**LLAMA, **THREE, "head_dim": 6, "query_pre_attn_scalar": 5, "sliding_window": 6,
                       "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0},
    "gemma3_text-default": {**LLAMA, **THREE, "head_dim": 6, "query_pre_attn_scalar": 5, "sliding_window": 6,
                            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                            "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0,
                                                                   "rope_theta": 200.0},
                                                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}}},
    "smollm3-types": {**LLAMA, "pad_token_id": None, "sliding_window": 6,
                      "layer_types": ["sliding_attention", "full_attention"]},
    "gemma3_text-capped": {**LLAMA, "head_dim": 6, "pad_token_id": None, "query_pre_attn_scalar": 5,
                           "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"],
                           "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    "gpt2-texts": {**GPT2, "pad_token_id": 3, "num_labels": 3},
    "gpt2-tags": {**GPT2, "classifier_dropout": 0.0, "num_labels": 5},
    "llama-texts": {**LLAMA, "pad_token_id": 3, "num_labels": 2, "problem_type": "regression"},
    "llama-tags": {**LLAMA, "classifier_dropout": 0.0, "num_labels": 3},
    "bert-texts": {**BERT, "num_labels": 3},
    "bert-tags": {**BERT, "num_labels": 5, "hidden_act": "relu", "layer_norm_eps": 1e-3},
    "bert-masked": BERT,
    "roberta-texts": {**BERT, "num_labels": 2, "problem_type": "regression", "pad_token_id": 3, "type_vocab_size": 1},
    "roberta-tags": {**BERT, "num_labels": 3, "pad_token_id": 1},
    "roberta-masked": {**BERT, "pad_token_id": 3},
    "distilbert-texts": {**DISTILBERT, "num_labels": 3},
    "distilbert-tags": {**DISTILBERT, "num_labels": 4, "pad_token_id": 5},
    "distilbert-masked": {**DISTILBERT, "activation": "relu"},
    "modernbert-texts": {**MODERNBERT, "num_labels": 3},
    "modernbert-texts-mean": {**MODERNBERT, "num_labels": 3, "classifier_pooling": "mean", "classifier_bias": True,
                              "norm_bias": True, "attention_bias": True, "mlp_bias": True,
                              "classifier_activation": "silu", "layer_types": ["sliding_attention", "full_attention"],
                              "num_hidden_layers": 2},
    "modernbert-tags": {**MODERNBERT, "num_labels": 4, "global_attn_every_n_layers": 2, "global_rope_theta": 300.0,
                        "local_rope_theta": 70.0},
    "modernbert-masked": {**MODERNBERT, "tie_word_embeddings": False},
    "modernbert-masked-tied": {**MODERNBERT, "decoder_bias": False, "local_attention": 7},
    "t5-default": {**T5, "num_decoder_layers": 3},
    "t5-gated": {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "layer_norm_epsilon": 1e-3},
    "t5-silu": {**T5, "feed_forward_proj": "gated-silu", "num_layers": 1, "pad_token_id": 3,
                "decoder_start_token_id": 4},
    "bert-vectors": BERT,
    "roberta-vectors": {**BERT, "pad_token_id": 3, "type_vocab_size": 1},
    "distilbert-vectors": DISTILBERT,
    "modernbert-vectors": MODERNBERT,
    "llama-vectors": LLAMA,
    "bert-spans": BERT,
    "roberta-spans": {**BERT, "pad_token_id": 3, "type_vocab_size": 1},
    "distilbert-spans": {**DISTILBERT, "qa_dropout": 0.0},
    "modernbert-spans": MODERNBERT,
    "bert-choices": BERT,
    "roberta-choices": {**BERT, "pad_token_id": 3, "type_vocab_size": 1},
    "distilbert-choices": DISTILBERT,
    "modernbert-choices": MODERNBERT,
    "mixtral-default": MIXTRAL,
    "mixtral-balanced": {**MIXTRAL, **BALANCED, "sliding_window": 6, "tie_word_embeddings": True, "pad_token_id": 3},
    "qwen3_moe-default": QWEN3_MOE,
    "qwen3_moe-balanced": {**QWEN3_MOE, **BALANCED, **THREE, "norm_topk_prob": True, "num_experts_per_tok": 3},
    "qwen3_moe-sparse": {**QWEN3_MOE, **THREE, **BALANCED, "decoder_sparse_step": 2, "attention_bias": True,
                         "use_sliding_window": True, "sliding_window": 6},
    "mixtral-stacked": {**MIXTRAL, "num_experts_per_tok": 1, "hidden_act": "gelu"},  # as it is in memory
    "qwen3_moe-plain-layers": {**QWEN3_MOE, **THREE, "mlp_only_layers": [0, 2], "num_experts_per_tok": 1},
    "t5-unscaled": {**T5, "feed_forward_proj": "gated-gelu", "scale_decoder_outputs": False},  # tied, as a new 1.1 is
}

# Of folders of Sentence Transformers: texts of a record, the pooling, whether vectors have length 1.
VECTORS = {
    "bert-vectors": (3, "mean", True),
    "roberta-vectors": (2, "cls", True),
    "distilbert-vectors": (2, "mean", False),
    "modernbert-vectors": (2, "mean", True),
    "llama-vectors": (2, "last", True),
}

# Choices of a record.
CHOICES = {"bert-choices": 3, "roberta-choices": 2, "distilbert-choices": 3, "modernbert-choices": 2}
