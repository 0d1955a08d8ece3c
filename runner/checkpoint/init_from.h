#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "generated/section/init_from.h"
#include "runner/checkpoint/source_tensors.h"
#include "runner/checkpoint/weight_access.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::checkpoint {

class BaseWeights;

/// Tokens of a vocabulary that gets another size.
struct ResizedVocabulary {
  std::int64_t there = 0, here = 0;
};

/// The sources of `init_from`: names only, from the headers of files.
struct InitWeights {
  std::string source;                 ///< file of tensors or index of shards
  std::string key;                    ///< in a PyTorch file, of the dict that was taken; "" when it is the whole
  std::vector<std::string> wrappers;  ///< taken away from its names: `_orig_mod.`
  std::string checkpoint;             ///< folder of its checkpoint; "" if not a roux checkpoint
  std::string model_type;  ///< of the Transformers folder that it lies in, by whose names it was matched; "" if in none
  std::vector<SourceTensor> fills;                ///< by the model's names; a tied one may appear twice
  std::vector<std::string> missing, unexpected;   ///< empty with `strict`
  std::vector<std::string> left_out;              ///< of the model, or parts of one, by include and exclude
  std::map<std::string, std::int64_t> converted;  ///< `BF16 to F32` -> how many
  std::int64_t quantized = 0;                     ///< how many are kept in fewer bits
  std::optional<ResizedVocabulary> vocabulary;    ///< by `resize_vocab`, when the source's has another size
  std::shared_ptr<const BaseWeights> base;        ///< of a checkpoint of adapters: what that one does not hold
  std::int64_t tensors = 0;                       ///< of the model
  std::int64_t filled = 0;                        ///< of those, number that get weights
  std::int64_t elements = 0;                      ///< elements that are filled

  /// `26 of 28 tensors (1.2 M elements) from FILE, 26 BF16 to F32; 2 keep their initial values: head.weight, head.bias`
  std::string text() const;
  /// For the run's events: the files read, with checksums.
  core::Node to_node() const;
};

/// Matches the recipe's `init_from` with the model (which may be on the meta device). Nothing without `init_from`, or
/// when `diagnostics` got errors: no such source, names or shapes that do not fit, all of them at once. Warns where the
/// model computes something else of the weights than the config.json beside them, and of a head that is drawn. Searches
/// for runs in `output_dir`. `written`: the section in the recipe, for the locations of its values. `recipe`: the whole
/// of it, settled.
std::optional<InitWeights> plan_init_from(const sections::init_from::Config& config, const core::Node& written,
                                          const core::Node& recipe, const components::model::Model& model,
                                          const std::string& output_dir, core::Diagnostics& diagnostics);

/// Copies the weights into the model, after comparing a checkpoint's files with its manifest.
/// Errors  RunError (exit status 2): a damaged file, tied tensors that differ in the source.
void load_init_weights(const InitWeights& weights, const components::model::Model& model,
                       const WeightAccess& access = {});

}  // namespace runner::checkpoint
