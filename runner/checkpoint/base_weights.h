#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "runner/artifact/base_record.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/source_tensors.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/core/node.h"

namespace runner::checkpoint {

/// The frozen weights of a model with adapters, as `init_from` read them: its checkpoints name them, with a checksum,
/// and do not hold them.
class BaseWeights {
 public:
  /// `record`: its checksum may be "", to be computed.
  explicit BaseWeights(artifact::BaseRecord record);

  /// Of what `init_from` reads: one for each tensor.
  std::vector<SourceTensor> fills() const;
  const std::string& source() const { return record_.source; }
  bool holds(const std::string& name) const;
  /// The first call reads all of the tensors. RunError when that fails.
  const std::string& checksum() const;
  core::Node to_node() const;  ///< for trainer.json

  /// Those that a trainer.json or the checkpoint in a folder names; null where it names none.
  static std::shared_ptr<const BaseWeights> of_trainer(const core::Node& trainer, const std::string& path);
  static std::shared_ptr<const BaseWeights> of_checkpoint(const std::string& folder);

  /// Copies the weights into the model. `elsewhere` and errors as in artifact::find_base(); after one the model is as
  /// it was.
  void load_into(const components::model::Model& model, const std::string& elsewhere,
                 const WeightAccess& access = {}) const;

 private:
  mutable artifact::BaseRecord record_;
};

/// Of the frozen weights of linear layers those that the source has in bfloat16: as such they lose nothing and take
/// half the memory. `fills` as InitWeights has them; the model has adapters, else there are none.
std::set<std::string> bf16_in_source(const std::vector<SourceTensor>& fills, const components::model::Model& model);

/// Those of the model, whose frozen parameters `init` fills as a whole; null for a model without adapters.
std::shared_ptr<const BaseWeights> base_of(const InitWeights& init, const components::model::Model& model);

}  // namespace runner::checkpoint
