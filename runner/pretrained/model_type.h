#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"

namespace runner::pretrained {

/// A field of a configuration, as Transformers has it.
struct Field {
  enum class Use { kRead, kNone, kOnly };
  std::string name;
  Use use = Use::kNone;            ///< the model is made by it, it changes nothing, or it may only be its `value`
  std::vector<std::string> types;  ///< JSON's: "integer", "number", "string", "boolean", "object", "array", "null"
  std::optional<double> minimum, maximum, exclusive_minimum, exclusive_maximum;
  core::Node value;  ///< its default; of kOnly the one that is taken
};

/// One tensor of the model and what it is made of in Transformers: one tensor, or several that are joined along their
/// first dimension. `{i}` stands for the number of a block.
struct WeightRule {
  std::string name;
  std::vector<std::string> from;
  bool transposed = false;  ///< stored as inputs by outputs
  bool else_zeros = false;  ///< a bias that Transformers always has: zeros for a model without it
};

/// The kinds of layers that `layer_types` of a configuration names.
inline constexpr const char *kFullAttention = "full_attention", *kSlidingAttention = "sliding_attention";

/// What roux knows of a `model_type`: components/model/types/<model_type>.json, with the fields of common.json, which
/// every configuration may have.
struct ModelType {
  std::string name, architecture;
  std::string prefix;  ///< of the base model's names, which files saved without the head lack
  core::Node decoder;  ///< by role (runner/pretrained/facts.h): the field of the configuration, or a value
  std::vector<std::string> adapter_targets;  ///< layers that LoRA adapts where none are named, as PEFT has them
  std::vector<WeightRule> weights;
  std::vector<std::string> ignored;  ///< tensors of a file that are not taken: roux computes them
  std::vector<Field> fields;
  std::vector<std::string> metadata;  ///< fields that say nothing of the model; `*` stands for any text

  const Field* field(std::string_view name) const;
};

/// Null for a type that roux does not know.
const ModelType* find_model_type(std::string_view name);
/// Of a recipe's model: that of a `transformers` model's configuration; `gpt` has the names of gpt2 and `llama` those
/// of llama. Null for another model.
const ModelType* model_type_of(const core::Node& model);
/// Those it knows, sorted.
std::vector<std::string> model_types();

/// `h.{i}.ln_1.weight` with a number in place of `{i}`.
std::string with_number(const std::string& pattern, std::int64_t number);
/// Whether `name` is the pattern with some number, and which; -1 for a pattern without one.
std::optional<std::int64_t> number_in(std::string_view pattern, std::string_view name);

}  // namespace runner::pretrained
