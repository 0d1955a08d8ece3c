#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/model/model.h"
#include "generated/section/init_from.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::checkpoint {

/// What `init_from` takes from where: names only, found from the headers of files.
struct InitWeights {
  std::string source;      ///< safetensors file or index of shards
  std::string checkpoint;  ///< folder of the checkpoint that it belongs to; "" when it is none of ours
  std::vector<std::pair<std::string, std::string>> pairs;  ///< name there, name in the model; a tied one may come twice
  std::vector<std::string> missing, unexpected;            ///< not empty only without `strict`
  std::vector<std::string> left_out;                       ///< of the model, by include and exclude
  std::map<std::string, std::int64_t> converted;           ///< `BF16 to F32` -> how many
  std::int64_t tensors = 0;                                ///< of the model
  std::int64_t filled = 0;                                 ///< of those, how many get weights
  std::int64_t elements = 0;                               ///< of what is filled

  /// `26 of 28 tensors (1.2 M elements) from FILE, 26 BF16 to F32; 2 stay as drawn: head.weight, head.bias`
  std::string text() const;
  /// For the run's events: what was read, with checksums of the files.
  core::Node to_node() const;
};

/// Matches the recipe's `init_from` with the model (which may be on the meta device). Nothing when the recipe has no
/// such wish, and when `diagnostics` got errors: no such source, names or shapes that do not fit, all of them at once.
/// Runs are looked for in `output_dir`. `written`: the section as the recipe has it, for the places of its values.
std::optional<InitWeights> plan_init_from(const sections::init_from::Config& config, const core::Node& written,
                                          const components::model::Model& model, const std::string& output_dir,
                                          core::Diagnostics& diagnostics);

/// Copies the weights into the model, after comparing a checkpoint's files with its manifest.
/// Errors  RunError (exit status 2): a file that is damaged, tied tensors that differ there.
void load_init_weights(const InitWeights& weights, const components::model::Model& model);

}  // namespace runner::checkpoint
