#include "runner/checkpoint/config_check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runner/core/text/utf8.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/differences.h"
#include "runner/pretrained/model_config.h"
#include "runner/pretrained/model_type.h"

namespace runner::checkpoint {
namespace {

using core::Node;

/// What Transformers calls so is called here.
struct Key {
  const char *field, *key;
};
constexpr Key kOfLlama[] = {{"num_attention_heads", "n_head"},
                            {"num_key_value_heads", "n_kv_head"},
                            {"hidden_act", "activation"},
                            {"rms_norm_eps", "norm_eps"},
                            {"rope_theta", "rotary_base"},
                            {"sliding_window", "sliding_window"},
                            {"rope_type", "rope_scaling.rope_type"},
                            {"factor", "rope_scaling.factor"},
                            {"original_max_position_embeddings", "rope_scaling.original_max_position_embeddings"},
                            {"low_freq_factor", "rope_scaling.low_freq_factor"},
                            {"high_freq_factor", "rope_scaling.high_freq_factor"},
                            {"beta_fast", "rope_scaling.beta_fast"},
                            {"beta_slow", "rope_scaling.beta_slow"},
                            {"attention_factor", "rope_scaling.attention_factor"}};
constexpr Key kOfGpt[] = {{"n_head", "n_head"}};

/// The key below `model`; "" when the model has none.
std::string key_of(const std::string& type, const std::string& field) {
  const auto in = [&](const auto& keys) -> std::string {
    const auto* const at =
        std::find_if(std::begin(keys), std::end(keys), [&](const Key& k) { return field == k.field; });
    return at != std::end(keys) ? at->key : "";
  };
  if (type == "transformers") return "config." + field;
  return type == "llama" ? in(kOfLlama) : type == "gpt" ? in(kOfGpt) : "";
}

std::string type_of(const Node& recipe) {
  const Node* type = recipe.at_path("model.type");
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

}  // namespace

const pretrained::ModelType* transformers_type(const Node& recipe) {
  const Node* model = recipe.find("model");
  return model != nullptr && model->is_mapping() ? pretrained::model_type_of(*model) : nullptr;
}

void warn_of_differences(const Node& recipe, const components::NamedTensors& model, const std::string& folder,
                         core::Diagnostics& diagnostics) {
  const std::string file = pretrained::config_of_folder(folder), type = type_of(recipe);
  const Node* block = recipe.find("model");
  if (file.empty() || block == nullptr) return;
  const auto shape_of = [&](const std::string& name) -> std::vector<std::int64_t> {
    const auto at = std::find_if(model.begin(), model.end(), [&](const auto& tensor) { return tensor.name == name; });
    return at != model.end() ? at->tensor.sizes().vec() : std::vector<std::int64_t>{};
  };
  core::Diagnostics refused;
  // The configuration itself: a longest text that is overridden changes no scaling.
  const core::Result<Node> here =
      type == "transformers" ? *block->find("config") : pretrained::config_of_recipe(recipe, shape_of);
  if (!here) return;  // which no weights of Transformers fit
  const std::optional<Node> there = pretrained::read_config(file, refused);
  if (!there) {
    diagnostics.warning(block->location(),
                        "the model is not compared with " + file + ", which roux does not compute: " +
                            core::escape_for_terminal(refused.all().front().message),
                        "make sure that it computes the same");
    return;
  }
  for (const pretrained::Difference& difference : pretrained::differences(here.value(), *there)) {
    const std::string key = key_of(type, difference.field);
    const Node* written = key.empty() ? nullptr : block->at_path(key);
    const bool known = written != nullptr && written->location().known();
    const std::string named = key.empty() ? "the model's " + difference.field : "model." + key;
    diagnostics.warning(
        known ? written->location() : block->location(),
        core::escape_for_terminal(named + " is " + difference.here + ", but " + file + " has " + difference.field +
                                  " " + difference.there + ": the model will compute something else of its weights"),
        "leave `model` out to take that of the folder" +
            (key.empty() ? "" : core::escape_for_terminal(", or set " + named + " to " + difference.there)));
  }
}

}  // namespace runner::checkpoint
