#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "components/part/linear.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components::adapter {

/// A layer that may be adapted: a linear layer of a block, or one of several that are joined in it.
struct Target {
  std::string name;    ///< what its adapter is called: `h.0.attn_qkv.q_proj`
  std::string module;  ///< in Transformers: `model.layers.0.self_attn.q_proj`; "" for a model that it does not have
  part::NamedLinear owner;          ///< `h.0.attn_qkv`
  std::int64_t block = 0;           ///< number of the block among those with layers
  std::int64_t first = 0, out = 0;  ///< its outputs among the owner's
};

/// All of a model, in order; empty for one without such layers.
std::vector<Target> all_targets(const model::Model& model, const runner::core::Node& model_block);

/// What chooses layers, as PEFT reads it: a list of names, which match a whole name or its last parts, or a string, a
/// regular expression that a whole name matches. Names are those of Transformers and of roux.
class TargetNames {
 public:
  /// `key`: for messages. `value`: a string or a list of strings.
  TargetNames(const char* key, const runner::core::Node& value, const std::vector<Target>& all,
              runner::core::Diagnostics& diagnostics);
  /// By position, whether the layer is chosen. Reports an expression that is none and names of no layer.
  std::vector<bool> chosen() const;

 private:
  bool by_name(const std::string& text, const Target& target) const;
  std::vector<bool> by_expression() const;
  void tell_unused(const runner::core::Node& name) const;
  std::string hint(const std::string& text) const;

  const char* key_;
  const runner::core::Node& value_;
  const std::vector<Target>& all_;
  runner::core::Diagnostics& diagnostics_;
};

}  // namespace components::adapter
