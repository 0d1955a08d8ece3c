#include "runner/pretrained/config.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/pretrained/differences.h"
#include "tests/support/cost.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace runner::pretrained {
namespace {

using tests::TempDir;

/// The messages for a config.json of this text, without excerpts, F in place of its path; "" when it is taken.
std::string answer(const TempDir& dir, const std::string& text) {
  const std::string path = dir / "config.json";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  std::string messages;
  tests::check_cost_of_refusal([&] {
    core::Diagnostics diagnostics;
    const auto config = read_config(path, diagnostics);
    CHECK(config.has_value() != diagnostics.has_errors());
    core::RenderOptions options;
    options.excerpts = false;
    messages = core::render(diagnostics, options);
  });
  for (std::size_t at; (at = messages.find(path)) != std::string::npos;) messages.replace(at, path.size(), "F");
  return messages;
}

std::string llama(const std::string& fields) { return R"({"model_type": "llama", )" + fields + "}"; }
std::string mixtral(const std::string& fields) { return R"({"model_type": "mixtral", )" + fields + "}"; }
std::string qwen3_moe(const std::string& fields) { return R"({"model_type": "qwen3_moe", )" + fields + "}"; }
std::string gpt2(const std::string& fields) { return R"({"model_type": "gpt2", )" + fields + "}"; }
std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("a damaged or hostile configuration is refused at its field", "[pretrained][config]") {
  struct Case {
    const char* name;
    std::string text;
    std::string message;  ///< what the first error says, after its place
  };
  const std::string huge = "1" + std::string(400, '0');
  const Case cases[] = {
      {"empty", "", ""},
      {"no JSON", "hello", ""},
      {"cut off", R"({"model_type": "llama", "hidden_size": )", ""},
      {"not UTF-8", "{\"model_type\": \"\xff\"}", ""},
      {"a key twice", llama(R"("vocab_size": 1, "vocab_size": 2)"), ""},
      {"deep", "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}", ""},
      {"too long", "{\"a\": \"" + std::string(5 << 20, 'x') + "\"}", ""},
      {"very many values", llama("\"label2id\": [" + repeated("0,", 900'000) + "0]"), ""},
      {"very many fields", llama(repeated("\"_\": 0, ", 200'000) + "\"__\": 0"), ""},
      {"a list", "[]", "a configuration is an object, and this is a list"},
      {"no type", "{}", "the configuration has no model_type"},
      {"type no name", R"({"model_type": 3})", "model_type is 3, not a name"},
      {"unknown type", R"({"model_type": "electra"})", "model_type is \"electra\", which roux does not read"},
      {"a type that speaks to the terminal", R"({"model_type": "\u001b[2J"})", "model_type is "},
      {"missing by null", llama(R"("hidden_size": null)"), "hidden_size is null, but has to be integer"},
      {"negative", llama(R"("num_hidden_layers": -1)"), "num_hidden_layers is -1, but has to be at least 1"},
      {"zero", gpt2(R"("n_head": 0)"), "n_head is 0, but has to be at least 1"},
      {"huge", llama(R"("hidden_size": 9223372036854775807)"),
       "hidden_size is 9223372036854775807, but has to be at most 1048576"},
      {"beyond 64 bits", llama(R"("vocab_size": 99999999999999999999)"), ""},
      {"vocabulary of int64", llama(R"("vocab_size": 9223372036854775807)"),
       "vocab_size is 9223372036854775807, but has to be at most 2147483647"},
      {"a thousand million layers", gpt2(R"("n_layer": 1000000000)"),
       "n_layer is 1000000000, but has to be at most 10000"},
      {"infinite", llama("\"rms_norm_eps\": 1e999"), ""},
      {"more experts of a token than experts", mixtral(R"("num_experts_per_tok": 9)"),
       "num_experts_per_tok is 9, but there are 8 experts (num_local_experts)"},
      {"no experts", qwen3_moe(R"("num_experts": 0)"), "num_experts is 0, but has to be at least 1"},
      {"no experts of a token", mixtral(R"("num_experts_per_tok": 0)"),
       "num_experts_per_tok is 0, but has to be at least 1"},
      {"a thousand million experts", qwen3_moe(R"("num_experts": 1000000000)"),
       "num_experts is 1000000000, but has to be at most 65536"},
      {"two numbers of experts", qwen3_moe(R"("num_experts": 8, "num_local_experts": 4)"),
       "num_local_experts is 4 and num_experts is 8, which are one field in Transformers"},
      {"jitter", mixtral(R"("router_jitter_noise": 0.1)"),
       "router_jitter_noise is 0.1, and roux computes such a mixtral with 0.0 only"},
      {"a sparse step of nothing", qwen3_moe(R"("decoder_sparse_step": 0)"),
       "decoder_sparse_step is 0, but has to be at least 1"},
      {"a plain layer beyond the last one", qwen3_moe(R"("mlp_only_layers": [0, 24])"),
       "a layer of mlp_only_layers is 24, but has to be a number from 0 to 23"},
      {"a plain layer that is no number", qwen3_moe(R"("mlp_only_layers": ["all"])"),
       "a layer of mlp_only_layers is \"all\", but has to be a number from 0 to 23"},
      {"a balance of nothing", qwen3_moe(R"("decoder_sparse_step": 30, "output_router_logits": true)"),
       "output_router_logits is true, but no layer has a mixture of experts"},
      {"a number of 400 digits", llama("\"rms_norm_eps\": " + huge + ".0"), ""},
      {"a fraction", llama(R"("num_attention_heads": 4.5)"), "num_attention_heads is 4.5, but has to be integer"},
      {"a text", llama(R"("hidden_size": "4096")"), "hidden_size is \"4096\", but has to be integer"},
      {"an object", gpt2(R"("n_embd": {})"), "n_embd is an object, but has to be integer"},
      {"a list for a number", gpt2(R"("layer_norm_epsilon": [1])"),
       "layer_norm_epsilon is a list, but has to be number"},
      {"a number for a flag", llama(R"("tie_word_embeddings": 1)"), "tie_word_embeddings is 1, but has to be boolean"},
      {"heads that do not divide", llama(R"("hidden_size": 10, "num_attention_heads": 4)"),
       "num_attention_heads is 4, which does not divide hidden_size 10"},
      {"odd heads", llama(R"("hidden_size": 12, "num_attention_heads": 4)"),
       "rotary positions turn pairs of features, but a head has 3"},
      {"shared heads that do not divide",
       llama(R"("hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 3)"),
       "num_key_value_heads is 3, which does not divide num_attention_heads 4"},
      {"rotary no object", llama(R"("rope_parameters": [])"), "rope_parameters is a list, but has to be "},
      {"rotary type no name", llama(R"("rope_parameters": {"rope_type": 1})"), "rope_type is 1, not a name"},
      {"unknown rotary type", llama(R"("rope_scaling": {"type": "spiral"})"),
       "rope_type is \"spiral\", which roux does not compute"},
      {"windows of some layers that are not used",
       R"({"model_type": "qwen3", "num_hidden_layers": 1, "layer_types": ["sliding_attention"]})",
       "layer_types has sliding_attention, but use_sliding_window is false"},
      {"a scale of nothing", R"({"model_type": "granite", "attention_multiplier": 0})",
       "attention_multiplier is 0, but has to be more than 0"},
      {"longrope without its factors", llama(R"("rope_scaling": {"type": "longrope"})"),
       "rope_type \"longrope\" needs short_factor"},
      {"rotary without its factor", llama(R"("rope_scaling": {"type": "linear"})"),
       "rope_type \"linear\" needs factor"},
      {"negative factor", llama(R"("rope_scaling": {"type": "linear", "factor": -2})"),
       "factor is -2, but has to be at least 1"},
      {"huge factor", llama(R"("rope_scaling": {"type": "linear", "factor": 1e300})"),
       "factor is 1e300, but has to be "},
      {"negative base", llama(R"("rope_parameters": {"rope_theta": -1})"), "rope_theta is -1, but has to be "},
      {"layer types of another count",
       R"({"model_type": "qwen2", "num_hidden_layers": 2, "layer_types": ["full_attention"]})",
       "layer_types names 1 layers, but num_hidden_layers is 2"},
      {"layer types of numbers", R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": [1]})",
       "a layer type is 1, which roux does not compute"},
      {"weights in an unknown form", llama(R"("quantization_config": {"bits": 4})"),
       "quantization_config does not say how the weights are quantized: no quant_method"},
      {"weights of gptq", llama(R"("quantization_config": {"quant_method": "gptq", "bits": 4})"),
       "the weights are quantized by gptq, and roux reads those of bitsandbytes only"},
      {"no object", llama(R"("quantization_config": 4)"), "quantization_config is 4, not an object"},
      {"neither 4 nor 8 bits", llama(R"("quantization_config": {"quant_method": "bitsandbytes"})"),
       "quantization_config has to say one of load_in_4bit and load_in_8bit"},
      {"another type of 4 bits",
       llama(R"("quantization_config": {"load_in_4bit": true, "bnb_4bit_quant_type": "int4"})"),
       "bnb_4bit_quant_type is \"int4\", and roux reads nf4 and fp4"},
      {"an unknown field of 4 bits", llama(R"("quantization_config": {"load_in_4bit": true, "llm_int4_x": 1})"),
       "\"llm_int4_x\" is not a field of Transformers' BitsAndBytesConfig: what it does to the weights is unknown"},
      {"a threshold of text", llama(R"("quantization_config": {"load_in_8bit": true, "llm_int8_threshold": "6"})"),
       "llm_int8_threshold is \"6\", but has to be a number"},
      {"an unknown field", llama(R"("wings": 2)"),
       "\"wings\" is not a field of llama in Transformers 5.24: what it does to the model is unknown"},
  };
  const TempDir dir;
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string messages = answer(dir, c.text);
    INFO(messages.substr(0, 400));
    CHECK(messages.starts_with("F:"));
    CHECK(messages.find("error: " + c.message) != std::string::npos);
    CHECK(messages.find('\x1b') == std::string::npos);
    CHECK(messages.size() < 20'000);
  }
}

TEST_CASE("what was read is read again as it is", "[pretrained][config]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tests::source_dir() + "/tests/parity/models")) {
    INFO(entry.path());
    core::Diagnostics diagnostics;
    const auto config = read_config(entry.path().string() + "/config.json", diagnostics);
    REQUIRE(config);
    const auto again = check_config(*config, diagnostics);
    REQUIRE(again);
    CHECK(core::to_json(*again) == core::to_json(*config));
    CHECK(differences(*config, *again).empty());
    ++count;
  }
  CHECK(count >= 36);
}

TEST_CASE("configurations that ask for another function differ in a field", "[pretrained][differences]") {
  const auto read = [](const std::string& text) {
    core::Diagnostics diagnostics;
    const auto config = check_config(core::parse_json(text).value(), diagnostics);
    INFO(core::render(diagnostics));
    REQUIRE(config);
    return *config;
  };
  const auto between = [&](const std::string& here, const std::string& there) {
    std::string text;
    for (const Difference& d : differences(read(here), read(there)))
      text += d.field + " " + d.here + " " + d.there + "; ";
    return text;
  };
  CHECK(between(llama(R"("rope_theta": 10000)"), llama(R"("rope_parameters": {"rope_theta": 10000.0})")) == "");
  CHECK(between(llama(R"("rope_theta": 1e6)"), llama("\"vocab_size\": 9")) == "rope_theta 1000000 10000; ");
  CHECK(between(llama("\"initializer_range\": 0.5, \"attention_dropout\": 0.5"), llama("\"vocab_size\": 9")) == "");
  CHECK(between(gpt2(R"("activation_function": "gelu_pytorch_tanh")"), gpt2("\"vocab_size\": 9")) == "");
  CHECK(between(gpt2(R"("activation_function": "relu", "n_head": 4)"), gpt2("\"vocab_size\": 9")) ==
        "n_head 4 12; activation_function relu gelu_new; ");
  // A mistral whose window is off is a llama.
  CHECK(between(R"({"model_type": "mistral", "sliding_window": null, "num_key_value_heads": 32})",
                llama(R"("rms_norm_eps": 1e-6, "max_position_embeddings": 4096)")) == "");
  CHECK(
      between(llama("\"num_hidden_layers\": 2"),
              R"({"model_type": "mistral", "sliding_window": 7, "num_key_value_heads": 32, "num_hidden_layers": 2})") ==
      "sliding_window unset 7; ");
  const std::string yarn = R"("rope_scaling": {"type": "yarn", "factor": 4.0)";
  CHECK(
      between(llama(yarn + "}, \"max_position_embeddings\": 64"),
              llama(yarn +
                    R"(, "original_max_position_embeddings": 64, "beta_fast": 32}, "max_position_embeddings": 256)")) ==
      "");
  CHECK(between(llama(yarn + ", \"original_max_position_embeddings\": 64}"),
                llama(yarn + ", \"original_max_position_embeddings\": 32, \"mscale\": 1.0}")) ==
        "original_max_position_embeddings 64 32; mscale unset 1; ");
  CHECK(between(llama("\"vocab_size\": 9"), gpt2("\"vocab_size\": 9")) == "");
  // What was added to a configuration of version 5 takes the place of its rope_parameters, with their rope_theta; an
  // empty one does not. Transformers 5, convert_rope_params_to_dict().
  const std::string both = R"(, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5})";
  CHECK(between(llama(yarn + "}" + both), llama(yarn + "}")) == "");
  CHECK(between(llama(yarn + "}, \"rope_theta\": 7e5" + both), llama(yarn + ", \"rope_theta\": 7e5}")) == "");
  CHECK(between(llama(R"("rope_scaling": {})" + both), llama(R"("vocab_size": 32000)" + both)) == "");
  CHECK(between(llama(R"("rope_scaling": null)" + both), llama(R"("vocab_size": 32000)" + both)) == "");
  // Of other types, by what they do.
  const auto tiny = [](const std::string& type, const std::string& fields) {
    return R"({"model_type": ")" + type +
           R"(", "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 4, )" +
           R"("head_dim": 4, "rms_norm_eps": 1e-6, "num_hidden_layers": 2)" + fields + "}";
  };
  CHECK(between(tiny("llama", ""), tiny("granite", R"(, "attention_multiplier": 0.5)")) == "");
  CHECK(between(tiny("llama", ""), tiny("granite", R"(, "attention_multiplier": 0.25, "residual_multiplier": 0.5)")) ==
        "scale of the scores 1 / sqrt(head) 0.25; scale of the branches 1 0.5; ");
  CHECK(between(tiny("llama", R"(, "hidden_act": "gelu_pytorch_tanh")"), tiny("gemma", "")) ==
        "scale of the embeddings 1 4; factor of the norms weight 1 + weight; ");
  CHECK(between(tiny("llama", R"(, "rope_theta": 2e6)"), tiny("smollm3", R"(, "no_rope_layers": [0, 1])")) ==
        "layers with rotary positions all 01; ");
  // A phi3's own field goes before that of its scaling; of gemma3 `rope_scaling` is added to what is there.
  const std::string factors = R"("type": "longrope", "short_factor": [1, 1], "long_factor": [1, 2])";
  CHECK(between(tiny("phi3", R"(, "original_max_position_embeddings": 13, "rope_scaling": {)" + factors +
                                 R"(, "original_max_position_embeddings": 10})"),
                tiny("phi3", R"(, "original_max_position_embeddings": 13, "rope_scaling": {)" + factors + "}")) == "");
  CHECK(between(tiny("gemma3_text", R"(, "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_parameters": )"
                                    R"({"full_attention": {"rope_type": "default", "rope_theta": 33.0}})"),
                tiny("gemma3_text", R"(, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, )"
                                    R"("rope_theta": 33.0}})")) == "");
}

}  // namespace
}  // namespace runner::pretrained
