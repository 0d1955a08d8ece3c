#include "runner/pretrained/differences.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "runner/core/json.h"
#include "runner/pretrained/facts.h"

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

std::string windows_text(const Facts& facts) {
  const std::vector<std::int64_t> windows = facts.windows();
  if (std::all_of(windows.begin(), windows.end(), [](std::int64_t window) { return window == 0; })) return kUnset;
  if (std::equal(windows.begin() + 1, windows.end(), windows.begin())) return std::to_string(windows.front());
  std::string text;
  for (const std::int64_t window : windows) text += (text.empty() ? "" : ", ") + std::to_string(window);
  return "[" + text + "] by layer";
}

/// `of`: what the names of its fields begin with.
void add_rope(const Node& rope, const Facts& facts, const std::string& of, Fields& fields) {
  const std::string type = rope.find("rope_type")->as_string();
  const auto add = [&](const char* key, const std::string& otherwise = kUnset) {
    fields.emplace_back(of + key, text_of(find(rope, key), otherwise));
  };
  fields.emplace_back(of + "rope_type", type);
  add("rope_theta");
  add("partial_rotary_factor", "1");
  if (type == "default") return;
  add("factor");
  if (type == "linear") return;
  // What a scaling counts from; the dynamic one heeds the model's length alone.
  const Node* original = type == "dynamic" ? nullptr : find(rope, "original_max_position_embeddings");
  fields.emplace_back(of + "original_max_position_embeddings",
                      text_of(original != nullptr ? original : facts.find("positions")));
  if (type == "llama3") {
    for (const char* key : {"low_freq_factor", "high_freq_factor"}) add(key);
  }
  if (type == "longrope") {
    for (const char* key : {"short_factor", "long_factor", "attention_factor"}) add(key);
  }
  if (type == "yarn") {
    add("beta_fast", "32");
    add("beta_slow", "1");
    add("truncate", "true");
    for (const char* key : {"attention_factor", "mscale", "mscale_all_dim"}) add(key);
  }
}

/// By names of fields of `names`, whose configuration may be of another type of the same kind.
Fields fields_of(const Node& config, const Facts& names) {
  const Facts facts(config);
  Fields fields;
  for (const char* role : {"heads", "kv_heads", "activation", "norm_eps", "scaled_scores", "scaled_by_layer",
                           "experts.chosen", "experts.normalized"}) {
    const std::string field = names.field(role);
    const Node* value = facts.find(role);
    if (field.empty()) continue;
    if (value == nullptr && std::string_view(role) == "kv_heads") value = facts.find("heads");
    const std::string text = text_of(value);
    fields.emplace_back(field, std::string_view(role) == "activation" ? activation_of(text) : text);
  }
  // What not every type has a field for, by what it does.
  const auto add = [&fields](const char* what, double number) {
    const Node value = Node::floating(number);
    fields.emplace_back(what, text_of(&value));
  };
  const double usual = 1.0 / std::sqrt(static_cast<double>(facts.head())), scale = facts.scale_of_scores();
  const bool is_usual = facts.has("scaled_scores") || std::fabs(scale - usual) <= 1e-9 * usual;  // a field says that
  if (is_usual) {
    fields.emplace_back("scale of the scores", "1 / sqrt(head)");
  } else {
    add("scale of the scores", scale);
  }
  add("cap of the scores", facts.number("score_cap", 0));
  add("scale of the embeddings",
      facts.flag("scaled_embedding") ? std::sqrt(facts.number("width", 0)) : facts.number("embedding_scale", 1));
  add("scale of the branches", facts.number("residual_scale", 1));
  add("divisor of the logits", facts.number("logit_divisor", 1));
  add("cap of the logits", facts.number("logit_cap", 0));
  fields.emplace_back("factor of the norms", facts.text("norm") == "rms_plus_one" ? "1 + weight" : "weight");
  if (const Node* rotary = facts.find("rotary")) {
    std::string turned;
    for (const bool turns : facts.rotated()) turned += turns ? "1" : "0";
    fields.emplace_back("layers with rotary positions", turned.empty() ? "all" : turned);
    const Node *full = rotary->find(kFullAttention), *sliding = rotary->find(kSlidingAttention);
    add_rope(full != nullptr ? *full : *rotary, facts, "", fields);
    if (sliding != nullptr) add_rope(*sliding, facts, "sliding ", fields);
    fields.emplace_back("sliding_window", windows_text(facts));
  }
  return fields;
}

}  // namespace

std::vector<Difference> differences(const Node& here, const Node& there) {
  const Facts names(here);
  std::vector<Difference> found;
  if (names.has("rotary") != Facts(there).has("rotary")) return found;
  const Fields of_there = fields_of(there, names);
  for (const auto& one : fields_of(here, names)) {
    // Another type of scaling has other fields; that it is another says all.
    const auto at =
        std::find_if(of_there.begin(), of_there.end(), [&one](const auto& other) { return other.first == one.first; });
    if (at != of_there.end() && at->second != one.second) found.push_back({one.first, one.second, at->second});
  }
  return found;
}

}  // namespace runner::pretrained
