#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/source_tensors.h"
#include "runner/core/node.h"

namespace runner::checkpoint {

/// The frozen weights of a model with adapters, as `init_from` read them: its checkpoints name them, with a checksum,
/// and do not hold them.
class BaseWeights {
 public:
  /// `fills`: one for each tensor.
  BaseWeights(std::string source, std::vector<SourceTensor> fills, std::string checksum = "");

  const std::string& source() const { return source_; }  ///< file of tensors or index of shards, absolute
  const std::vector<SourceTensor>& fills() const { return fills_; }
  bool holds(const std::string& name) const;
  /// Of the tensors in the source: names, types, shapes and numbers. The first call reads them all. RunError when that
  /// fails.
  const std::string& checksum() const;

  /// For trainer.json, and back: nothing where it has no base.
  core::Node to_node() const;
  static std::shared_ptr<const BaseWeights> of_trainer(const core::Node& trainer, const std::string& path);
  /// The same for the checkpoint in a folder; nothing for a folder that is none.
  static std::shared_ptr<const BaseWeights> of_checkpoint(const std::string& folder);

  /// Copies the weights into the model. `elsewhere`: where they may be instead, as `init_from` names it; "" when it is
  /// not known.
  /// Errors  RunError (exit status 2): they are not there, or have changed since; then the model stays as it is.
  void load_into(const components::model::Model& model, const std::string& elsewhere) const;

 private:
  std::string source_;
  std::vector<SourceTensor> fills_;  ///< sorted by name
  mutable std::string checksum_;
};

/// Of the frozen weights of linear layers those that the source has in bfloat16: as such they lose nothing and take
/// half the memory. `fills` as InitWeights has them; the model has adapters, else there are none.
std::set<std::string> bf16_in_source(const std::vector<SourceTensor>& fills, const components::model::Model& model);

/// Those of the model, whose frozen parameters `init` fills as a whole; null for a model without adapters.
std::shared_ptr<const BaseWeights> base_of(const InitWeights& init, const components::model::Model& model);

}  // namespace runner::checkpoint
