#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/result.h"
#include "runner/pretrained/adapter_file.h"
#include "runner/pretrained/folder_writer.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {

/// Whether Transformers stores that weight as inputs by outputs.
bool is_turned(const ModelType& type, const std::string& weight);

/// Adds adapters to the weights of a model, in float32 as PEFT's merge_and_unload does.
class Merge {
 public:
  explicit Merge(const ModelType& type) : type_(type) {}
  /// All that the folder of an adapter holds; `adapter` has to live until the tensors are written.
  Merge(const ModelType& type, const OpenedAdapter& adapter);

  /// Adds scale * B A to one layer. Those of several adapters add up; one of DoRA is the only one of its layer.
  void add(const LowRankPair& pair, double scale) { pairs_[pair.module].push_back({pair, scale}); }

  /// The tensors of a model, by Transformers' names, with what is added to them; they may lack the prefix of the base
  /// model. The tensors' data and the adapter's have to live until these are written. `dtype`: of safetensors, which
  /// floating tensors become; "" keeps their own.
  ///
  /// A head for labels that the model lacks is added behind its tensors.
  ///
  /// Failure (exit status 2) names the first layer that the model does not have, or that has another shape.
  core::Result<std::vector<WrittenTensor>> apply(const std::vector<WrittenTensor>& tensors,
                                                 const std::string& dtype = "") const;

 private:
  struct Scaled {
    LowRankPair pair;
    double scale = 1.0;
  };

  /// Whether it is of a head that an adapter may hold and its base may lack, or have for other labels.
  bool is_new(const std::string& tensor) const;
  /// `dtype`: of the result.
  core::Result<WrittenTensor> merged(const WrittenTensor& base, const std::vector<Scaled>& added,
                                     const std::string& dtype) const;

  const ModelType& type_;
  std::map<std::string, std::vector<Scaled>> pairs_;              ///< by module
  std::map<std::string, const artifact::TensorBytes*> replaced_;  ///< trained biases and modules
};

}  // namespace runner::pretrained
