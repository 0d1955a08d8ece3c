#include "runner/pretrained/differences.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runner/core/json.h"
#include "runner/pretrained/config.h"

namespace runner::pretrained {
namespace {

using core::Node;
using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kUnset = "unset";

const Node* find(const Node& node, const char* key) {
  const Node* value = node.find(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

/// `10000` and `10000.0` are one number.
std::string text_of(const Node* value, const std::string& otherwise = kUnset) {
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->as_string();
  if (!value->is_number()) return core::to_json(*value, -1);
  const double number = value->as_double();
  const auto whole = static_cast<std::int64_t>(number);
  return core::to_json(static_cast<double>(whole) == number ? Node::integer(whole) : Node::floating(number), -1);
}

/// Names of one function by the first of them.
std::string activation_of(const std::string& name) {
  constexpr std::pair<const char*, const char*> kSame[] = {{"gelu_python", "gelu"},
                                                           {"gelu_pytorch_tanh", "gelu_new"},
                                                           {"gelu_python_tanh", "gelu_new"},
                                                           {"gelu_fast", "gelu_new"},
                                                           {"swish", "silu"}};
  const auto* const at =
      std::find_if(std::begin(kSame), std::end(kSame), [&](const auto& s) { return name == s.first; });
  return at != std::end(kSame) ? at->second : name;
}

std::string windows_text(const Node& config) {
  const std::vector<std::int64_t> windows = windows_of(config);
  if (std::all_of(windows.begin(), windows.end(), [](std::int64_t window) { return window == 0; })) return kUnset;
  if (std::equal(windows.begin() + 1, windows.end(), windows.begin())) return std::to_string(windows.front());
  std::string text;
  for (const std::int64_t window : windows) text += (text.empty() ? "" : ", ") + std::to_string(window);
  return "[" + text + "] by layer";
}

void add_rope(const Node& config, Fields& fields) {
  const Node& rope = *config.find("rope_parameters");
  const std::string type = rope.find("rope_type")->as_string();
  fields.emplace_back("rope_type", type);
  fields.emplace_back("rope_theta", text_of(find(rope, "rope_theta")));
  if (type == "default") return;
  fields.emplace_back("factor", text_of(find(rope, "factor")));
  if (type == "linear") return;
  // What a scaling counts from; the dynamic one heeds the model's length alone.
  const Node* original = type == "dynamic" ? nullptr : find(rope, "original_max_position_embeddings");
  fields.emplace_back("original_max_position_embeddings",
                      text_of(original != nullptr ? original : find(config, "max_position_embeddings")));
  if (type == "llama3") {
    for (const char* key : {"low_freq_factor", "high_freq_factor"}) fields.emplace_back(key, text_of(find(rope, key)));
  }
  if (type == "yarn") {
    fields.emplace_back("beta_fast", text_of(find(rope, "beta_fast"), "32"));
    fields.emplace_back("beta_slow", text_of(find(rope, "beta_slow"), "1"));
    fields.emplace_back("truncate", text_of(find(rope, "truncate"), "true"));
    for (const char* key : {"attention_factor", "mscale", "mscale_all_dim"}) {
      fields.emplace_back(key, text_of(find(rope, key)));
    }
  }
}

Fields fields_of(const Node& config) {
  Fields fields;
  const auto add = [&](const char* key) { fields.emplace_back(key, text_of(find(config, key))); };
  const auto add_activation = [&](const char* key) {
    fields.emplace_back(key, activation_of(text_of(find(config, key))));
  };
  if (config.find("model_type")->as_string() == "gpt2") {
    add("n_head");
    add_activation("activation_function");
    for (const char* key : {"layer_norm_epsilon", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"}) add(key);
    return fields;
  }
  const std::string heads = text_of(find(config, "num_attention_heads"));
  fields.emplace_back("num_attention_heads", heads);
  fields.emplace_back("num_key_value_heads", text_of(find(config, "num_key_value_heads"), heads));
  add_activation("hidden_act");
  add("rms_norm_eps");
  add_rope(config, fields);
  fields.emplace_back("sliding_window", windows_text(config));
  return fields;
}

}  // namespace

std::vector<Difference> differences(const Node& here, const Node& there) {
  const auto is_gpt2 = [](const Node& config) { return config.find("model_type")->as_string() == "gpt2"; };
  std::vector<Difference> found;
  if (is_gpt2(here) != is_gpt2(there)) return found;
  const Fields of_there = fields_of(there);
  for (const auto& one : fields_of(here)) {
    // Another type of scaling has other fields; that it is another says all.
    const auto at =
        std::find_if(of_there.begin(), of_there.end(), [&one](const auto& other) { return other.first == one.first; });
    if (at != of_there.end() && at->second != one.second) found.push_back({one.first, one.second, at->second});
  }
  return found;
}

}  // namespace runner::pretrained
