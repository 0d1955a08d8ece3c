#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/checkpoint/bare_names.h"
#include "runner/core/language/name_map.h"
#include "runner/pretrained/model_type.h"

namespace runner::checkpoint {

/// A tensor for the model: one of the source, or several joined along their first dimension.
struct SourceTensor {
  std::string name;               ///< in the model
  std::vector<std::string> from;  ///< in the source
  bool transposed = false;
  std::string dtype = {};                  ///< of the first, or of one that is no floating-point type
  std::vector<std::int64_t> shape = {};    ///< as the model has it; empty when the parts do not fit together
  std::vector<std::string> left_out = {};  ///< of `from`: their rows keep their initial values
  /// Of a vocabulary of another size: the rows that both have. The model's other ones get the mean of all there.
  std::optional<std::int64_t> rows_kept = {};
  /// Beside `from`, where weights are packed: what else the source has of them (pretrained::PackedWeight).
  std::vector<std::string> beside = {};

  std::string told() const;  ///< its names in the source, for messages: `q.weight + k.weight`
};

/// What a source has for a model.
struct SourceTensors {
  std::vector<SourceTensor> tensors;
  /// By their names in the model, those of which some parts are not there: names in the source.
  std::map<std::string, std::vector<std::string>> lacking;
  std::vector<std::string> unused;  ///< names in the source of what no rule takes
};

/// Each tensor under its name in the model, by `map`.
SourceTensors renamed_tensors(const BareNames& source, const core::NameMap& map);

/// Those that Transformers has for these names of a model.
SourceTensors pretrained_tensors(const BareNames& source, const pretrained::ModelType& type,
                                 const std::vector<std::string>& names);

/// The model type of the Transformers folder that the file or index at `path` lies in, or `of_model` where no
/// config.json is beside it, when its tensors have that type's names. Where both are of one type, the head is that of
/// the model. Null elsewhere, such as beside a checkpoint of roux.
const pretrained::ModelType* pretrained_type_of(const std::string& path, const BareNames& source,
                                                const pretrained::ModelType* of_model = nullptr);

}  // namespace runner::checkpoint
